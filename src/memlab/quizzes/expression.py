"""Expressions in the data of quizzes: memlab's formulas, numbers and arithmetic, nothing else.

    value("text(kv_cache.per_token(32, kv_heads=8, head_dim=128))", {})  ->  "128 KiB"

What an expression may name: the functions of PLAIN and OFFERED (`Model`, `Run`, `estimate`, `text`
...), the modules of `memlab.terms` with their public formulas (`kv_cache.per_token`), and what the
file itself has named. What it may do: arithmetic, comparisons, `and`, `or`, `not`, `a if b else c`,
calls, attributes, indexing, lists and tuples. Everything else (lambdas, comprehensions,
assignments, imports, names with underscores) is refused by its name, so that a file of questions
can compute and can do nothing.
"""

import ast
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from .. import terms

NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple),
    *(ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop),
    *(ast.BoolOp, ast.boolop, ast.IfExp, ast.Call, ast.keyword, ast.Attribute, ast.Subscript),
)
# Module of memlab -> what an expression may use of it.
OFFERED = {
    "adapters": ("Lora",),
    "devices": ("device",),
    "engines": ("Engine", "pool"),
    "estimate": ("by_component", "estimate"),
    "fit": ("largest_batch", "limit_of", "longest_sequence"),
    "formats": ("bits_per_value", "bytes_per_value", "format_of", "storage"),
    "model": ("Model",),
    "model.checkpoint_file": ("sizes",),
    "recipe": ("Recipe",),
    "run": ("Run",),
    "sharding": ("FsdpPolicy", "Sharding"),
    "step": ("simulate",),
    "step.core.moments": ("hills",),
    "units": ("GB", "GiB", "KiB", "MB", "MiB", "TiB", "text"),
}
PLAIN: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "sum": sum,
    "digits": lambda number, count: f"{number:,.{count}f}",
    "percent": lambda part, count=0: f"{part:.{count}%}",
}


def value(words: str, names: Mapping[str, Any]) -> Any:
    """What an expression gives.

    names       of the file: name -> value
    Raises      ValueError for what no expression may do, and for one that cannot be computed
    """
    try:
        tree = ast.parse(words, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{words!r} is no expression: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            raise ValueError(f"{words!r}: an expression may not have {type(node).__name__}")
        name = getattr(node, "attr", getattr(node, "id", ""))
        if name.startswith("_") or name in ("format", "format_map"):
            raise ValueError(f"{words!r}: an expression may not name {name!r}")
    try:
        return eval(compile(tree, words, "eval"), {"__builtins__": {}}, {**known(), **names})
    except Exception as error:
        raise ValueError(f"{words!r} has no value: {type(error).__name__}: {error}") from error


@cache
def known() -> dict[str, Any]:
    """Every name that an expression may use."""
    found: dict[str, Any] = dict(PLAIN)
    for module, offered in OFFERED.items():
        found |= {name: getattr(import_module(f"memlab.{module}"), name) for name in offered}
    for each in pkgutil.iter_modules(terms.__path__):
        formulas = import_module(f"{terms.__name__}.{each.name}")
        own = {
            n: f
            for n, f in inspect.getmembers(formulas, inspect.isfunction)
            if f.__module__ == formulas.__name__ and not n.startswith("_")
        }
        found[each.name] = SimpleNamespace(**own)
    return found
