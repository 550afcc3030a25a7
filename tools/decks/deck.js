// Runs a deck: the largest letters with which each slide holds all that stands on it, then reveal.js.
// `S` opens a second window with the notes, in which the arrows move the slides too. (reveal.js has one of its
// own, which the pages' policy forbids: it writes scripts and styles into a window.)
(() => {
  const root = document.documentElement;
  const speaker = location.search === "?notes";
  const print = /print-pdf/.test(location.search);
  const SIZES = 8; // classes s1 to s8 of deck.css
  const LEAST = 16; // px
  const isNarrow = () => !print && innerWidth / innerHeight < 1.45;

  function drawing(svg) {
    // A drawing's own letters: as large as the least where it is shown no larger than it was drawn.
    const [, , wide, high] = svg.getAttribute("viewBox").split(/\s+/).map(Number);
    const scale = Math.min(svg.clientWidth / wide, svg.clientHeight / high);
    const size = parseFloat(svg.getAttribute("font-size"));
    if (size * scale < LEAST) svg.setAttribute("font-size", String(Math.ceil((10 * LEAST) / scale) / 10));
  }

  function holds(slide) {
    const body = slide.querySelector(".body");
    const room = body.getBoundingClientRect();
    return (
      slide.scrollHeight <= slide.clientHeight &&
      [...body.querySelectorAll("pre")].every((code) => code.scrollWidth <= code.clientWidth) &&
      [...body.querySelectorAll("*")].every((part) => {
        const box = part.getBoundingClientRect();
        return part.closest("svg, math math") || (box.right <= room.right + 1 && box.bottom <= room.bottom + 1);
      }) &&
      [...body.querySelectorAll(".memlab-figure")].every((box) => box.clientHeight >= 0.45 * slide.clientHeight)
    );
  }

  function fit() {
    root.classList.add("fitting");
    for (const slide of document.querySelectorAll(".slide")) {
      for (let size = 1; size <= SIZES && !holds(slide); size++) {
        slide.classList.remove(`s${size - 1}`);
        slide.classList.add(`s${size}`);
      }
      slide.querySelectorAll(".memlab-figure > svg").forEach(drawing);
    }
    root.classList.remove("fitting");
  }

  function speak() {
    const sections = [...document.querySelectorAll(".slides > section")];
    const show = (at) => sections.forEach((section, i) => section.classList.toggle("now", i === at));
    root.classList.add("speaker");
    show(Number(location.hash.slice(2)) || 0);
    addEventListener("message", (event) => {
      if (event.source === window.opener && Number.isInteger(event.data)) show(event.data);
    });
    addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1 }[event.key];
      if (step) window.opener?.postMessage(step > 0 ? "next" : "prev", "*");
    });
  }

  async function run() {
    // Sizes are those of the faces that are shown: nothing has asked for them while no slide is.
    await Promise.allSettled([...document.fonts].map((face) => face.load()));
    if (speaker) return speak();
    const narrow = isNarrow();
    root.classList.toggle("narrow", narrow);
    fit();
    const [width, height] = narrow ? [1024, 768] : [1280, 720];
    let notes = null;
    await Reveal.initialize({
      width, height, margin: 0, center: false, hash: true, controls: false, transition: "none",
      slideNumber: "c/t", pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, maxScale: 8, minScale: 0.1,
    });
    Reveal.addKeyBinding({ keyCode: 83, key: "S" }, () => {
      notes = open(`${location.pathname}?notes#/${Reveal.getIndices().h}`, "notes", "width=900,height=800");
    });
    Reveal.on("slidechanged", ({ indexh }) => notes?.postMessage(indexh, "*"));
    addEventListener("message", (event) => {
      if (notes && event.source === notes) event.data === "next" ? Reveal.next() : Reveal.prev();
    });
    // Sizes were found for one shape of the window.
    addEventListener("resize", () => { if (isNarrow() !== narrow) location.reload(); });
    root.dataset.ready = "yes";
  }

  addEventListener("DOMContentLoaded", run);
})();
