// A worker: CPython with the whole package in it, which counts steps that the page has no tables of.
import { loadPyodide } from "../../../python/pyodide.mjs";

const PLACE = new URL("../../../python/", import.meta.url);

async function start() {
  const memlab = fetch(new URL("memlab.zip", PLACE)).then((response) => response.arrayBuffer());
  const python = await loadPyodide({ indexURL: PLACE.href });
  python.unpackArchive(await memlab, "wheel");
  return python.runPython("from memlab.page.simulated import answer\nanswer");
}

const answer = start();

addEventListener("message", async ({ data: { id, state, advise } }) => {
  try {
    const found = JSON.parse((await answer)(JSON.stringify(state), advise));
    postMessage({ id, found });
  } catch (error) {
    postMessage({ id, broken: error.message.trim().split("\n").pop() });
  }
});
