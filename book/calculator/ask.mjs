// What the calculator's page and the first page share: the engine with its files, and an address.
import { start, TYPES } from "./engine.mjs";
import { loadMicroPython } from "./micropython.mjs";

async function fetched(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${response.status} for ${name}`);
  return response.json();
}
const place = (name) => (name === TYPES ? name : `peaks/${encodeURIComponent(name)}`);
const moments = (name) => fetched(`${place(name)}.json`).catch(() => null);

// Starts the engine; what comes back answers a state, with advice or without, and sizes bytes.
export async function begin() {
  const options = { url: new URL("micropython.wasm", import.meta.url).href, stdout: () => {} };
  const rest = () => fetched("later.json");
  const answer = await start(loadMicroPython, options, fetched("python.json"), rest);
  const asked = (state, advise) => answer(state, moments, advise);
  asked.sized = answer.sized;
  asked.adapter = answer.adapter;
  asked.named = answer.named;
  asked.asked = (state, what, wanted) => answer.asked(state, what, moments, wanted);
  return asked;
}

// What an address says after its "#" for a state: all that is not the usual.
export function said(state, defaults) {
  const words = new URLSearchParams();
  for (const [name, usual] of Object.entries(defaults))
    if (state[name] !== usual && state[name] !== null) words.set(name, state[name]);
  if (state.config) words.set("config", JSON.stringify(state.config));
  return words.toString();
}
