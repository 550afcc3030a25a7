// A classic script whatever its name, as start.mjs is. The first page's picture stands without it;
// where there is an engine, it shows the form, and when the browser has nothing else to do, fills it.
(() => {
  const { src, dataset } = document.currentScript;
  const form = document.getElementById("calc-form");
  if (location.protocol === "file:" || dataset.engine !== "yes") return;
  form.hidden = false;
  const fill = () =>
    import(new URL("home.mjs", src).href).catch(() => {
      form.hidden = true; // this browser may be too old for it
    });
  if (window.requestIdleCallback) requestIdleCallback(fill, { timeout: 1000 });
  else addEventListener("load", () => setTimeout(fill, 100));
})();
