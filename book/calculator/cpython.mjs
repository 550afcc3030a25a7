// A worker: CPython with the whole package in it, which counts steps that the page has no tables of.
import { loadPyodide } from "../../../python/pyodide.mjs";

const SITE = new URL("../../../", import.meta.url);

async function start() {
  const wheel = fetch(new URL(self.name, SITE)).then((response) => response.arrayBuffer());
  const python = await loadPyodide({ indexURL: new URL("python/", SITE).href });
  python.unpackArchive(await wheel, "wheel");
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
