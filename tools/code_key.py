"""A hash over what code does: over its syntax, and over that of every module that it imports.

Comments, docstrings, annotations and the layout of lines do nothing, so they change no hash. A name
that is imported from a package counts with the package's own `__init__`; `memlab/__init__` alone
does not, for it is the doors to everything and no module of the core uses it.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
DOORS = SOURCE / "memlab" / "__init__.py"
BY_NAME = {"import_module", "__import__"}  # what imports by a name that is made at run time
SILENT = {"annotation", "returns", "type_comment", "type_params", "kind", "ctx"}


def key(*roots):
    """The hash of the modules in these files, and of all modules of memlab that they reach."""
    made = hashlib.sha256()
    for path in reached(*roots):
        name = path.relative_to(SOURCE) if SOURCE in path.parents else path.name
        made.update(f"{name}\n{_parsed(path)[0]}\n".encode())
    return made.hexdigest()


def reached(*roots):
    """The files of these modules and of all that they import from memlab, in order."""
    found, left = set(), list(roots)
    while left:
        path = left.pop()
        if path not in found and path != DOORS:
            found.add(path)
            left += imported(path)
    return sorted(found)


def imported(path):
    """The files of memlab that one module imports, wherever in it the statement stands.

    One that imports by a name made at run time may import every module of its folder.
    """
    inside = SOURCE in path.parents
    package: tuple[str, ...] = path.relative_to(SOURCE).parent.parts if inside else ()
    names = [package] if inside else []  # a package comes before its modules
    for node in _parsed(path)[1]:
        if isinstance(node, ast.Import):
            names += [tuple(each.name.split(".")) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = (*above, *(node.module or "").split(".")) if node.module else above
            names += [base, *((*base, each.name) for each in node.names)]
        else:
            names += [(*package, each.stem) for each in path.parent.glob("*.py")]
    beside = [] if inside else [path.parent / f"{name[0]}.py" for name in names if len(name) == 1]
    found = [file for file in beside if file.exists()]  # one tool may be made of several files
    return found + [file for name in names if name[:1] == ("memlab",) for file in files_of(name)]


def _parsed(path):
    """A module's syntax as text, and the nodes of it that import; parsed again when it changes."""
    stat = path.stat()
    return _of_file(path, stat.st_mtime_ns, stat.st_size)


@cache
def _of_file(path, _when, _size):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return bare(tree), [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (
            isinstance(node, ast.Attribute | ast.Name)
            and getattr(node, "attr", getattr(node, "id", "")) in BY_NAME
        )
    ]


def files_of(name):
    """The file of a module and those of the packages it lies in; none for a name inside one."""
    folders = [SOURCE.joinpath(*name[:depth], "__init__.py") for depth in range(1, len(name) + 1)]
    return [file for file in (*folders, SOURCE.joinpath(*name).with_suffix(".py")) if file.exists()]


def bare(node):
    """A syntax tree as text: the same in every version of Python, and without what does nothing."""
    if isinstance(node, list):
        return "[" + ",".join(bare(each) for each in node if not idle(each)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [
        f"{name}={bare(value)}"
        for name, value in ast.iter_fields(node)
        if name not in SILENT and value is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(fields)})"


def idle(node):
    """Whether a statement does nothing when it runs: a docstring, an import for types alone."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    named = node.test if isinstance(node, ast.If) else None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        named = node.targets[0]
    return isinstance(named, ast.Name) and named.id == "TYPE_CHECKING"
