// The hills as a file of their own: what the page has drawn, on white, with its question as text.
import { drawn } from "./towers.mjs";

const WIDE = 960;
const SIDE = 40;
const INSIDE = WIDE - 2 * SIDE;
const FACE = "system-ui, sans-serif"; // the page's own face does not go with the file
const WIDER = 1.1; // as another machine's may be
const TOKEN = // a word, or an ideograph
  /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+\s*|\s+/g;
const find = (id) => document.getElementById(id);
const pen = document.createElement("canvas").getContext("2d");

function width(text, size, weight = 400) {
  pen.font = `${weight} ${size}px ${FACE}`;
  return pen.measureText(text).width * WIDER;
}

// The lines of a text that fit into the picture.
function broken(text, size, weight) {
  const lines = [""];
  for (const token of text.match(TOKEN) ?? []) {
    if (lines.at(-1) && width(lines.at(-1) + token.trimEnd(), size, weight) > INSIDE) lines.push("");
    lines.push(lines.pop() + token);
  }
  return lines.map((line) => line.trimEnd());
}

// What is drawn in #calc-towers, with the colours and strokes that a style sheet gives it there.
function hills() {
  const all = find("calc-towers").cloneNode(true);
  for (const rect of all.querySelectorAll("rect")) rect.setAttribute("stroke", "#fff");
  for (const hill of all.querySelectorAll(".calc-tower")) hill.setAttribute("opacity", 0.55);
  for (const line of all.querySelectorAll("line")) {
    const dashed = { stroke: "#222", "stroke-width": 2, "stroke-dasharray": "6 3" };
    for (const [name, value] of Object.entries(dashed)) line.setAttribute(name, value);
  }
  for (const each of all.querySelectorAll("[class]")) each.removeAttribute("class");
  for (const each of all.querySelectorAll("rect, line"))
    each.setAttribute("vector-effect", "non-scaling-stroke");
  return [...all.children];
}

// The picture as text of an SVG file.
export function picture() {
  const inside = [];
  let y = SIDE;
  const write = (text, x, size, more = {}) =>
    inside.push(drawn("text", { x, y, "font-size": size, ...more }, text));
  const lines = (text, size, more) => {
    for (const line of broken(text, size, more["font-weight"])) {
      y += size;
      write(line, SIDE, size, more);
      y += size * 0.4;
    }
  };
  const title = document.querySelector("h1").firstChild.textContent;
  const question = find("calc-title").textContent;
  lines(title, 28, { "font-weight": 700 });
  lines(question, 18, { fill: "#555" });
  lines(find("calc-verdict").textContent, 18, { "font-weight": 700 });

  y += 10;
  const placed = `translate(${SIDE} ${y}) scale(${INSIDE / 1000} 1)`;
  inside.push(drawn("g", { transform: placed }, ...hills()));
  y += 300;
  inside.push(drawn("line", { x1: SIDE, x2: WIDE - SIDE, y1: y, y2: y, stroke: "#555" }));

  const tops = [...find("calc-tops").children];
  const below = y;
  tops.forEach((top, i) => {
    y = below;
    const weight = top.className ? 700 : 400;
    const middle = { "text-anchor": "middle", "font-weight": weight };
    for (const part of top.querySelectorAll("span")) {
      y += 22;
      write(part.textContent, SIDE + (INSIDE / tops.length) * (i + 0.5), 17, middle);
    }
  });

  y += 36;
  let x = SIDE;
  for (const term of find("calc-legend").children) {
    const wide = width(term.textContent, 16) + 44;
    if (x > SIDE && x + wide > WIDE - SIDE) [x, y] = [SIDE, y + 24];
    const fill = term.querySelector("rect").getAttribute("fill");
    inside.push(drawn("rect", { x, y: y - 12, width: 13, height: 13, fill }));
    write(term.textContent, x + 20, 16);
    x += wide;
  }
  y += 12;
  lines(find("calc-scale").textContent, 15, { fill: "#555" });

  const high = Math.ceil(y + SIDE - 15);
  const whole = { viewBox: `0 0 ${WIDE} ${high}`, width: WIDE, height: high, role: "img" };
  const told = [drawn("title", {}, `${title} ${question}`)];
  told.push(drawn("desc", {}, find("calc-hills").textContent));
  told.push(drawn("rect", { width: WIDE, height: high, fill: "#fff" }));
  const face = { "font-family": FACE, fill: "#222", lang: document.documentElement.lang };
  const made = drawn("svg", { ...whole, ...face }, ...told, ...inside);
  return new XMLSerializer().serializeToString(made);
}

// Hands the file over, as a link to a file would.
export function download(name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
