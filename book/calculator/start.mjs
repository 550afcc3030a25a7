// A classic script whatever its name: as a module it would not run from a folder, and say nothing.
(() => {
  const here = document.currentScript.src;
  const note = document.getElementById("calc-note");
  const { words } = JSON.parse(document.getElementById("calc-table").textContent);
  const say = (text) => words?.[text] ?? text;
  if (location.protocol === "file:") {
    note.textContent = say(
      "Opened from a folder, this page shows one worked example: browsers start the calculator " +
        "only from a server. “make serve” in the book's folder is one.",
    );
    return;
  }
  if (note.dataset.engine !== "yes") return; // it says how to get one
  import(new URL("page.mjs", here).href).catch(() => {
    note.textContent = say(
      "The calculator did not start: this browser may be too old for it.",
    );
  });
})();
