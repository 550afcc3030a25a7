// MicroPython with memlab's own Python files in it. The page and the tests start it alike.
import { problem } from "./say.mjs";

export const TYPES = "types"; // the name of the file with the tables of tensors
const REST = "later"; // what Python needs of itself for some questions

const DRIVER = `
import sys
sys.path.insert(0, "/")
from memlab.page.answer import answer
from memlab.units import text

def sized(count): return text(int(count))
`;

// Put files where Python finds them: path -> text.
export function write(python, texts) {
  for (const [path, text] of Object.entries(texts)) {
    const folders = path.split("/").slice(0, -1);
    folders.forEach((_, i) => {
      const folder = "/" + folders.slice(0, i + 1).join("/");
      if (!python.FS.analyzePath(folder).exists) python.FS.mkdir(folder);
    });
    python.FS.writeFile("/" + path, text);
  }
}

// loadMicroPython: the engine's own; options: url of its .wasm; files: path -> text, or its promise;
// fetchRest: to the promise of those that few questions need.
export async function start(loadMicroPython, options, files, fetchRest) {
  const engine = loadMicroPython({ heapsize: 16 * 1024 * 1024, ...options });
  const [python, texts] = await Promise.all([engine, files]);
  write(python, texts);
  python.runPython(DRIVER);
  const ask = python.globals.get("answer");
  const sized = python.globals.get("sized");
  // Name of a file -> its content, and before that its promise.
  const moments = new Map();
  const coming = new Map();

  // What Python asks for: the moments of a kind of step, as JSON.
  function lookup(name, kind) {
    const file = moments.get(name);
    if (file === undefined) return "?";
    if (name === TYPES) return tableOf(file, kind);
    if (file === null || !Object.hasOwn(file.kinds, kind)) return "";
    const found = rowsOf(file, kind).map(([hill, place, ...places]) => {
      const parts = {};
      places.forEach((place, i) => {
        if (Object.keys(file.sums[place]).length) parts[file.terms[i]] = file.sums[place];
      });
      return [file.hills[hill], place, parts];
    });
    return JSON.stringify(found);
  }

  // The answer to a state, with advice or without; the files of moments it needs are fetched on the way.
  async function answer(state, fetchMoments, advise = true) {
    for (;;) {
      const answered = JSON.parse(ask(JSON.stringify(state), lookup, advise));
      if (answered.needs === undefined) return answered;
      await bring(answered.needs, fetchMoments);
    }
  }

  // Two questions at once wait for the same file.
  async function bring(name, fetchMoments) {
    if (name === REST) {
      if (whole) throw new Error("a module is missing");
      return complete();
    }
    if (!coming.has(name)) coming.set(name, fetchMoments(name));
    const file = await coming.get(name);
    moments.set(name, name === TYPES ? file : unfolded(file));
  }

  let whole = false;
  async function complete() {
    write(python, await fetchRest());
    whole = true;
  }

  // What an adapter_config.json sets of a state.
  let read = null;
  answer.adapter = async (text, state) => {
    if (!whole) await complete();
    if (!read) python.runPython("from memlab.page.adapter_file import read");
    read ??= python.globals.get("read");
    return JSON.parse(read(text, JSON.stringify(state())));
  };
  // One of the questions after the verdict, in turns, between which the page has a breath; nothing,
  // once it is no longer wanted.
  let further = null;
  answer.asked = async (state, what, fetchMoments, wanted = () => true) => {
    if (!whole) await complete();
    if (!further) python.runPython("from memlab.page.asked import asked");
    further ??= python.globals.get("asked");
    while (wanted()) {
      const found = JSON.parse(further(JSON.stringify(state), lookup, what));
      if (found.needs !== undefined) await bring(found.needs, fetchMoments);
      else if (found.more) await new Promise((then) => setTimeout(then));
      else return found;
    }
    return null;
  };
  // What a name, a size or an address in the place of a model means.
  let meant = null;
  answer.named = async (text, use) => {
    if (!whole) await complete();
    if (!meant) python.runPython("from memlab.page.named import named");
    meant ??= python.globals.get("named");
    return JSON.parse(meant(text, use));
  };
  answer.sized = (count) => sized(String(count)); // whole numbers of any size, as memlab writes bytes
  return answer;
}

// The table of a type's tensors with what all types share; nothing for a type that is not known.
function tableOf(file, family) {
  if (file === null) return "";
  const { common, activations, types, refused, unbuilt } = file;
  if (!Object.hasOwn(types, family) && !Object.hasOwn(refused, family)) return "";
  const table = Object.hasOwn(types, family) ? types[family] : null;
  return JSON.stringify({ common, activations, table, built: !unbuilt.includes(family) });
}

// A file of moments with each sum and each row as it is: they are stored as differences.
function unfolded(file) {
  if (file === null) return null;
  const sums = [];
  for (const { "=": back, ...told } of file.sums) {
    const made = back === undefined ? {} : { ...sums[sums.length - back] };
    for (const [word, number] of Object.entries(told)) {
      made[word] = (made[word] ?? 0) + number;
      if (made[word] === 0) delete made[word];
    }
    sums.push(made);
  }
  const width = 2 + file.terms.length;
  const rows = [];
  for (let at = 0; at < file.rows.length; at += width) {
    const last = rows[rows.length - 1];
    rows.push(file.rows.slice(at, at + width).map((more, i) => (last ? last[i] : 0) + more));
  }
  return { ...file, sums, rows };
}

// The rows of a kind of step: its first row and how many, and so on.
function rowsOf(file, kind) {
  const spans = file.kinds[kind];
  const found = [];
  for (let at = 0; at < spans.length; at += 2)
    found.push(...file.rows.slice(spans[at], spans[at] + spans[at + 1]));
  return found;
}

// What of a pasted text is worth looking at: an object with plain values of ordinary size.
const LONGEST = 200_000;
const numbered = (count) => count.toLocaleString("en");
const DEEPEST = 12;
const LEVELS = 4; // of objects inside a config

export function configFrom(text) {
  if (text.length > LONGEST)
    throw problem(["{count} characters are no config.json", { count: numbered(text.length) }]);
  let depth = 0;
  for (const letter of text) {
    if (letter === "{" || letter === "[") depth += 1;
    if (letter === "}" || letter === "]") depth -= 1;
    if (depth > DEEPEST) throw problem("this is nested too deeply for a config.json");
  }
  let read;
  try {
    read = JSON.parse(endless(text));
  } catch {
    throw problem("this is not JSON; a config.json of Hugging Face is needed");
  }
  if (read === null || typeof read !== "object" || Array.isArray(read))
    throw problem("this is JSON, but not an object; a config.json of Hugging Face is one");
  return shallow(read, 0);
}

// Infinity, as Python writes it and JSON has none: a text, outside of texts.
function endless(text) {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b/g, (found) =>
    found.startsWith('"') ? found : `"${found}"`,
  );
}

// The other form in which transformers writes it: { "__float__": "Infinity" }.
const plainly = (value) => value?.__float__ ?? value;

// A copy without a prototype: numbers, texts, truth values, and some levels of objects and lists:
// those of thinker_config.text_config.rope_parameters.
function shallow(object, level) {
  const made = Object.create(null);
  for (const [key, inside] of Object.entries(object)) {
    if (key === "__proto__") continue;
    const value = plainly(inside);
    if (typeof value === "number" && !Number.isFinite(value))
      throw problem(["{key} is a number beyond all measure", { key: key.slice(0, 40) }]);
    if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER)
      made[key] = 2e9; // one that Python refuses by name
    else if (Array.isArray(value))
      made[key] = value.slice(0, 1000).map(plainly).filter(listed);
    else if (value !== null && typeof value === "object") {
      if (level < LEVELS) made[key] = shallow(value, level + 1);
    } else made[key] = value;
  }
  return made;
}

// What a list may hold: names of layers, flags, factors.
function listed(each) {
  return ["string", "boolean"].includes(typeof each) || Number.isFinite(each);
}
