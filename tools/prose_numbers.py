"""Every number in a chapter's prose is printed by a cell of that chapter: `unprinted(notebook)`.

    python tools/prose_numbers.py [PATH …]      list the numbers that no cell prints

A number counts when a unit follows it ("32.6 GiB", "26.1 %", "7 conversations", "2.1 times");
"half" or "three quarters" is a word. It is found as it was printed, thousands separators aside:

    a result   bytes, a share, a factor, a time, a power: an output of the page shows it. KiB to TB
               and % stand beside it there as well; a number of B may stand in a column.
    a given    a count, such as tokens, layers or values: an output shows it, or the page's code
               holds it as a number, or it belongs to the shape of a model that the code names.
               A size counts as given where it is a whole string of the code: limit="80 GB".

Text in code spans and in formulas is not prose, and what a reader needs (the bullet *You need*) is
no result. Captions and alternative texts are prose; the latter describe a picture to somebody who
does not see it, so they may round what is printed.
What remains, figures of other people above all, stands with its reason in prose_allowed.toml.
"""

import ast
import html
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import nbformat

from memlab import Model
from memlab.model.presets import PRESETS

ALLOWED = Path(__file__).with_name("prose_allowed.toml")
SIZES = "KiB MiB GiB TiB kB MB GB TB".split()
RESULTS = "B bytes byte times s ms W".split()
COUNTS = """bits blocks chunks codes conversations GPUs heads layers micro-batches numbers pages
parameters rows segments sequences tensors tokens values vectors weights words""".split()
SHAPE = "layers d_model d_ff heads kv_heads head_dim vocab positions parameter_count".split()
NUMBER = r"(?<![\w.,/^-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.,]*\d)|(?<![\w.,/^-])\d+(?:\.\d+)?"
# "8, 10 and 12 bytes" are three numbers of bytes. A B that touches its number is a model's name.
QUANTITY = re.compile(
    rf"((?:(?:{NUMBER})(?:, (?:and |or )?| (?:and|or|to) ))*(?:{NUMBER}))"
    rf"(?: ?({'|'.join(SIZES)}|%|×(?! *\d))| ((?:[bm]illion )?(?:{'|'.join(RESULTS + COUNTS)})|"
    r"[bm]illion))(?![\w-])"
)
SHOWN = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?) ?([KMGT]iB|[kMGT]B|%|[bm]illion)?")
# What is not prose: code, formulas, addresses; a lone number in a formula is one all the same.
NOT_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<https?://[^>]*>", re.DOTALL
)
NEEDED = re.compile(r"^[-*] +\*+You need\b.*(?:\n  .*)*", re.MULTILINE)
MARKUP = re.compile(r"<style.*?</style>|<[^>]+>", re.DOTALL)
PLAIN = re.compile(r"\$(\d[\d{},.]*)\$")


def unprinted(nb, chapter="", allowed=None):
    """Sentences, one for each number with a unit that the page says and no cell of it prints."""
    printed, given = _printed(nb), _given(nb)
    allowed = (_allowed() if allowed is None else allowed).get(chapter, {})
    for cell, words, rounded in _prose(nb):
        for number, unit in quantities(words):
            said = f"{number} {unit}"
            if said in allowed or _found(number, unit, printed, given, rounded):
                continue
            yield (
                f"cell {cell}: no cell of the page prints {said!r}. Print it in a code cell, say "
                f"it without a number, or, if it is somebody else's figure, add it to "
                f"tools/{ALLOWED.name} under [{chapter}] with the reason"
            )


def quantities(text):
    """The numbers with their units in some Markdown, in order: [("32.6", "GiB"), …]."""
    text = PLAIN.sub(lambda found: found[1].replace("{,}", ","), text)
    text = NOT_PROSE.sub(" ", text).replace("*", "").replace("\u00a0", " ")
    text = re.sub(r"\s+", " ", text)
    return [
        (number, found[2] or found[3])
        for found in QUANTITY.finditer(text)
        for number in re.findall(NUMBER, found[1])
    ]


def _found(number, unit, printed, given, rounded):
    value = number.replace(",", "")
    if unit in COUNTS and value in given:
        return True
    if unit in SIZES and f"{value} {unit}" in given:
        return True
    beside = unit if unit in (*SIZES, "%") else unit.partition(" ")[0]
    digits = len(value.partition(".")[2])
    for number, its_unit in printed:
        if beside in (*SIZES, "%", "billion", "million") and its_unit != beside:
            continue
        if value == number or rounded and value == f"{float(number):.{digits}f}":
            return True
    return False


def _prose(nb):
    """(cell id, words, whether they may round) for all that a page says outside its outputs."""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            yield cell.id, NEEDED.sub("", cell.source), False
        about = cell.metadata.get("mystnb", {})
        yield cell.id, about.get("figure", {}).get("caption", ""), False
        yield cell.id, about.get("image", {}).get("alt", ""), True


def _printed(nb):
    """Each number that an output shows, with the unit beside it or an empty text."""
    shown = []
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            texts = [output.get("text", ""), data.get("text/plain", "")]
            for kind in ("text/html", "image/svg+xml"):
                texts.append(MARKUP.sub(" ", data.get(kind, "")))
            shown += [html.unescape(text).replace("\u00a0", " ") for text in texts]
    found = set()
    for text in shown:
        for hit in SHOWN.finditer(text):
            found.add((hit[1].replace(",", ""), hit[2] or ""))
    return found


def _given(nb):
    """What the code holds: its numbers, sizes that are a whole string, shapes of named models."""
    given = set()
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
                continue
            if isinstance(node.value, (int, float)):
                given.add(f"{node.value}")
            elif isinstance(node.value, str) and node.value in PRESETS:
                given |= _shape(node.value)
            elif isinstance(node.value, str) and re.fullmatch(r"[\d.,]+ \w+", node.value):
                given.add(node.value.replace(",", ""))
    return given


@cache
def _shape(name):
    model = Model.preset(name)
    return {f"{getattr(model, name)}" for name in SHAPE}


@cache
def _allowed():
    return tomllib.loads(ALLOWED.read_text(encoding="utf-8"))


def main(paths):
    lines = []
    for path in map(Path, paths or sorted(ALLOWED.parent.parent.glob("notebooks/[0-9]*.ipynb"))):
        nb = nbformat.read(path, as_version=4)
        lines += [f"{path.name}: {line}" for line in unprinted(nb, path.stem)]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
