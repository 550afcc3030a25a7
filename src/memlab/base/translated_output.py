"""What the code of a cell prints, in the reader's language: its own sentences, with their values.

    print(f"two norms in {layers} layers: {text(more)} more")

is the message "two norms in {1} layers: {2} more" with two values. In a notebook that runs in
another language each such `print` looks its message up and puts the values in; the code that a
reader sees stays the English one. tools/i18n asks the same functions which messages a notebook has.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from .message import PLACE, Listed, Localized, Message
from .messages import ENGLISH, HEARD, has_words, language, number, say
from .numerals import is_figures

TOLD, FIGURE, TEXT, LIST = (f"__memlab_{x}__" for x in ("told", "figure", "text", "list"))
QUIET = {"sep", "file"}  # what makes of a print no sentence


def messages(source: str) -> list[str]:
    """The messages that a cell's prints have, and the words that it chooses from inside them."""
    found = []
    for call in calls(ast.parse(source)):
        pattern, values = message(call.args)
        found.append(pattern)
        for node in (node for value in values for node in ast.walk(value)):
            if isinstance(node, ast.IfExp):
                sides = filter(_is_text, (node.body, node.orelse))
                found += [str(each.value) for each in sides]
            if isinstance(node, ast.JoinedStr) and has_values(node):
                found.append(message([node])[0])
    return list(dict.fromkeys(found))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The prints of sentences: with a text of their own, on a line of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and speaks(node):
            yield node


def speaks(node: ast.Call) -> bool:
    named = isinstance(node.func, ast.Name) and node.func.id == "print"
    if not named or any(key.arg in QUIET or key.arg is None for key in node.keywords):
        return False
    if any(isinstance(each, ast.Starred) for each in node.args):
        return False
    return any(isinstance(each, ast.JoinedStr) or _is_text(each) for each in node.args)


def has_values(node: ast.JoinedStr) -> bool:
    """Whether an f-string says more than one figure, and has no braces that would be a place."""
    texts = [str(part.value) for part in node.values if _is_text(part)]
    if any(PLACE.search(text) for text in texts) or len(texts) == len(node.values):
        return False
    plain = any(isinstance(x, ast.FormattedValue) and x.format_spec is None for x in node.values)
    return plain or any(map(has_words, texts))


def message(parts: list[ast.expr]) -> tuple[str, list[ast.expr]]:
    """The message of f-strings and values side by side, {1}, {2} … in the places of its values."""
    values: list[ast.expr] = []

    def place(value: ast.expr) -> str:
        values.append(value)
        return f"{{{len(values)}}}"

    found = []
    for each in parts:
        if isinstance(each, ast.JoinedStr):
            inner = (part.value if _is_text(part) else place(part) for part in each.values)
            found.append("".join(map(str, inner)))
        else:
            found.append(str(each.value) if _is_text(each) else place(each))
    return " ".join(found), values


class Telling(ast.NodeTransformer):
    """Each text that a cell makes with values keeps them, and each print looks its message up."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if speaks(node):
            node.args = [self.made(TOLD, node.args)]
            return ast.fix_missing_locations(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            if _is_text(node.func.value) and len(node.args) == 1:
                return self.call(LIST, [node.func.value, *node.args], node)
        if isinstance(node.func, ast.Name) and node.func.id == "print" and len(node.args) == 1:
            if not isinstance(node.args[0], ast.Starred):
                node.args = [self.call(FIGURE, node.args, node)]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        if has_values(node):
            return ast.fix_missing_locations(ast.copy_location(self.made(TEXT, [node]), node))
        return self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)  # what it is formatted with is no message
        return node

    def made(self, name: str, parts: list[ast.expr]) -> ast.Call:
        pattern, values = message(parts)
        shown = []
        for value in map(self.visit, values):
            if isinstance(value, ast.FormattedValue):
                bare = value.format_spec is None and value.conversion == -1
                value = value.value if bare else ast.JoinedStr([value])
            shown.append(value)
        return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(pattern), *shown], [])

    def call(self, name: str, arguments: list[ast.expr], there: ast.AST) -> ast.Call:
        made = ast.Call(ast.Name(name, ast.Load()), arguments, [])
        return ast.fix_missing_locations(ast.copy_location(made, there))


def text(pattern: str, *values: object) -> Message:
    """What an f-string gives, with its values: messages as they are, all others formatted."""
    return Message(
        pattern,
        *(x if isinstance(x, (Message, Localized)) else format(x, "") for x in values),
    )


def sentence(pattern: str, *values: object) -> str:
    """The same in the language in use."""
    return say(text(pattern, *values))


def joined(mark: str, parts: Iterable[str]) -> str:
    """What `mark.join(parts)` gives; where one of them is a message, as a list of them."""
    found = list(parts)
    return Listed(mark, found) if any(isinstance(x, Message) for x in found) else mark.join(found)


def figure(value: object) -> object:
    """A message in the language, figures with their units as it writes them; else the value."""
    if isinstance(value, (Message, Localized)):
        return say(value)
    if not isinstance(value, (int, float, str)) or isinstance(value, bool):
        return value
    return number(str(value)) if is_figures(str(value)) else value


HELPERS = {TOLD: sentence, FIGURE: figure, TEXT: text, LIST: joined}  # what the cells call


def listen() -> None:
    """In a notebook of another language, let its cells keep the values of what they say.

    Also where tools/notebooks.py asks which messages a chapter has.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or TOLD in shell.user_ns or (language() == ENGLISH and not HEARD):
        return
    shell.user_ns |= HELPERS
    shell.user_ns_hidden |= HELPERS
    shell.ast_transformers.append(Telling())


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
