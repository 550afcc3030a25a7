"""Arrows run one way: the floors of docs/architecture.md, held against every import."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "architecture.md"
NO_MODULES = ("lab/broken", "page/micropython")  # programs, and stand-ins for other modules


def floors(page):
    """Room -> floor, from the block of the page."""
    block = re.search(r"```floors\n(.*?)```", page, re.S)
    found = {}
    for line in block[1].splitlines():
        number, *rooms = line.split()
        for room in rooms:
            assert room not in found, f"{room} stands on two floors"
            found[room] = int(number)
    return found


def modules(source):
    """Dotted name -> (file, whether it is a package)."""
    found = {}
    for path in sorted(source.glob("memlab/**/*.py")):
        inside = path.relative_to(source)
        if not any(part in inside.as_posix() for part in NO_MODULES):
            package = path.name == "__init__.py"
            parts = inside.parent.parts if package else inside.with_suffix("").parts
            found[".".join(parts)] = (path, package)
    return found


def imports(name, path, package, known):
    """What a module imports from memlab: (module, line, whether only a type checker reads it)."""
    home = name.split(".") if package else name.split(".")[:-1]

    def visit(node, typing):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for each in node.body:
                yield from visit(each, True)
            for each in node.orelse:
                yield from visit(each, typing)
            return
        if isinstance(node, ast.Import):
            yield from ((each.name, node.lineno, typing) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = home[: len(home) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for each in node.names:
                whole = f"{base}.{each.name}"
                yield (whole if whole in known else base), node.lineno, typing
        for each in ast.iter_child_nodes(node):
            yield from visit(each, typing)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [each for each in visit(tree, False) if each[0] in known and each[0] != name]


def graph(source):
    known = modules(source)
    return {name: imports(name, *where, known) for name, where in known.items()}


def room(name):
    return (name.split(".") + ["memlab"])[1] if "." in name else "memlab"


def arrows_up(found, levels):
    """Imports that go up, or to another room of the same floor."""
    return [
        f"{name}:{line} imports {other}: floor {levels[room(name)]} to {levels[room(other)]}"
        for name, each in found.items()
        for other, line, _ in each
        if room(name) != room(other) and levels[room(other)] >= levels[room(name)]
    ]


def circles(found):
    """Modules that reach each other by imports that are executed, as strongly connected sets."""
    arrows = {name: {o for o, _, typing in each if not typing} for name, each in found.items()}
    # A package is executed before its modules, and brings some of them along: that is no circle.
    arrows = {
        name: {other for other in each if not name.startswith(f"{other}.")}
        for name, each in arrows.items()
    }
    reach = {}

    def reached(name):
        seen, left = set(), [name]
        while left:
            new = arrows[left.pop()] - seen
            seen |= new
            left += new
        return seen

    reach = {name: reached(name) for name in arrows}
    return sorted(
        {tuple(sorted(b for b in reach[a] if a in reach[b])) for a in arrows if a in reach[a]}
    )


@pytest.fixture(scope="module")
def found():
    return graph(SOURCE)


def test_every_room_stands_on_a_floor_and_has_its_line(found):
    page = PAGE.read_text(encoding="utf-8")
    levels, rooms = floors(page), {room(name) for name in found}
    assert set(levels) == rooms
    described = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert rooms - described == {"memlab", "__main__"}


def test_no_import_goes_up(found):
    assert not arrows_up(found, floors(PAGE.read_text(encoding="utf-8")))


def test_no_modules_import_each_other_in_a_circle(found):
    assert not circles(found)


def test_places_that_the_page_names_exist():
    page = PAGE.read_text(encoding="utf-8")
    for place in set(re.findall(r"`([\w/]+(?:\.py|\.json|/))`", page)):
        inside = [ROOT / place, SOURCE / place, SOURCE / "memlab" / place]
        assert any(path.exists() for path in inside), place


def test_a_new_arrow_up_and_a_new_circle_are_found(tmp_path):
    """The test itself sees what it is for: at the top, inside a function, and for types alone."""
    home = tmp_path / "memlab"
    for file, code in {
        "__init__.py": "",
        "low.py": "def late():\n    from .high import x\n",
        "high.py": "from . import low\n",
        "typed.py": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from .high import x\n",
    }.items():
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).write_text(code)
    made = graph(tmp_path)
    levels = {"memlab": 3, "high": 2, "low": 1, "typed": 0}
    assert [each.split(" imports")[0] for each in arrows_up(made, levels)] == [
        "memlab.low:2",
        "memlab.typed:3",
    ]
    assert circles(made) == [("memlab.high", "memlab.low")]
