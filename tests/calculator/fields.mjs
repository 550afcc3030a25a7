// Asks the judge of the pages' fields. Standard input: JSON with `files`, `chapters` (name -> what
// a page's fields know) and `asked`, triples of a chapter, an exercise and what is typed.
// Standard output: what each is told, {mark, told}, as JSON.
import { readFileSync } from "node:fs";
import { loadMicroPython } from "@micropython/micropython-webassembly-pyscript";
import { judge } from "../../book/calculator/field.mjs";

const { files, chapters, asked } = JSON.parse(readFileSync(0, "utf8"));
const judges = {};
const told = [];
for (const [chapter, exercise, typed] of asked) {
  judges[chapter] ??= await judge(loadMicroPython, { stdout: () => {} }, files, chapters[chapter]);
  told.push(judges[chapter](exercise, typed));
}
process.stdout.write(JSON.stringify(told));
