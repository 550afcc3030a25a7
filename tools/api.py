"""The reference: every public name of memlab and every command, from the code that answers.

`tools/book.py` puts these where book/api.md says `<!-- api_functions -->` and so on. A docstring
has a fixed form, paragraphs and entries (`Raises      ValueError for ...`), and is shown as English
in every language: `samp` marks it as a program's own words, which nobody translates.
"""

import inspect
import os
import re
from html import escape
from typing import Any
from unittest.mock import patch

import memlab
from memlab.cli import COMMANDS, parser
from memlab.run.fields import CALL, TABLE, TRAIN
from memlab.sharding.sharding import FLAT

ENTRY = re.compile(r"(\S(?:.*?\S)?) {2,}(\S.*)")


def functions(_root):
    return "\n\n".join(
        section(one.__name__, paragraph(code(call(one.__name__, one))) + described(one))
        for one in public(inspect.isfunction)
    )


def classes(_root):
    return "\n\n".join(
        section(one.__name__, of_class(one) + within(one)) for one in public(inspect.isclass)
    )


def within(one):
    """Of a Sharding the values that its fields take: one class a scheme."""
    schemes = [scheme for _, scheme, _ in FLAT] if one is memlab.Sharding else []
    return "".join(
        paragraph(code(f"memlab.sharding.{scheme.__name__}")) + of_class(scheme)
        for scheme in schemes
    )


def units(_root):
    sizes = {name: size for name, size in offered() if isinstance(size, int)}
    return raw(paragraph(", ".join(code(f"{name} = {size:_}") for name, size in sizes.items())))


def commands(_root):
    """Each command with what its own `--help` prints, folded."""
    found = []
    with patch.dict(os.environ, {"COLUMNS": "80", "MEMLAB_LANG": "", "NO_COLOR": "1"}):
        for name in COMMANDS:
            one: Any = parser(name).of
            printed = f'<pre tabindex="0">{samp(one.format_help())}</pre>'
            summary = f"<summary>{code(f'memlab {name} --help')}</summary>"
            words = paragraph(samp(one.description or ""))
            found.append(section(f"memlab {name}", f"{words}<details>{summary}{printed}</details>"))
    return "\n\n".join(found)


def public(kind):
    """What memlab's face offers of one kind, in the order of the alphabet."""
    return [one for name, one in offered() if kind(one)]


def offered():
    """The names that memlab says it has, and what they are: it imports them when it is asked."""
    return [(name, getattr(memlab, name)) for name in sorted(memlab.__all__)]


def of_class(one):
    """What a class is, its fields, and what can be asked of it."""
    given = inspect.signature(one).parameters
    fields = {name: code(written(given[name])) for name in getattr(one, "__fields__", ())}
    silent = [field for name, field in fields.items() if name not in dict(apart(one)[1])]
    members = (
        (code(call(of(one, member) + name, getattr(one, name))), described(getattr(one, name)))
        for name, member in vars(one).items()
        if name[0] != "_" and name not in fields
    )
    bare = paragraph(", ".join(silent)) if silent else ""
    return described(one, fields, words_of(one)) + bare + definitions(members)


def words_of(one):
    """Of a run's fields what its table says beside the docstring: the words each may hold, when."""
    if one is not memlab.Run:
        return {}
    times = {TRAIN: "A training step's alone.", CALL: "A call's alone."}
    said = {}
    for field in TABLE:
        known = f"Known: {', '.join(f'`{word}`' for word in field.known)}." if field.known else ""
        said[field.name] = " ".join(filter(None, [known, times.get(field.only, "")]))
    return said


def of(one, member):
    """What a member is asked of: the class itself, or one of its values."""
    return f"{one.__name__}." if isinstance(member, classmethod | staticmethod) else "."


def described(one, fields=(), more=None):
    """A docstring: its paragraphs, and its entries as a list, those of fields under their kinds.

    more        what else is said of an entry, by its name
    """
    words, entries = apart(one)
    heads = dict(fields)
    also = {name: f"<br>{samp(said)}" for name, said in (more or {}).items() if said}
    shown = (
        (heads.get(name, samp(name)), samp(text) + also.get(name, "")) for name, text in entries
    )
    return "".join(paragraph(samp(each)) for each in words) + definitions(shown)


def apart(one):
    """The paragraphs of a docstring, and its entries: (name, what it says)."""
    words, entries = [""], []
    for line in re.sub(r"\n+ +", " ", inspect.getdoc(one) or "").split("\n"):
        if entry := ENTRY.fullmatch(line):
            entries.append(entry.groups())
        else:
            words = [*words, ""] if not line else [*words[:-1], f"{words[-1]} {line}".strip()]
    return list(filter(None, words)), entries


def call(name, one):
    """How a function, a method or a property is written where it is asked."""
    if isinstance(one, property):
        return name
    given = inspect.signature(one).parameters.values()
    stars = ["*"] if any(each.kind is each.KEYWORD_ONLY for each in given) else []
    plain = [written(each) for each in given if each.name != "self" and each.kind not in LATE]
    late = [written(each) for each in given if each.kind in LATE]
    return f"{name}({', '.join([*plain, *stars, *late])})"


LATE = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


def written(given):
    """An argument with its kind and its default, `Run()` for one with fields of its own."""
    default = given.default
    if hasattr(default, "__fields__") and default == type(default)():
        default = type("", (), {"__repr__": lambda _: f"{type(given.default).__name__}()"})()
    kind = given.annotation
    kind = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    name = str(given.replace(annotation=given.empty, default=given.empty))
    said = "" if given.annotation is given.empty else f": {kind}"
    return name + said + ("" if default is given.empty else f" = {default!r}")


def section(name, html):
    return f"### `{name}`\n\n{raw(html)}"


def raw(html):
    # Where a dollar stood, the page would look for a formula.
    return f':::{{raw}} html\n<div class="memlab-api">{html.replace("$", "&#36;")}</div>\n:::'


def definitions(pairs):
    rows = "".join(f"<dt>{head}</dt><dd>{text}</dd>" for head, text in pairs)
    return f"<dl>{rows}</dl>" if rows else ""


def paragraph(html):
    return f"<p>{html}</p>"


def code(text):
    return f"<code>{escape(text, quote=False)}</code>"


def samp(text):
    """A program's own words; what they set off as code is set off here."""
    words = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text, quote=False))
    return english(words)


def english(html):
    return f'<samp lang="en">{html}</samp>'
