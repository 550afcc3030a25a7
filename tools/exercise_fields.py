"""What the fields under the exercises of a page know: the answers, and the judge that runs there.

    python tools/exercise_fields.py           compute the answers of all exercises and write them
    python tools/exercise_fields.py check     write nothing; exit status 1 if anything is new

Some answers are peaks of simulated steps, or need torch. So they are computed here, by the same
functions as in a notebook, and kept in book/exercises.json; a test holds them against those. A page
gets those of its chapter, and memlab's own judge (memlab.exercises.field), which MicroPython runs.
"""

import json
import re
import sys
from pathlib import Path

from memlab.page.files import HERE, bare, text

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "book" / "exercises.json"
PLACE = "_static/exercises"
MODULES = ("units", "exercises/number", "exercises/judge", "exercises/field")
NAMED = re.compile(r"\*\*Exercise[^(*]*\((\w+),")  # **Exercise 1 (build, 6 min).**
ASKED = re.compile(r'check\("(ex-[\w-]+)"')


def kept():
    """Chapter -> exercise -> what its field knows, in English."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def places():
    """Exercise -> (chapter, kind), in the order of the book."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        kind = ""
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                kind = (NAMED.findall(source) or [kind])[-1]
            elif "exercise" in cell["metadata"].get("tags", []):
                (name,) = ASKED.findall(source)
                found[name] = path.stem, kind
    return found


def known(one):
    """What a field knows of an exercise: numbers as texts, since a browser would round them."""
    answer = one.answer()
    if isinstance(answer, str):
        raise ValueError(f"{one.name}: a field reads numbers, and this answer is {answer!r}")
    wrong = [[_ratio(slip()), sentence] for slip, sentence in one.wrong.items()]
    return {"right": _ratio(answer), "unit": one.unit, "hint": one.hint, "wrong": wrong}


def _ratio(value):
    above, below = value.as_integer_ratio()
    return str(above) if below == 1 else f"{above}/{below}"


def made():
    """What `kept` should say: every exercise of the book is asked."""
    from memlab import exercises

    found: dict[str, dict] = {}
    for name, (chapter, kind) in places().items():
        found.setdefault(chapter, {})[name] = {"kind": kind} | known(exercises._exercise(name))
    return found


def files():
    """Path in the engine -> text of the file."""
    found = {f"memlab/{name}__init__.py": "" for name in ("", "base/", "exercises/")}
    for name in MODULES:
        found[f"memlab/{name}.py"] = bare(text(f"{name}.py"))
    found["memlab/base/message.py"] = bare(text(f"{HERE}message.py"))
    return found


def key():
    """What the pages are made from and no folder of the book holds."""
    return json.dumps(files())


def sentences(fields):
    """All that the judge may say of these exercises, for a translator: texts and patterns."""
    from memlab.exercises import judge

    found = [told for name, told in vars(judge).items() if name.isupper() and isinstance(told, str)]
    for one in fields.values():
        found += [f"{{1}} {one['unit']}", one["hint"], *(sentence for _, sentence in one["wrong"])]
    return found


def stage(source, words=None, language="en"):
    """Lay the files beside the pages of a language.

    words       English -> translation, of memlab's own messages; None for the English pages
    """
    target = source / PLACE
    target.mkdir(parents=True)
    (source / FILE.name).unlink(missing_ok=True)
    (target / "python.json").write_text(json.dumps(files()), encoding="utf-8")
    for chapter, fields in kept().items():
        given = {"exercises": fields}
        if words is not None:
            spoken = {told: words[told] for told in sentences(fields) if told in words}
            given |= {"words": spoken, "language": language}
        path = target / f"{chapter}.json"
        path.write_text(json.dumps(given, ensure_ascii=False), encoding="utf-8")


def main(arguments):
    found = json.dumps(made(), ensure_ascii=False, indent=1) + "\n"
    same = FILE.exists() and FILE.read_text(encoding="utf-8") == found
    print("nothing is new" if same else "book/exercises.json says something else")
    if arguments[:1] == ["check"]:
        return not same
    FILE.write_text(found, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
