// Numbers as a language writes them, as memlab.base.numerals turns them at the build.

const MARKS = { "pt-BR": [".", ","] };
const RUN = /\d+(?:[.,]\d+)*/g;
const GROUPED = /^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/;
const DECIMAL = /^\d+\.\d+$/;
const NAMED = new RegExp(
  "(?:^|[^\\w/])(?:NAMES)[`*\\]]*(?:\\([^()\\s]*\\))?\\s*$".replace(
    "NAMES",
    "accelerate|bitsandbytes|capability|CUDA|cuDNN|DeepSpeed|figura|huggingface\\\\?_hub|Liger|" +
      "Llama|memlab|NCCL|numpy|peft|Python|PyTorch|Qwen|safetensors|seção|section|SGLang|" +
      "Specification|tabela|table|torch|torchao|torchao/optim|transformers|trl|v|versão|version|vLLM",
  ),
  "i",
);
const FLAG = /(?:^|\s)--[\w-]+ $/;
const VERSIONS = ["1.13", "2.11", "2.12", "2.13", "5.23"];
const ARTICLE = /(?:(?:^|\s|\()(?:a|o|da|do|na|no|pela|pelo|rodamos [ao]|the|of)|,) $/;
const CAPABILITY = /^\d{1,2}\.\d$/;
const UNIT = /^(?:x|[KMGT]i?B|ms|µs|s)(?![A-Za-z])/;
const MEASURED = /^\s?(?:[KMGT]?i?B\b|%|×|x\b|bytes?\b|ms\b|s\b|µs)/;
const PAPER = /^\d{4}\.\d{4,5}$/;
const letter = (c) => c !== undefined && /\p{L}/u.test(c);

export function written(text, language) {
  const marks = MARKS[language];
  if (!marks) return text;
  return text.replace(RUN, (digits, start) => {
    if (!isNumber(text.slice(0, start), digits, text.slice(start + digits.length))) return digits;
    const [whole, after] = digits.split(".");
    return whole.replaceAll(",", marks[0]) + (after ? marks[1] + after : "");
  });
}

// What somebody who types a number may mean where 1.5 is written 1,5: that, or what code has.
export function readings(text, language) {
  const marks = MARKS[language];
  if (!marks) return [text];
  const own = text.replace(/[.,]/g, (mark) => (mark === marks[0] ? "," : "."));
  return own === text ? [text] : [own, text];
}

function isNumber(before, digits, after) {
  const grouped = GROUPED.test(digits);
  if (!grouped && !DECIMAL.test(digits)) return false;
  if (glued(before, after)) return false;
  if (grouped) return true;
  if (PAPER.test(digits) && !after.startsWith(" ")) return false;
  if (NAMED.test(before) || FLAG.test(before)) return false;
  if (MEASURED.test(after)) return true;
  if (CAPABILITY.test(digits) && before.includes("capability")) return false;
  return !(VERSIONS.includes(digits) && ARTICLE.test(before));
}

function glued(before, after) {
  const [earlier, last] = [before.at(-2), before.at(-1)];
  const digit = earlier !== undefined && /\d/.test(earlier);
  if (letter(last) || last === "_") if (!(last === "x" && digit)) return true;
  if (last !== undefined && "=\\.@#'".includes(last)) return true;
  if (last === '"' && !MEASURED.test(after)) return true;
  if (last === "/" && !digit) return true;
  if (last === "-" && (letter(earlier) || /["'_]/.test(earlier))) return true;
  if (letter(after[0]) || after[0] === "_") return !UNIT.test(after);
  return after[0] === "-" && letter(after[1]);
}
