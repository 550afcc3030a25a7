// The calculator's sentences in the language of the page, as memlab.base.message renders them.
import { written } from "./numerals.mjs";

const PLACE = /\{(\w+)\}/;
const IDEOGRAPH = /[\u3000-\uffef]/;

// words: English -> translation. language: of the page, which writes numbers in its own way.
// What is said: a text, [a pattern, what stands in its {places}], or [a mark, what it parts].
export function speaker(words, language) {
  const known = new Map(Object.entries(words ?? {}));
  const word = (text) => known.get(text) ?? String(text);

  return (told) => written(said(told), language);

  function said(told, within = "") {
    if (!Array.isArray(told)) return word(told);
    const [pattern, values] = told;
    if (Array.isArray(values)) {
      const parts = values.map((part) => said(part));
      // Among ideographs a comma is wide.
      return parts.join(pattern === ", " && IDEOGRAPH.test(within + parts) ? "、" : pattern);
    }
    const sentence = word(pattern);
    const parts = sentence.split(PLACE);
    return parts.map((part, i) => (i % 2 ? said(values[part], sentence) : part)).join("");
  }
}

// An error with something to say.
export function problem(told) {
  return Object.assign(new Error(String(told)), { told });
}
