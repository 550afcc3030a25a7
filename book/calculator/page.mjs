// The calculator's page: controls in, Python's answer out. Whatever comes from outside becomes text.
import { showArguments, showDefaults } from "./arguments.mjs";
import { begin, said } from "./ask.mjs";
import { asker } from "./asked.mjs";
import { comparer } from "./compare.mjs";
import { configFrom } from "./engine.mjs";
import { finder, names } from "./finder.mjs";
import { problem, speaker } from "./say.mjs";
import { showParts, showRemedy, stick } from "./screen.mjs";
import { drawn, showHills, swatch } from "./towers.mjs";

const find = (id) => document.getElementById(id);
const form = find("calc-form");
const note = find("calc-note");
const table = JSON.parse(find("calc-table").textContent); // defaults, colours, words
const say = speaker(table.words, table.language);
const count = (number) => say(number.toLocaleString("en"));

let config = null;
let answer = null;
let compare = null; // what is told each answer, and keeps one
let also = null; // what is asked after the verdict
let models = null; // finds one by what it is called
let counter = null; // counts what is in no table: count.mjs, once there is such a question
let asked = 0;
const PAUSE = 150; // milliseconds without another question before advice is looked for

const named = (name) => form.elements.namedItem(name);

// -- the state: from the controls, from the address, to the address ---------------------------

function stateOfControls() {
  const state = {};
  for (const [name, usual] of Object.entries(table.defaults)) {
    const value = named(name).value;
    state[name] = typeof usual === "number" ? (value.trim() === "" ? null : Number(value)) : value;
  }
  if (state.model === "config") state.config = config;
  return state;
}

// The state that is shown, and beside it the one that was kept to compare, each in the same words.
function addressOf(state) {
  const words = new URLSearchParams(said(state, table.defaults));
  const kept = compare.kept();
  if (kept) words.set("kept", said(kept, table.defaults));
  return [...words].length ? `#${words}` : location.pathname;
}

// What an address says: a state, what is wrong with it, and the words of the one that was kept.
function read(words) {
  const state = { ...table.defaults };
  let wrong = "";
  const given = new URLSearchParams(words);
  const text = given.get("config");
  if (text !== null) {
    try {
      state.config = configFrom(text);
      state.model = "config";
    } catch (error) {
      wrong = ["The address: {problem}.", { problem: error.told ?? error.message }];
    }
  }
  for (const [name, value] of given) {
    if (name === "config" || name === "kept") continue;
    const control = Object.hasOwn(table.defaults, name) ? named(name) : null;
    const choices = control && (control.options ?? (control.tagName ? null : control));
    const told = { name: name.slice(0, 40), value: value.slice(0, 40) };
    if (!control) wrong = ["The address: “{name}” is not an option of this page.", told];
    else if (choices && ![...choices].some((one) => one.value === value))
      wrong = ["The address: “{value}” is not a choice of {name}.", told];
    else if (control.type === "number" && !/^\d{1,9}$/.test(value))
      wrong = ["The address: “{value}” is no whole number for {name}.", told];
    else state[name] = typeof table.defaults[name] === "number" ? Number(value) : value;
  }
  if (state.model === "config" && !state.config) state.model = table.defaults.model;
  return { state, wrong, kept: given.get("kept") };
}

// Puts what the address says into the controls. What comes back is what it says to keep, and a line
// about what is wrong with it; nothing, where it is no address of a state.
function takeAddress() {
  const words = location.hash.slice(1);
  if (!words.includes("=")) return null; // nothing, or a heading of this page
  if (words.length > 100_000)
    return { wrong: "The address is too long to be one of this page." };
  models.whole(); // of which the address names one
  const { state, wrong, kept } = read(words);
  if (state.config) takeConfig(state.config);
  for (const name of Object.keys(table.defaults)) named(name).value = state[name];
  followNumbers();
  if (kept === null) return { wrong };
  const other = read(kept);
  return { wrong: wrong || other.wrong, kept: other.state };
}

// Shows the answer to the state that an address says to keep; what cannot be is not kept.
async function keep(state) {
  const found = state && (await answer(state));
  compare.keep(found && !found.error ? { found, state } : null);
}

function takeConfig(read) {
  config = read;
  const option = [...named("model").options].find((each) => each.value === "config");
  option.hidden = option.disabled = false;
  named("model").value = "config";
}

// -- showing ------------------------------------------------------------------------------------

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function colour(term) {
  return table.colours[term] ?? table.colours.other;
}

function show(found) {
  const whole = Math.max(found.total, found.usable);
  const bar = find("calc-bar");
  bar.replaceChildren();
  let left = 0;
  for (const row of found.rows) {
    const width = (1000 * row.bytes) / whole;
    bar.append(drawn("rect", { x: left, y: 6, width, height: 48, fill: colour(row.term) }));
    left += width;
  }
  const at = (1000 * found.limit) / whole;
  bar.append(drawn("line", { x1: at, x2: at, y1: 0, y2: 60, class: "calc-limit" }));
  bar.setAttribute("aria-label", say(found.picture));
  showParts(found, colour, say);
  find("calc-scale").textContent = say(found.scale);
  find("calc-divides").textContent = say(found.divides);

  const body = find("calc-rows");
  const focused = document.activeElement?.dataset?.term;
  body.replaceChildren();
  for (const row of found.rows) {
    const line = element("tr");
    const head = element("th", undefined, { scope: "row" });
    const button = element("button", undefined, { type: "button", class: "calc-term" });
    button.dataset.term = row.term;
    button.dataset.formula = say(row.formula);
    button.append(swatch(colour(row.term)), say(row.term));
    head.append(button);
    line.append(head, element("td", say(row.text)), element("td", count(row.bytes)));
    body.append(line);
    if (row.term === focused) button.focus();
  }
  tell(body.querySelector(`[data-term="${find("calc-formula").dataset.term}"]`));
  find("calc-total").textContent = say(found.total_text);
  find("calc-total-bytes").textContent = count(found.total);
  find("calc-title").textContent = say(found.heading);
  find("calc-verdict").textContent = say(found.verdict);
  find("calc-verdict").dataset.fits = found.state;
  showDefaults(form, found.own ?? {}, say);
  showHills(found, table, say);
  find("calc-serving").textContent = say(found.serving);
  find("calc-command").textContent = found.command;
  find("calc-command").closest("details").hidden = false;
  find("calc-script").textContent = found.script;
  const leftOut = found.leaves_out.map((words) => element("li", say(words)));
  find("calc-left-out").replaceChildren(...leftOut);
}

// What would help; while it is looked for, that of the question before keeps its place, and no more.
function advice(found) {
  find("calc-advice").inert = !found;
  showRemedy(found, say, change);
  if (!found) return;
  const changes = found.steps.map((words, i) => change(words, found.flags[i], found.sets[i]));
  find("calc-changes").replaceChildren(...changes);
  find("calc-over").replaceChildren(...found.over.map((each) => change(...each)));
  find("calc-changes-head").textContent = say(found.advice);
}

// One change: what it is, its line in the reader's library, and a button that makes it.
function change(words, flag, sets) {
  const line = element("li");
  line.append(element("span", say(words)));
  if (flag) line.append(element("br"), element("code", flag));
  const button = element("button", say("Make this change"), { type: "button", class: "calc-apply" });
  button.addEventListener("click", () => {
    take(sets);
    find("calc-verdict").focus();
  });
  line.append(element("br"), button);
  return line;
}

function take(sets) {
  for (const [name, value] of Object.entries(sets)) named(name).value = value;
  followNumbers();
  update();
}

// Whether it fits comes first, and what would help after it: that takes many times as long.
async function update({ address = true } = {}) {
  if (!answer) return;
  const turn = ++asked;
  also.drop();
  const state = stateOfControls();
  let found = await answer(state, false);
  if (turn !== asked) return;
  if (found.error) return refuse(found.error, found.ways);
  find("calc-wrong").textContent = "";
  stale(false);
  show(found);
  advice(found.fits ? found : null);
  compare.tell({ found, state });
  find("calc-link").value = "";
  if (address) history.replaceState(null, "", addressOf(state));
  find("calc-address").textContent = location.href;
  if (!found.fits || !found.serving) {
    await new Promise((then) => setTimeout(then, PAUSE));
    if (turn !== asked) return;
    found = await answer(state);
    if (turn !== asked) return;
    advice(found);
    find("calc-serving").textContent = say(found.serving);
    compare.tell({ found, state });
  }
  offer();
}

function stale(is) {
  for (const place of document.querySelectorAll("#calc-result, .calc-top"))
    place.classList.toggle("calc-stale", is);
}

// A question, or a text in place of one, that has no answer: of the one before it nothing is left.
function refuse(why, ways = []) {
  asked += 1;
  also.drop();
  showDefaults(form, {}, say);
  const out = ways.flatMap(([words, sets]) => [element("br"), ...change(words, "", sets).childNodes]);
  find("calc-wrong").replaceChildren(say(why), ...plainer(), ...out);
  stale(true);
  find("calc-verdict").textContent = say("No answer to this question.");
  find("calc-verdict").dataset.fits = "";
  find("calc-command").closest("details").hidden = true;
  compare.tell(null);
  offer();
}

// What is in no table can be counted all the same, if this copy of the site has CPython: the answer
// that is shown, and the one that was kept.
async function offer() {
  const place = find("calc-count");
  if (!place || (!compare.uncounted().length && !counter)) return;
  counter ??= (await import("./count.mjs")).counter(place, say);
  counter(compare.uncounted(), (one) => {
    if (one.kept) return compare.keep(one);
    show(one.found);
    advice(one.found);
    compare.tell(one);
  });
}

// Of a config that says how its weights were quantized the rest can be counted, if that is wanted.
function plainer() {
  const how = named("model").value === "config" && config.quantization_config;
  if (!how) return [];
  const four = how.load_in_4bit && named("use").value === "train";
  const told = four ? "Compute QLoRA on its NF4 base model" : "Compute it without its quantization_config";
  const button = element("button", say(told), { type: "button", class: "calc-apply" });
  button.addEventListener("click", () => {
    delete config.quantization_config;
    take(four ? { trained: "qlora" } : {});
  });
  return [element("br"), button];
}

let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    update();
  });
}

// -- listening ----------------------------------------------------------------------------------

// A slider stands for the values that it steps through; the number beside it is what counts.
function followNumbers() {
  for (const slider of form.querySelectorAll("input[type=range]")) {
    const values = JSON.parse(slider.dataset.values);
    const number = Number(named(slider.dataset.for).value);
    let place = values.findIndex((value) => value >= number);
    if (place < 0) place = values.length - 1;
    slider.value = place;
    slider.setAttribute("aria-valuetext", count(number));
  }
  showArguments(form, table);
}

form.addEventListener("input", (event) => {
  const control = event.target;
  if (control.type === "range") {
    named(control.dataset.for).value = JSON.parse(control.dataset.values)[Number(control.value)];
  }
  if (control.id === "calc-config" || ["file", "search"].includes(control.type)) return;
  followNumbers();
  soon();
});
form.addEventListener("submit", (event) => event.preventDefault());

async function readConfig(text) {
  find("calc-read").textContent = "";
  if (names(text)) return models.look(text, find("calc-read"));
  try {
    const read = configFrom(text);
    if ("peft_type" in read) {
      const { error, sets, said } = await answer.adapter(text, stateOfControls);
      if (error) throw problem(error);
      take(sets);
      find("calc-read").textContent = say(said);
    } else {
      takeConfig(read);
      update();
    }
  } catch (error) {
    refuse(["The config: {problem}.", { problem: error.told ?? error.message }]);
  }
}

async function readFile(file) {
  if (!file) return;
  if (file.size > 1_000_000) {
    refuse("The config: a file of this size is no config.json.");
    return;
  }
  await readConfig(await file.text());
}

const box = find("calc-config");
box.addEventListener("input", () => (box.value.trim() ? readConfig(box.value) : update()));
find("calc-file").addEventListener("change", (event) => readFile(event.target.files[0]));
form.addEventListener("dragover", (event) => event.preventDefault());
form.addEventListener("drop", (event) => {
  event.preventDefault();
  const file = event.dataTransfer.files[0];
  if (file) readFile(file);
  else readConfig(event.dataTransfer.getData("text/plain"));
});

// The formula of the term that a button names; without one, that there are such.
function tell(button) {
  const place = find("calc-formula");
  const { term = "", formula } = button?.dataset ?? {};
  place.textContent = term ? `${say(term)}: ${formula}` : place.dataset.usual;
  place.dataset.term = term;
}
function formula(event) {
  const button = event.target.closest?.("button.calc-term");
  if (button) tell(button);
}
for (const kind of ["pointerover", "focusin", "click"])
  find("calc-rows").addEventListener(kind, formula);

find("calc-copy").addEventListener("click", async () => {
  (await import("./copy.mjs")).copy(location.href);
});
find("calc-picture").addEventListener("click", async () => {
  const { download } = await import("./picture.mjs"); // which few need
  download(`memlab-${named("model").value}.svg`);
});

async function takeAll() {
  const told = takeAddress();
  if (told) await keep(told.kept ?? null);
  await update({ address: false });
  if (told?.wrong) find("calc-wrong").textContent = say(told.wrong);
}
addEventListener("hashchange", takeAll);

// -- beginning ----------------------------------------------------------------------------------

answer = await begin();
models = finder({ named: answer.named, use: () => named("use").value, say, take });
also = asker({ ask: answer.asked, state: stateOfControls, say, take });
compare = comparer(table.order, say, (bytes) => say(answer.sized(bytes)), () => {
  history.replaceState(null, "", addressOf(stateOfControls()));
  find("calc-link").value = "";
  offer();
});
document.querySelectorAll(".calc [disabled]").forEach((each) => {
  if (each.tagName !== "OPTION") each.disabled = false;
});
await takeAll();
note.textContent = "";
document.documentElement.dataset.calculator = "ready";
stick();
