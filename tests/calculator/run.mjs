// Asks the page's engine many questions. Standard input: JSON with `states`, `files`, and `moments`,
// the folder of the moments, and `later`, the files that few of them need; with `pasted`, pairs of
// an adapter_config.json and a state; with `advised`, the numbers of the states that are to get advice;
// with `asked`, pairs of a state and one of the questions after the verdict; with `named`, pairs of
// what names a model and a use.
// Standard output: the answers, as JSON.
import { existsSync, readFileSync } from "node:fs";
import { loadMicroPython } from "@micropython/micropython-webassembly-pyscript";
import { configFrom, start, TYPES } from "../../book/calculator/engine.mjs";

const { states, files, moments, texts, pasted, later, advised, asked, named } = JSON.parse(
  readFileSync(0, "utf8"),
);
const answer = await start(loadMicroPython, { stdout: () => {} }, files, async () => later);

const read = async (name) => {
  const path = `${moments}/${name === TYPES ? "../" : ""}${name}.json`;
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
};
const answers = [];
for (const [number, state] of states.entries())
  answers.push(await answer(state, read, advised?.includes(number) ?? false));
const configs = (texts ?? []).map((text) => {
  try {
    return { config: configFrom(text) };
  } catch (error) {
    return { error: error.told };
  }
});
const adapters = [];
for (const [text, state] of pasted ?? [])
  adapters.push(await answer.adapter(text, () => state));
const further = [];
for (const [state, what] of asked ?? []) further.push(await answer.asked(state, what, read));
const meant = [];
for (const [text, use] of named ?? []) meant.push(await answer.named(text, use));
process.stdout.write(JSON.stringify({ answers, configs, adapters, further, meant }));
