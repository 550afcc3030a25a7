// The hills of a step side by side, as tools/calculator_answer.py draws them at the build.

const SVG = "http://www.w3.org/2000/svg";
const find = (id) => document.getElementById(id);

export function drawn(tag, attributes, ...inside) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

export function swatch(fill) {
  const square = drawn("rect", { width: 10, height: 10, fill });
  return drawn("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, square);
}

// table: the page's colours, and the order of hills and of terms; say: English -> the page's language.
export function showHills(found, table, say) {
  const names = table.hills.filter((name) => Object.hasOwn(found.stacks, name));
  const colour = (term) => table.colours[term] ?? table.colours.other;
  find("calc-hills").textContent = say(found.heights);
  place(find("calc-towers"), towers(found, names, colour));

  const sizes = new Map(found.hills.map(([name, , size]) => [name, size]));
  const line = (...inside) => {
    const made = document.createElement("li");
    made.append(...inside);
    return made;
  };
  const span = (text) => {
    const made = document.createElement("span");
    made.textContent = text;
    return made;
  };
  const tops = names.map((name) => {
    const top = line(span(say(name)), " ", span(say(sizes.get(name))));
    if (name === found.moment) top.className = "calc-highest";
    return top;
  });
  find("calc-tops").replaceChildren(...tops);

  const inside = new Set(Object.values(found.stacks).flatMap((stack) => stack.map(([t]) => t)));
  const terms = table.order.filter((term) => inside.has(term));
  find("calc-legend").replaceChildren(...terms.map((t) => line(swatch(colour(t)), say(t))));
}

function towers(found, names, colour) {
  if (!names.length) return [];
  const whole = (name) => found.stacks[name].reduce((sum, [, size]) => sum + size, 0);
  const most = Math.max(found.limit, ...names.map(whole));
  const step = 1000 / names.length;
  const made = names.map((name, i) => {
    let y = 300;
    const parts = found.stacks[name].map(([term, size]) => {
      const height = (285 * size) / most;
      y -= height;
      const where = { x: i * step + 25, y, width: step - 50, height };
      return drawn("rect", { "data-term": term, ...where, fill: colour(term) });
    });
    const kind = name === found.moment ? "calc-tower-top" : "calc-tower";
    return drawn("g", { class: kind, "data-hill": name }, ...parts);
  });
  const at = 300 - (285 * found.limit) / most;
  return [...made, drawn("line", { x1: 0, x2: 1000, y1: at, y2: at, class: "calc-limit" })];
}

// Puts drawings into a picture. Of the same shapes those that are there take the new places, so
// that a style sheet can let them move.
function place(picture, drawings) {
  const told = (nodes) => nodes.map((node) => `${node.tagName} ${node.dataset.term}`).join();
  const old = [...picture.querySelectorAll("*")];
  const fresh = drawings.flatMap((node) => [node, ...node.querySelectorAll("*")]);
  if (told(old) !== told(fresh)) return picture.replaceChildren(...drawings);
  fresh.forEach((node, i) => {
    for (const { name, value } of node.attributes) old[i].setAttribute(name, value);
  });
}
