"""Expressions in the data of quizzes: memlab's formulas, numbers and arithmetic, nothing else.

    value("text(kv_cache.per_token(32, kv_heads=8, head_dim=128))", {})  ->  "128 KiB"

What an expression may name: what `memlab` offers (`Model`, `Run`, `estimate`, `storage`, `text`
...), the modules of `memlab.terms` with their public formulas (`kv_cache.per_token`), the functions
of OTHERS, and the values that the file itself has named. What it may do: arithmetic, comparisons,
`and`, `or`, `not`, `a if b else c`, calls, attributes, indexing, lists and tuples. Everything else
(lambdas, comprehensions, assignments, imports, names with underscores) is refused by its name, so
that a file of questions can compute and can do nothing.
"""

import ast
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from .. import face, terms

NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple),
    *(ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop),
    *(ast.BoolOp, ast.boolop, ast.IfExp, ast.Call, ast.keyword, ast.Attribute, ast.Subscript),
)
# Name -> (module, name in it): what chapters use and `memlab` itself does not offer.
OTHERS = {
    "Engine": ("engines", "Engine"),
    "FsdpPolicy": ("sharding", "FsdpPolicy"),
    "Lora": ("adapters", "Lora"),
    "bits_per_value": ("formats", "bits_per_value"),
    "by_component": ("estimate", "by_component"),
    "device": ("devices", "device"),
    "hills": ("step.core.moments", "hills"),
    "largest_batch": ("fit", "largest_batch"),
    "limit_of": ("fit", "limit_of"),
    "longest_sequence": ("fit", "longest_sequence"),
    "pool": ("engines", "pool"),
    "simulate": ("step", "simulate"),
    "tensor_sizes": ("model.checkpoint_file", "sizes"),
}
HIDDEN = {"check", "explain", "rehearse", "trace"}  # they print, watch, or need torch
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
    found: dict[str, Any] = {n: v for n, v in vars(face).items() if _public(n) and n not in HIDDEN}
    found |= PLAIN
    for name, (module, inside) in OTHERS.items():
        found[name] = getattr(import_module(f"memlab.{module}"), inside)
    for each in pkgutil.iter_modules(terms.__path__):
        formulas = import_module(f"{terms.__name__}.{each.name}")
        own = {
            n: f
            for n, f in inspect.getmembers(formulas, inspect.isfunction)
            if f.__module__ == formulas.__name__ and _public(n)
        }
        found[each.name] = SimpleNamespace(**own)
    return found


def _public(name: str) -> bool:
    return not name.startswith("_") and name not in ("TYPE_CHECKING", "annotations")
