// Runs driver.py under MicroPython. Standard input: JSON with `files` (path -> text) and `driver`,
// `modules`, `cases` as driver.py explains them. Standard output: the answers, as JSON.
import { readFileSync } from "node:fs";
import { loadMicroPython } from "@micropython/micropython-webassembly-pyscript";

const { files, driver, modules, cases } = JSON.parse(readFileSync(0, "utf8"));
const micropython = await loadMicroPython({ heapsize: 16 * 1024 * 1024, stdout: () => {} });

for (const [path, text] of Object.entries(files)) {
  const folders = path.split("/").slice(0, -1);
  folders.forEach((_, i) => {
    const folder = "/" + folders.slice(0, i + 1).join("/");
    if (!micropython.FS.analyzePath(folder).exists) micropython.FS.mkdir(folder);
  });
  micropython.FS.writeFile("/" + path, text);
}
micropython.FS.writeFile("/cases.json", JSON.stringify({ modules, cases }));
micropython.runPython(`import sys; sys.path.insert(0, "/")\n${driver}`);
micropython.runPython(`
import json
with open("/cases.json") as file:
    asked = json.load(file)
with open("/answers.json", "w") as file:
    json.dump(answers(asked["modules"], asked["cases"]), file)
`);
process.stdout.write(micropython.FS.readFile("/answers.json", { encoding: "utf8" }));
