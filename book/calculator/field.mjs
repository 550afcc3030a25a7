// The field under an exercise: memlab's own judge in MicroPython. The page and the tests start it alike.
import { write } from "./engine.mjs";
import { readings } from "./numerals.mjs";
import { speaker } from "./say.mjs";

const DRIVER = `
import sys
sys.path.insert(0, "/")
from memlab.exercises.field import answered
`;

// loadMicroPython: the engine's own; options: url of its .wasm; files: path -> text; chapter: what its
// exercises know, and the words of its language. To a function: exercise, typed -> {mark, told}.
export async function judge(loadMicroPython, options, files, chapter) {
  const { exercises, words, language } = chapter;
  const python = await loadMicroPython({ heapsize: 4 * 1024 * 1024, ...options });
  write(python, files);
  python.runPython(DRIVER);
  const answered = python.globals.get("answered");
  const say = speaker(words, language);
  return (exercise, typed) => {
    const asked = { ...exercises[exercise], readings: readings(typed, language) };
    const [mark, told] = JSON.parse(answered(JSON.stringify(asked)));
    return { mark, told: say(told) };
  };
}

// The judge of a chapter's page.
export async function open(page) {
  const read = async (name) => {
    const response = await fetch(new URL(`../exercises/${name}.json`, import.meta.url));
    if (!response.ok) throw new Error(`${name}: ${response.status}`);
    return response.json();
  };
  const [{ loadMicroPython }, files, chapter] = await Promise.all([
    import("./micropython.mjs"),
    read("python"),
    read(page),
  ]);
  const url = new URL("micropython.wasm", import.meta.url).href;
  return judge(loadMicroPython, { url }, files, chapter);
}
