"""Sphinx extension of this book: light and dark without a script.

The theme colours a page by an attribute, `data-theme`, that a script sets to `light` or `dark`. A
page as it was built says `auto`, for which the theme has no colours. So each rule of a style sheet
that names a mode is there once more for `auto`, where the reader's system asks for that mode.
"""

import re
from pathlib import Path

MODE = re.compile(r"""\[data-theme=(["']?)(light|dark)\1\]""")
AUTO = "[data-theme=auto]"
OPENS = ("@media", "@supports", "@layer")


def both(css):
    """A style sheet that has the rules of either mode for `auto` too."""
    made, at = [], 0
    while (start := css.find("{", at)) >= 0:
        end, depth = start + 1, 1
        while depth:
            depth += {"{": 1, "}": -1}.get(css[end], 0)
            end += 1
        head, body, at = css[at:start], css[start + 1 : end - 1], end
        comment, _, kind = head.rpartition("*/")
        if kind.strip().startswith(OPENS):
            made.append(f"{head}{{{both(body)}}}")
            continue
        made.append(f"{head}{{{body}}}")
        for mode in ("light", "dark"):
            named = [one for one in _selectors(kind) if mode in _modes(one)]
            if named and not kind.strip().startswith("@"):
                same = ",".join(MODE.sub(AUTO, one.strip()) for one in named)
                made.append(f"@media (prefers-color-scheme:{mode}){{{same}{{{body}}}}}")
    return "".join([*made, css[at:]])


def _selectors(head):
    """The selectors of a rule: what commas part that stand in no brackets."""
    return re.split(r",(?![^()]*\))", head)


def _modes(selector):
    return {found[1] for found in MODE.findall(selector)}


def finish(app, exception):
    """After the last page, and after memlab_assets has made the style sheets small."""
    if exception or app.builder.format != "html":
        return
    for sheet in sorted((Path(app.outdir) / "_static").rglob("*.css")):
        css = sheet.read_text(encoding="utf-8")
        if MODE.search(css):
            sheet.write_text(both(css), encoding="utf-8")


def setup(app):
    app.connect("build-finished", finish, priority=910)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
