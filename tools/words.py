"""The words of tools/words.toml that stand in a page that was rid of them.

python tools/words.py      a line for each, and exit status 1 if there is any
"""

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "words.toml"
CODE = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)", re.DOTALL)


def prose(path):
    """A page in words: its Markdown without code, formulas and addresses, and its captions."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return CODE.sub(" ", text)
    parts = []
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append("".join(cell["source"]))
        shown = cell["metadata"].get("mystnb", {})
        parts += [shown.get(group, {}).get(key, "") for group, key in SHOWN]
    return CODE.sub(" ", "\n\n".join(parts))


SHOWN = (("image", "alt"), ("figure", "caption"))


def pages():
    """The pages that the list holds for: those it names, and each chapter with Key points."""
    named = tomllib.loads(LIST.read_text(encoding="utf-8"))["pages"]["pages"]
    chapters = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    done = [path for path in chapters if '"## Key points' in path.read_text(encoding="utf-8")]
    return [ROOT / name for name in named] + done


def found(text):
    """Sentences on each word of the list that stands in a text."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["words"]
    for pattern, instead in listed.items():
        for match in re.finditer(pattern, text):
            around = " ".join(text[max(0, match.start() - 30) : match.end() + 30].split())
            yield f"{match[0]!r} in '… {around} …'; write: {instead}"


def main():
    lines = [f"{path.relative_to(ROOT)}: {line}" for path in pages() for line in found(prose(path))]
    print("\n".join(lines) or f"{len(pages())} pages, none of the words of {LIST.name}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
