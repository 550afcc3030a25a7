// Under each exercise of a chapter a field for the answer. Nothing is fetched for it before somebody
// goes there; then memlab's own judge runs in the calculator's engine, as in a notebook's cell.
// Loaded in the head: where no server gives the page, its cells stay, and no field is shown.
(() => {
  "use strict";
  if (!location.protocol.startsWith("http")) return;
  document.documentElement.classList.add("served");
  const here = document.currentScript.src;
  const SOLVED = "memlab.exercises"; // exercise -> the answer that was right, of this reader
  const solved = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(SOLVED));
      return kept && typeof kept === "object" && !Array.isArray(kept) ? kept : {};
    } catch { return {}; } // a browser may refuse to keep anything
  };
  const keep = (name, typed) => {
    try { localStorage.setItem(SOLVED, JSON.stringify({ ...solved(), [name]: typed })); } catch { /* not kept */ }
  };

  let judge = null; // its promise
  const start = (page) => {
    judge ??= import(new URL("calculator/field.mjs", here).href).then((field) => field.open(page));
    judge.catch(() => { judge = null; }); // the next try may find the network again
    return judge;
  };

  // The mark is for the eyes: a screen reader hears the word.
  function say(form, mark, told) {
    const verdict = form.querySelector(".memlab-verdict");
    const line = document.createElement("span");
    const word = { "✓": form.dataset.right, "✗": form.dataset.wrong }[mark];
    line.dataset.mark = mark;
    const sign = Object.assign(document.createElement("span"), { textContent: `${mark} ` });
    sign.setAttribute("aria-hidden", "true");
    const heard = Object.assign(document.createElement("span"), { textContent: word ? `${word} ` : "" });
    heard.className = "memlab-heard";
    line.append(sign, heard, told);
    verdict.replaceChildren(line);
  }

  addEventListener("focusin", (event) => {
    const form = event.target.closest?.(".memlab-exercise");
    if (form) start(form.dataset.page).catch(() => {}); // who presses the button is told
  });
  addEventListener("input", (event) => {
    const verdict = event.target.closest?.(".memlab-exercise")?.querySelector(".memlab-verdict");
    verdict?.replaceChildren();
  });
  addEventListener("submit", async (event) => {
    const form = event.target.closest(".memlab-exercise");
    if (!form) return;
    event.preventDefault();
    const { page, exercise, failed } = form.dataset;
    const typed = form.querySelector("input").value;
    try {
      const { mark, told } = (await start(page))(exercise, typed);
      if (form.querySelector("input").value !== typed) return; // somebody types on
      say(form, mark, told);
      if (mark === "✓") keep(exercise, typed);
    } catch {
      say(form, "", failed);
    }
  });
  addEventListener("DOMContentLoaded", () => {
    const kept = solved();
    for (const form of document.querySelectorAll(".memlab-exercise")) {
      const typed = kept[form.dataset.exercise];
      if (typeof typed !== "string") continue;
      form.querySelector("input").value = typed;
      say(form, "✓", "");
    }
  });
})();
