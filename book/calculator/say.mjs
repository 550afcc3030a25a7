// The calculator's sentences in the language of the page, as tools/say.py says them at the build.
import { written } from "./numerals.mjs";

const PLACE = /\{(\w+)\}/;
const BETWEEN = [" + ", " · ", ", ", ": "]; // the outermost first

// words: English -> translation, where {a name} stands for whatever a sentence says there.
// language: of the page, which writes numbers in its own way.
export function speaker(words, language) {
  const known = new Map(Object.entries(words ?? {}));
  const patterns = [...known.keys()].filter((english) => PLACE.test(english)).map(expression);

  return (text) => written(say(text), language);

  function say(text) {
    if (known.has(text)) return known.get(text);
    for (const [english, shape] of patterns) {
      const found = shape.exec(text);
      if (!found) continue;
      const parts = known.get(english).split(PLACE);
      return parts.map((part, i) => (i % 2 ? say(found.groups[part]) : part)).join("");
    }
    const mark = BETWEEN.find((each) => text.includes(each));
    return mark ? text.split(mark).map(say).join(mark) : text;
  }
}

function expression(english) {
  const quoted = (part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  const parts = english.split(PLACE).map((p, i) => (i % 2 ? `(?<${p}>.+?)` : quoted(p)));
  return [english, new RegExp(`^${parts.join("")}$`, "s")];
}
