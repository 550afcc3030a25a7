// What the theme would write into each page as inline scripts, and the reader's own marks.
// Loaded in the head and run before the page is drawn, so that a dark page never flashes white.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  // A browser may refuse to keep anything; the book works without.
  const recall = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* not kept */ } };
  root.dataset.mode = recall("mode") || "auto";
  root.dataset.theme = recall("theme") || "auto";
  const CODE = "memlab.code"; // of the set-up and of figures, which a style sheet folds away
  root.dataset.code = recall(CODE) === "shown" ? "shown" : "folded";

  // Opened as a file, the search finds pages but may not read them for excerpts: do not ask.
  if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined")
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  const READ = "memlab.read";
  const read = () => {
    try { return new Set([].concat(JSON.parse(recall(READ)) ?? []).filter((x) => typeof x === "string")); }
    catch { return new Set(); }
  };

  // A tick beside each page that the reader has marked, in the table of contents and in the maps.
  function showProgress() {
    const marked = read();
    const here = new URL(root.dataset.content_root || "./", location.href);
    const button = document.querySelector(".memlab-mark");
    const name = button?.dataset.page;
    for (const link of document.querySelectorAll(".bd-docs-nav a.internal")) {
      const page = link.getAttribute("href") === "#" ? name
        : new URL(link.href).pathname.slice(here.pathname.length).replace(/\.html$/, "");
      link.querySelector(".memlab-tick")?.remove();
      if (!marked.has(page)) continue;
      const tick = document.createElement("span");
      tick.className = "memlab-tick";
      tick.setAttribute("role", "img");
      tick.setAttribute("aria-label", link.closest("[data-read]")?.dataset.read || "read");
      tick.textContent = " ✓";
      link.append(tick);
    }
    if (!button) return;
    button.setAttribute("aria-pressed", String(marked.has(name)));
    const all = JSON.parse(button.dataset.chapters);
    const done = all.filter((page) => marked.has(page)).length;
    document.querySelector(".memlab-progress").textContent =
      button.dataset.count.replace("{done}", done).replace("{all}", all.length);
  }

  // What scrolls inside itself can be reached by the keyboard (the theme sees to code and tables).
  function reachable() {
    for (const box of document.querySelectorAll("div.math, .memlab-figure"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
  }

  // An address may be anything that somebody typed: "#%" is no encoded text.
  function unescaped(words) {
    try {
      return decodeURIComponent(words);
    } catch {
      return words;
    }
  }

  // Claims are folded by verdict: a word typed above them leaves the rows that have it, and a link
  // to one claim opens the fold that it is in.
  function claims() {
    for (const box of document.querySelectorAll(".memlab-claims")) {
      const field = document.createElement("input");
      field.type = "search";
      field.placeholder = box.dataset.filter;
      field.setAttribute("aria-label", box.dataset.filter);
      field.addEventListener("input", () => {
        const words = field.value.trim().toLowerCase();
        for (const fold of box.querySelectorAll("details")) {
          let left = 0;
          for (const row of fold.querySelectorAll("tbody tr")) {
            row.hidden = !row.textContent.toLowerCase().includes(words);
            left += !row.hidden;
          }
          fold.hidden = !left;
          fold.open = Boolean(words) && left > 0;
        }
      });
      box.prepend(field);
    }
    const opened = () => {
      const row = document.getElementById(unescaped(location.hash.slice(1)));
      const fold = row?.closest(".memlab-claims details");
      if (!fold) return;
      fold.open = true;
      row.scrollIntoView();
    };
    addEventListener("hashchange", opened);
    opened();
  }

  // The cases that save nothing are one table: a word typed above it leaves the rows that have it.
  function cases() {
    for (const box of document.querySelectorAll(".memlab-cases")) {
      const field = document.createElement("input");
      field.type = "search";
      field.placeholder = box.querySelector("p").textContent;
      field.setAttribute("aria-label", field.placeholder);
      field.addEventListener("input", () => {
        const words = field.value.trim().toLowerCase();
        for (const row of box.querySelectorAll("tbody tr"))
          row.hidden = !row.textContent.toLowerCase().includes(words);
      });
      box.prepend(field);
    }
  }

  // An anchor is made of its heading's words, which another language does not have: there the same
  // section is the one that stands at the same place, and has its own name again on arrival.
  const sections = () => [...document.querySelectorAll(".bd-article section")];
  function placed() {
    const at = sections().findIndex((one) => one.id && `#${one.id}` === location.hash);
    return at < 0 ? location.hash : `#section-${at}`;
  }
  function arrive() {
    const at = /^#section-(\d+)$/.exec(location.hash)?.[1];
    if (at && sections()[at]?.id) location.replace(`#${sections()[at].id}`);
  }

  function start() {
    reachable();
    claims();
    cases();
    addEventListener("resize", reachable);
    document.querySelector(".bd-search-container form.bd-search input")?.focus();
    document.querySelector(".memlab-print")?.addEventListener("click", () => print());
    document.querySelector(".memlab-mark")?.addEventListener("click", (event) => {
      const name = event.currentTarget.dataset.page;
      const marked = read();
      if (!marked.delete(name)) marked.add(name);
      keep(READ, JSON.stringify([...marked]));
      showProgress();
    });
    document.querySelector(".memlab-code")?.addEventListener("click", () => {
      root.dataset.code = root.dataset.code === "shown" ? "folded" : "shown";
      keep(CODE, root.dataset.code);
    });
    // The commands that run a page on the reader's machine name the site that the page was read on.
    for (const box of document.querySelectorAll("pre[data-site]"))
      box.firstElementChild.textContent = box.textContent.replaceAll("{site}", new URL(box.dataset.site, location.href).href);
    // The same place of the same page in another language; of the calculator, the same question.
    for (const link of document.querySelectorAll(".memlab-languages a"))
      link.addEventListener("click", () => { link.hash = placed(); });
    arrive();
    showProgress();
    // The menus of the page close like any other: by a click beside them, and by Escape.
    for (const menu of document.querySelectorAll(".memlab-menu")) {
      document.addEventListener("click", (event) => {
        if (!menu.contains(event.target) || event.target.closest("a")) menu.open = false;
      });
      menu.addEventListener("keydown", (event) => {
        if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); }
      });
    }
  }

  // Paper is white, whatever the screen is.
  const paper = matchMedia("print");
  let onScreen = null;
  paper.addEventListener("change", () => {
    if (paper.matches) {
      onScreen = root.dataset.theme;
      root.dataset.theme = "light";
    } else if (onScreen) root.dataset.theme = onScreen;
  });

  // On paper everything is open: code, and what is hidden behind a summary.
  addEventListener("beforeprint", () => {
    for (const box of document.querySelectorAll("article details:not([open])")) {
      box.open = true;
      box.dataset.openedToPrint = "";
    }
  });
  addEventListener("afterprint", () => {
    for (const box of document.querySelectorAll("[data-opened-to-print]")) {
      box.open = false;
      delete box.dataset.openedToPrint;
    }
  });
  addEventListener("storage", showProgress);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
