"""Chapters as plain text: write one in any editor, turn it into a notebook, and back.

    python tools/notebook_text.py from-text chapter.md notebooks/02_weights.ipynb
    python tools/notebook_text.py to-text notebooks/02_weights.ipynb chapter.md

A cell begins with a line `%% md ID` or `%% code ID`, followed by what the cell's metadata holds:

    %% md title
    (weights)=
    # Count the weights

    %% code figure-bar tags=figure,hide-input alt="One bar …" caption="Where …" name=fig-weights
    ledger_bar(ledger)

`alt`, `caption` and `name` are the image's alt text and the figure's caption and label; anything
else a cell carries stands in `meta={…}`, as JSON at the end of the line. Blank lines around a cell
do not count. Outputs are not kept: run the notebook afterwards.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat

HEAD = re.compile(r"^%% (md|code|raw)\b *(.*)$")
PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\{.*\}$|[^\s"{]+)(?: +|$)')
# Where the short words of a head line live inside a cell's metadata.
SHORT = {"alt": ("image", "alt"), "caption": ("figure", "caption"), "name": ("figure", "name")}
KINDS = {"md": "markdown", "code": "code", "raw": "raw"}


def from_text(text):
    """The notebook, without outputs, that a chapter's text describes."""
    nb = nbformat.v4.new_notebook()
    nb.nbformat_minor = 5
    for number, line in enumerate(text.splitlines(), 1):
        if head := HEAD.match(line):
            nb.cells.append(_cell(head[1], head[2], f"line {number}"))
        elif nb.cells:
            nb.cells[-1].source += line + "\n"
        elif line.strip():
            raise ValueError(f"line {number}: text before the first '%% md ID' or '%% code ID'")
    ids = [cell.id for cell in nb.cells]
    if double := sorted({i for i in ids if ids.count(i) > 1}):
        raise ValueError(f"cell id used twice: {', '.join(double)}")
    for cell in nb.cells:
        cell.source = trim(cell.source)
    return nb


def to_text(nb):
    """The text that `from_text` turns back into the same cells."""
    blocks = []
    for cell in nb.cells:
        if any(HEAD.match(line) for line in cell.source.splitlines()):
            raise ValueError(f"cell {cell.id}: a line of its source looks like the head of a cell")
        meta = json.loads(json.dumps(cell.metadata))
        words = [f"%% {next(k for k, v in KINDS.items() if v == cell.cell_type)} {cell.id}"]
        if "tags" in meta:
            words.append("tags=" + ",".join(meta.pop("tags")))
        for short, (group, key) in SHORT.items():
            if key in meta.get("mystnb", {}).get(group, {}):
                value = meta["mystnb"][group].pop(key)
                plain = isinstance(value, str) and re.fullmatch(r"[\w.:-]+", value)
                words.append(f"{short}={value if plain else json.dumps(value, ensure_ascii=False)}")
                meta["mystnb"] = {k: v for k, v in meta["mystnb"].items() if v}
        if meta := {key: value for key, value in meta.items() if value != {}}:
            words.append("meta=" + json.dumps(meta, ensure_ascii=False))
        blocks.append(" ".join(words) + "\n" + trim(cell.source) + "\n")
    return "\n".join(blocks)


def _cell(kind, rest, where):
    name, _, rest = rest.partition(" ")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"{where}: cell id {name!r} is not a slug such as 'formula-weights'")
    pairs: dict[str, Any] = {}
    end = 0
    rest = rest.strip()
    while end < len(rest):
        if not (pair := PAIR.match(rest, end)):
            raise ValueError(f'{where}: cannot read {rest[end:]!r}; wanted key=word or key="words"')
        if pair[1] not in ("tags", "meta", *SHORT):
            known = ", ".join(["tags", *SHORT, "meta"])
            raise ValueError(f"{where}: unknown key {pair[1]!r}; known: {known}")
        pairs[pair[1]] = json.loads(pair[2]) if pair[2][0] in '"{' else pair[2]
        end = pair.end()
    meta = pairs.get("meta", {})
    for short, (group, key) in SHORT.items():
        if short in pairs:
            meta.setdefault("mystnb", {}).setdefault(group, {})[key] = pairs[short]
    if "tags" in pairs:
        meta["tags"] = pairs["tags"].split(",")
    new = getattr(nbformat.v4, f"new_{KINDS[kind]}_cell")
    return new(source="", id=name, metadata=meta)


def trim(source):
    """The source without the blank lines around it and the spaces that end it."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", source.rstrip())


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("from-text", "to-text"):
        print(__doc__, file=sys.stderr)
        return 2
    command, source, target = arguments[0], Path(arguments[1]), Path(arguments[2])
    if command == "from-text":
        nbformat.write(from_text(source.read_text(encoding="utf-8")), target)
    else:
        nb = nbformat.read(source, as_version=4)
        target.write_text(to_text(nb), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
