// The calculator's sentences in the language of the page, as memlab.base.message renders them.
import { written } from "./numerals.mjs";

const PLACE = /\{(\w+)\}/;
const IDEOGRAPH = /[\u3000-\u9fff]/;

// Beside an ideograph a comma is one of its own.
function listed(mark, [first = "", ...rest]) {
  const comma = (a, b) => mark === ", " && IDEOGRAPH.test(a.slice(-1) + b.slice(0, 1));
  return rest.reduce((done, next) => done + (comma(done, next) ? "、" : mark) + next, first);
}

// words: English -> translation. language: of the page, which writes numbers in its own way.
// What is said: a text, [a pattern, what stands in its {places}], or [a mark, what it parts].
export function speaker(words, language) {
  const known = new Map(Object.entries(words ?? {}));
  const word = (text) => known.get(text) ?? String(text);

  return (told) => written(said(told), language);

  function said(told) {
    if (!Array.isArray(told)) return word(told);
    const [pattern, values] = told;
    if (Array.isArray(values)) return listed(pattern, values.map(said));
    const parts = word(pattern).split(PLACE);
    return parts.map((part, i) => (i % 2 ? said(values[part]) : part)).join("");
  }
}

// An error with something to say.
export function problem(told) {
  return Object.assign(new Error(String(told)), { told });
}
