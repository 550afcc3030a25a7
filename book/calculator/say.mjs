// The calculator's sentences in the language of the page, as memlab.base.message renders them.
import { written } from "./numerals.mjs";

const PLACE = /\{(\w+)\}/;
const IDEOGRAPH = /[\u3000-\u9fff\uff00-\uffef]/;

// Where there are ideographs, in a list or around it, its commas are of their own.
function listed(mark, parts, within) {
  const wide = mark === ", " && IDEOGRAPH.test(within + parts.join(""));
  return parts.join(wide ? "、" : mark);
}

// words: English -> translation. language: of the page, which writes numbers in its own way.
// What is said: a text, [a pattern, what stands in its {places}], or [a mark, what it parts].
export function speaker(words, language) {
  const known = new Map(Object.entries(words ?? {}));
  const word = (text) => known.get(text) ?? String(text);

  return (told) => written(said(told), language);

  function said(told, within = "") {
    if (!Array.isArray(told)) return word(told);
    const [pattern, values] = told;
    if (Array.isArray(values)) return listed(pattern, values.map((each) => said(each)), within);
    const sentence = word(pattern);
    const parts = sentence.split(PLACE);
    return parts.map((part, i) => (i % 2 ? said(values[part], sentence) : part)).join("");
  }
}

// An error with something to say.
export function problem(told) {
  return Object.assign(new Error(String(told)), { told });
}
