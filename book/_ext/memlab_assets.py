"""Sphinx extension of this book: what a page may load, and nothing that it does not use.

Each page carries a Content-Security-Policy: everything from the site alone, no script or style
inside the page, WebAssembly allowed for the calculator. So the theme's inline scripts are not
written at all (book/_templates/layout.html, book/_static/memlab.js), and its icon bundle gives way
to a stylesheet with the icons that the pages name.
"""

import re
from pathlib import Path
from urllib.parse import quote

from sphinx.errors import SphinxError

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "worker-src 'self'",
        "connect-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
    ]
)

# Extensions that Jupyter Book always loads and this book has no use for: live kernels, folding by
# script (details do it without) and tabs.
UNUSED = re.compile(r"thebe|togglebutton|design-tabs|sphinx-design|sbt-webpack")
DEAD = [
    "**/*.map",
    "_static/**/sphinx-thebe*",
    "_static/**/togglebutton*",
    "_static/**/*design*",
    "_static/*webpack-macros.html",
    "_static/scripts/fontawesome*",
    "_static/scripts/bootstrap*",
    "_static/vendor/**/*",
    "_static/locales/**/*",
    "_static/images/logo*",
]
ICON = re.compile(r"""class=["'][^"']*\bfa-(?:solid|regular)[^"']*""")
STYLES = {"solid", "regular", "lg"}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
CLASS = re.compile(r"\.([A-Za-z_][\w-]*)")
BRACKETS = re.compile(r"\([^()]*\)|\[[^\]]*\]")
THEMES = ("styles/pydata-sphinx-theme.css", "styles/sphinx-book-theme.css", "basic.css")
WRAPPED = r'<div class="memlab-figure">\1</div>'
# What the builder or a stored output writes, and what a strict policy or a screen reader wants.
MENDED = [
    (re.compile(r'<script type="text/x-thebe-config">.*?</script>', re.S), ""),
    (re.compile(r"<script>kernelName = .*?</script>"), ""),
    # The size of a picture is the stylesheet's business.
    (re.compile(r' style="max-width:100%;height:auto"'), ""),
    # Code that is folded away is shown by one button for the whole page (_static/memlab.js), not by
    # a bar for each cell; where no script runs it simply stands there. Solutions keep their fold.
    (
        re.compile(
            r'(<div class="cell [^"]*\btag_hide-input\b[^"]*">\s*)<details class="admonition hide '
            r'above-input">\s*<summary[^>]*>.*?</summary>(.*?)</details>',
            re.S,
        ),
        r"\1\2",
    ),
    # A summary is named by its own words; a heading without any heads nothing.
    (re.compile(r'<summary aria-label="[^"]*">'), "<summary>"),
    (re.compile(r"<th[^>]*>(?:<p></p>)?</th>"), "<td></td>"),
    # A drawing scrolls in a box of its own where the window is too narrow for its words.
    (re.compile(r"(<img [^>]*\.svg\"[^>]*>|<svg [^>]*role=\"img\".*?</svg>)", re.S), WRAPPED),
    # A list whose items are none, with a role that was given up.
    (re.compile(r' role="(?:list" class="citation-list"|doc-biblioentry")'), ""),
]


def strict(app, pagename, templatename, context, doctree):
    """Put the policy first in the head; leave out what is unused or written into the page."""

    def needed(script):
        attributes = getattr(script, "attributes", None) or {}
        return not attributes.get("body") and not UNUSED.search(
            str(getattr(script, "filename", script))
        )

    context["metatags"] = (
        f'\n    <meta http-equiv="Content-Security-Policy" content="{POLICY}" />'
        + context.get("metatags", "")
    )
    context["script_files"] = [s for s in context.get("script_files", []) if needed(s)]
    context["css_files"] = [
        c for c in context.get("css_files", []) if not UNUSED.search(str(c.filename))
    ]
    if body := context.get("body"):
        for pattern, instead in MENDED:
            body = pattern.sub(instead, body)
        context["body"] = body


def icons(page):
    """The icons that a page names: every class fa-... that is not a style or a size."""
    found = (name for tag in ICON.findall(page) for name in re.findall(r"\bfa-([a-z0-9-]+)", tag))
    return {name for name in found if name not in STYLES}


def stylesheet(names, bundle):
    """CSS that draws these icons in the text's colour, with the shapes of the theme's bundle."""
    rules = [
        "/* The icons that this book uses, from Font Awesome Free 6 by Fonticons, CC BY 4.0. */",
        "[class*='fa-']{display:inline-block;height:1em;vertical-align:-.125em;width:1em}",
        "[class*='fa-']{background:currentColor;mask:var(--icon) center/contain no-repeat}",
        "@media (forced-colors:active){[class*='fa-']{background:CanvasText}}",
        ".fa-lg{font-size:1.25em}",
    ]
    for name in sorted(names):
        shape = r'[{,]"?%s"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]'
        found = re.findall(shape % re.escape(name), bundle)
        if not found:
            raise SphinxError(f"the theme has no icon {name!r}")
        width, height, path = found[-1]  # where there are two, the solid one comes last
        svg = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'>"
        svg = quote(f"{svg}<path d='{path}'/></svg>", safe=" =:/'")
        rules.append(f'.fa-{name}{{--icon:url("data:image/svg+xml,{svg}")}}')
    return "\n".join(rules) + "\n"


def slim(css):
    """The theme's stylesheet without the rules for 2,000 icons and the fonts that held them."""
    css = re.sub(r"@font-face\{[^}]*Font ?Awesome[^}]*\}", "", css)
    names = r"\.fa-[a-z0-9-]+(?::before)?"
    return re.sub(rf"(?<=[}}/]){names}(?:,{names})*\{{(?:--fa|content):[^}}]*\}}", "", css)


def used(css, names):
    """A style sheet without the rules for classes that no page and no script of the site names.

    names       every word of them, which is more than their classes
    """
    made, at = [], 0
    while (start := css.find("{", at)) >= 0:
        head, depth, end = css[at:start], 1, start + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(css[end], 0)
            end += 1
        body, at = css[start + 1 : end - 1], end
        licence = "".join(said for said in COMMENT.findall(head) if said.startswith("/*!"))
        head = COMMENT.sub("", head)
        kind = head.strip()
        if kind.startswith(("@media", "@supports", "@layer")):
            body = used(body, names)
            if not body.strip():
                continue
        elif not kind.startswith("@"):
            each = re.split(r",(?![^()]*\))", head)
            head = ",".join(one for one in each if set(CLASS.findall(_plain(one))) <= names)
            if not head:
                continue
        made.append(f"{licence}{head}{{{body}}}")
    return "".join([*made, css[at:]])


def _plain(selector):
    """A selector without what stands in brackets: of `:is(.a, .b)` either may be there."""
    while (less := BRACKETS.sub("", selector)) != selector:
        selector = less
    return less


def finish(app, exception):
    """After the last page: write the icons, drop dead files, shrink the theme's style sheets."""
    if exception or app.builder.format != "html":
        return
    site = Path(app.outdir)
    static = site / "_static"
    names, words = set(), set()
    for page in site.rglob("*.html"):
        if "_static" not in page.parts:
            text = page.read_text(encoding="utf-8")
            names |= icons(text)
            words |= set(re.findall(r"[A-Za-z_][\w-]*", text))
    bundle = (static / "scripts" / "fontawesome.js").read_text(encoding="utf-8")
    (static / "icons.css").write_text(stylesheet(names, bundle), encoding="utf-8")
    for pattern in DEAD:
        for file in site.glob(pattern):
            if file.is_file():
                file.unlink()
    for script in [*static.rglob("*.js"), *static.rglob("*.mjs")]:
        words |= set(re.findall(r"[A-Za-z_][\w-]*", script.read_text(encoding="utf-8")))
    for name in THEMES:
        theme = static / name
        theme.write_text(used(slim(theme.read_text("utf-8")), words), encoding="utf-8")
    for file in [*static.rglob("*.js"), *static.rglob("*.css")]:
        text = file.read_text(encoding="utf-8")
        if "sourceMappingURL" in text:  # the maps are gone; a debugger would ask for them
            text = re.sub(r"\n?(?://# |/\*# )sourceMappingURL=\S+?(?:\*/|$)", "", text, flags=re.M)
            file.write_text(text, encoding="utf-8")
    for folder in sorted(static.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def setup(app):
    app.add_css_file("icons.css")
    app.connect("html-page-context", strict, priority=950)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
