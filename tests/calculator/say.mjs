// Says texts with the page's own words. Standard input: JSON with `words` and `texts`.
import { readFileSync } from "node:fs";
import { speaker } from "../../book/calculator/say.mjs";

const { words, texts, language } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map(speaker(words, language))));
