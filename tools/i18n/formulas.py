"""The words and numbers inside a page's formulas: mathematics stays, what is read is said.

    \\text{for } k > 1 \\text{ micro-batches}      \\mathrm{peak\\ falls\\ by}      8{,}192

The words of a formula are entries of their page's catalogue, in a context of their own, since the
"all" below a sum is not the "all" of a table.
"""

import re

from memlab.base.message import CONTEXT, is_sentence
from memlab.base.numerals import written

# Code, which stays, or a formula, in which a comma with braces parts no list.
FORMULA = re.compile(r"(`{3,}.*?`{3,}|`+[^`]*`+)|(\$\$.*?\$\$|(?<!\\)\$[^$]+\$)", re.S)
NUMBER = re.compile(r"(?<![\d.])\d+(?:\{,\}\d{3})*(?:\.\d+)?(?![\d.]*\d)")
WORDS = re.compile(r"\\(?:text|mathrm)\{(\s*)([^{}]*?)(\s*)\}")
CODE = re.compile(r"[.\w]*\(\)")


def words(text):
    """The entries of a page's formulas, in their order."""
    every = (formula[2] or "" for formula in FORMULA.finditer(text))
    found = (_key(one[2]) for each in every for one in WORDS.finditer(each))
    return [key for key in found if key]


def said(text, translations, language):
    """A page with its formulas in a language: their words, and its form of 8{,}192 and 1.5."""

    def one(found):
        key = _key(found[2])
        if key not in translations:
            return found[0]
        return f"\\text{{{found[1]}{translations[key]}{found[3]}}}"

    def formula(found):
        if found[1]:
            return found[1]
        return WORDS.sub(one, found[2] if written("0.5", language) == "0.5" else _numbers(found[2]))

    return FORMULA.sub(formula, text)


def _numbers(formula):
    def one(found):
        whole, _, after = found[0].partition(".")
        return whole.replace("{,}", ".") + ("{,}" + after if after else "")

    return NUMBER.sub(one, formula)


def _key(shown):
    """The entry of what stands between the braces; none for a name, a letter or code."""
    plain = shown.replace("\\ ", " ").strip()
    is_code = "\\" in plain or CODE.fullmatch(plain)
    return "" if is_code or not is_sentence(plain) else f"formula{CONTEXT}{plain}"
