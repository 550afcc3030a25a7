"""Numbers as a language writes them: 8,192 and 8.318 are 8.192 and 8,318 in Portuguese.

Catalogues, formulas and code keep the English form; a text is turned once, when it is shown. What
only looks like a number stays: a version, a section, the 3.1 of a model's name, code. The page's
calculator does the same in book/calculator/numerals.mjs, and a test compares the two.
"""

import re

# Language -> what parts thousands, what stands before the decimals. All others write as English.
MARKS = {"pt-BR": (".", ",")}

RUN = re.compile(r"\d+(?:[.,]\d+)*")
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
DECIMAL = re.compile(r"\d+\.\d+")
# A name that is followed by a version or by the number of a part.
NAMES = (
    "accelerate|bitsandbytes|capability|CUDA|cuDNN|DeepSpeed|figura|huggingface\\\\?_hub|Liger|"
    "Llama|memlab|NCCL|numpy|peft|Python|PyTorch|Qwen|safetensors|seção|section|SGLang|"
    "Specification|tabela|table|torch|torchao|torchao/optim|transformers|trl|v|versão|version|vLLM"
)
# Between the two a mark may close: code, emphasis, a link.
NAMED = re.compile(rf"(?:^|[^\w/])(?:{NAMES})[`*\]]*(?:\([^()\s]*\))?\s*$", re.I)
FLAG = re.compile(r"(?:^|\s)--[\w-]+ $")
# Versions that a text may name without the name: "do 2.12 em diante".
VERSIONS = {"1.13", "2.11", "2.12", "2.13", "5.23"}
ARTICLE = re.compile(r"(?:(?:^|\s|\()(?:a|o|da|do|na|no|pela|pelo|rodamos [ao]|the|of)|,) $")
CAPABILITY = re.compile(r"\d{1,2}\.\d")
# What may touch a number from behind and leave it one; "0.6B" is the size in a model's name.
UNIT = re.compile(r"(?:x|[KMGT]i?B|ms|µs|s)(?![A-Za-z])")
# Nothing but digits, signs and units: no language has other words for it.
FIGURES = re.compile(
    r"(?:[\d\s.,:;/·()\[\]+=−~≈→%×-]|(?<![A-Za-z])(?:(?:k|[KMGT]i?)?B(?:/s|/param)?|ms|µs|x)\b)*"
)
PAPER = re.compile(r"\d{4}\.\d{4,5}")  # arXiv's names: 2205.14135


def written(text: str, language: str, kept: list[tuple[int, int]] | None = None) -> str:
    """A text with its numbers as the language writes them.

    Example     written("8,192 tokens, 8.318 GiB", "pt-BR") -> "8.192 tokens, 8,318 GiB"
    Shapes      kept: (start, end) of parts that stay, such as code
    Leaves out  numbers without a mark (8192), and marks that no English number has ("1,5")
    """
    if language not in MARKS:
        return text
    thousands, decimal = MARKS[language]

    def one(found: re.Match[str]) -> str:
        start, end = found.span()
        if any(a <= start < b for a, b in kept or ()):
            return found[0]
        if not is_number(text[:start], found[0], text[end:]):
            return found[0]
        whole, _, after = found[0].partition(".")
        return whole.replace(",", thousands) + (decimal + after if after else "")

    return RUN.sub(one, text)


def is_figures(text: str) -> bool:
    """Whether a text is figures with their units and no word: "8.318 GiB", "4 x 2,048"."""
    return bool(FIGURES.fullmatch(text))


def is_number(before: str, digits: str, after: str) -> bool:
    """Whether digits between these texts are an English number with a mark, and no name or code."""
    grouped = GROUPED.fullmatch(digits)
    if not grouped and not DECIMAL.fullmatch(digits):
        return False
    if _glued(before, after):
        return False
    if grouped:
        return True
    if PAPER.fullmatch(digits) and not after.startswith(" "):
        return False
    if NAMED.search(before) or FLAG.search(before):
        return False
    if _has_unit(after):
        return True
    # "capability 8.0 e recusa 8.6": what is compared with a version is one.
    if CAPABILITY.fullmatch(digits) and "capability" in before:
        return False
    return not (digits in VERSIONS and ARTICLE.search(before))


def _glued(before: str, after: str) -> bool:
    """Whether a letter or a mark of code touches the number."""
    last, one_before = before[-1:], before[-2:-1]
    if last.isalpha() or last == "_":
        # 2,048x2,048 is two numbers, bf16 is a name.
        if not (last == "x" and one_before.isdigit()):
            return True
    if last in ("=", "\\", ".", "@", "#", "'") and last:
        return True
    if last == '"' and not _has_unit(after):  # quoted words may begin with an amount
        return True
    if last == "/" and not one_before.isdigit():
        return True
    if last == "-" and one_before in ("'", '"') and one_before:
        return True
    if last == "-" and (one_before.isalpha() or one_before == "_"):
        return True
    follows = after[:1]
    if follows.isalpha() or follows == "_":
        return not UNIT.match(after)
    return follows == "-" and after[1:2].isalpha()


def _has_unit(after: str) -> bool:
    return bool(re.match(r"\s?(?:[KMGT]?i?B\b|%|×|x\b|bytes?\b|ms\b|s\b|µs)", after))
