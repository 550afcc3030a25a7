// What a reader meets first: the first change that would help, and the bar's terms with their sizes,
// as tools/calculator_screen.py writes them at the build.
import { swatch } from "./towers.mjs";

const find = (id) => document.getElementById(id);

export function showParts(found, colour, say) {
  const lines = found.rows.map(({ term, text }) => {
    const line = document.createElement("li");
    const size = document.createElement("b");
    size.textContent = say(text);
    line.append(swatch(colour(term)), say(term), " ", size);
    return line;
  });
  find("calc-parts").replaceChildren(...lines);
}

// found: an answer with what would help, or null while that is looked for; change: makes its line.
export function showRemedy(found, say, change) {
  const place = find("calc-remedy");
  if (!found) return place.replaceChildren(place.dataset.looking);
  const { steps, sets, over, ways, advice } = found;
  const others = [...over.map(([words, , sets]) => [words, sets]), ...ways];
  const first = steps.length ? [steps[0], "", sets[0]] : others.length && [others[0][0], "", others[0][1]];
  const inside = first ? [...change(...first).childNodes] : advice ? [say(advice)] : [];
  return place.replaceChildren(...inside);
}

// Verdict and bar stay in sight below each other, and what has the focus below both of them.
export function stick() {
  const lines = [find("calc-wrong"), find("calc-verdict")];
  const { style } = document.documentElement;
  const height = (line) => (getComputedStyle(line).position === "sticky" ? line.offsetHeight : 0);
  const measured = () =>
    style.setProperty("--calc-verdict", `${lines.reduce((sum, line) => sum + height(line), 0)}px`);
  const watching = new ResizeObserver(measured);
  for (const line of lines) watching.observe(line);
  // The address holds the question: a way down the page is no other one.
  for (const way of document.querySelectorAll(".calc-ways a"))
    way.addEventListener("click", (event) => {
      event.preventDefault();
      const place = document.querySelector(way.hash);
      place.scrollIntoView();
      place.focus({ preventScroll: true });
    });
}
