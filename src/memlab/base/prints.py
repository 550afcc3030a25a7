"""What the code of a cell prints, in the reader's language: its own sentences, with their values.

    print(f"two norms in {layers} layers: {text(more)} more")

is the message "two norms in {1} layers: {2} more" with two values. In a notebook that runs in
another language each such `print` looks its message up and puts the values in; the code that a
reader sees stays the English one. tools/i18n asks the same functions which messages a notebook has.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any, TypeGuard

from .messages import ENGLISH, PLACE, has_words, language, number, template, told

TOLD, FIGURE = "__memlab_told__", "__memlab_figure__"
QUIET = {"sep", "file"}  # what makes of a print no sentence


def messages(source: str) -> list[str]:
    """The messages that a cell's prints have, and the words that it chooses from inside them."""
    found = []
    for call in calls(ast.parse(source)):
        pattern, values = message(call)
        found.append(pattern)
        for value in values:
            for node in ast.walk(value):
                if isinstance(node, ast.IfExp):
                    found += [
                        side.value
                        for side in (node.body, node.orelse)
                        if isinstance(side, ast.Constant) and isinstance(side.value, str)
                    ]
    return list(dict.fromkeys(found))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The prints of sentences: with a text of their own, on a line of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_sentence(node):
            yield node


def is_sentence(node: ast.Call) -> bool:
    named = isinstance(node.func, ast.Name) and node.func.id == "print"
    if not named or any(key.arg in QUIET or key.arg is None for key in node.keywords):
        return False
    if any(isinstance(each, ast.Starred) for each in node.args):
        return False
    return any(isinstance(each, ast.JoinedStr) or _is_text(each) for each in node.args)


def message(call: ast.Call) -> tuple[str, list[ast.expr]]:
    """The message of a print, {1}, {2} … in the places of its values, and the values."""
    values: list[ast.expr] = []

    def place(value: ast.expr) -> str:
        values.append(value)
        return f"{{{len(values)}}}"

    parts = []
    for each in call.args:
        if isinstance(each, ast.JoinedStr):
            inner = (part.value if _is_text(part) else place(part) for part in each.values)
            parts.append("".join(map(str, inner)))
        else:
            parts.append(str(each.value) if _is_text(each) else place(each))
    return " ".join(parts), values


class Telling(ast.NodeTransformer):
    """Each print of a sentence looks its message up."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not is_sentence(node):
            return self.plain(node)
        pattern, values = message(node)
        shown = [
            ast.JoinedStr([value]) if isinstance(value, ast.FormattedValue) else value
            for value in values
        ]
        name = ast.Name(TOLD, ast.Load())
        node.args = [ast.Call(name, [ast.Constant(pattern), *shown], [])]
        return ast.fix_missing_locations(node)

    def plain(self, node: ast.Call) -> ast.AST:
        """A print of one value: a figure stands as the language writes it, all else as it is."""
        if isinstance(node.func, ast.Name) and node.func.id == "print" and len(node.args) == 1:
            if not isinstance(node.args[0], ast.Starred):
                node.args = [ast.Call(ast.Name(FIGURE, ast.Load()), node.args, [])]
        return ast.fix_missing_locations(node)


def figure(value: object) -> object:
    """Figures with their units as the language writes them; another value is given back."""
    if not isinstance(value, (int, float, str)) or isinstance(value, bool):
        return value
    return value if has_words(PLACE.sub(" ", template(str(value))[0])) else number(str(value))


def listen() -> None:
    """In a notebook of another language, let the prints of its cells look their messages up."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or language() == ENGLISH or TOLD in shell.user_ns:
        return
    for name, function in ((TOLD, told), (FIGURE, figure)):
        shell.user_ns[name] = shell.user_ns_hidden[name] = function
    shell.ast_transformers.append(Telling())


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
