// The first page: model, tokens and card in; whether they fit, and the hills of their step, out.
import { begin, said } from "./ask.mjs";
import { speaker } from "./say.mjs";
import { showHills } from "./towers.mjs";

const find = (id) => document.getElementById(id);
const form = find("calc-form");
const table = JSON.parse(find("calc-table").textContent); // defaults, choices, colours, words
const say = speaker(table.words, table.language);
const selects = [...form.querySelectorAll("select")];

for (const select of selects) {
  const shown = select.value;
  select.replaceChildren(...table.choices[select.name].map(([value, label]) => {
    return new Option(say(label), value, false, String(value) === shown);
  }));
}

function stateOfControls() {
  const state = {};
  for (const { name, value } of selects)
    state[name] = typeof table.defaults[name] === "number" ? Number(value) : value;
  return state;
}

const answer = await begin();
let asked = 0;

async function update() {
  const turn = ++asked;
  const state = stateOfControls();
  const found = await answer(state, false);
  if (turn !== asked) return;
  find("calc-ask").hash = said(state, table.defaults);
  find("calc-wrong").textContent = say(found.error ?? "");
  for (const place of document.querySelectorAll(".calc-hills, #calc-scale, #calc-title"))
    place.classList.toggle("calc-stale", Boolean(found.error));
  const verdict = find("calc-verdict");
  verdict.textContent = say(found.error ? "No answer to this question." : found.verdict);
  verdict.dataset.fits = found.error ? "" : found.state;
  if (found.error) return;
  showHills(found, table, say);
  find("calc-scale").textContent = say(found.scale);
  find("calc-title").textContent = say(found.heading);
}

form.addEventListener("change", update);
form.addEventListener("submit", (event) => event.preventDefault());
for (const select of selects) select.disabled = false;
document.documentElement.dataset.calculator = "ready";
