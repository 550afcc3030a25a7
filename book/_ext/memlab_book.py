"""Sphinx extension of this book: MathML for formulas, the files' numbers.

The browser draws MathML itself: no JavaScript, no fonts to fetch, no request leaves the site.
"""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)
CHAPTER = re.compile(r"notebooks/(\d\d)_\w+")
NUMBER = re.compile(r"<mn>\d{1,3}</mn>(?:<mrow><mo>(?:,|&#x0002C;)</mo></mrow><mn>\d{3}</mn>)+")


def mathml(node, display):
    latex = node.astext()
    if display == "block" and r"\\" in latex and r"\begin" not in latex:
        latex = r"\begin{align*}" + latex + r"\end{align*}"
    # The converter knows this aligning environment only; the unstarred one it would number itself.
    latex = latex.replace("{aligned}", "{align*}").replace("{align}", "{align*}")
    result = convert(latex, display=display)
    # `1{,}024` is one number, and a comma between three of them would be spaced like a list.
    result = NUMBER.sub(
        lambda found: f"<mn>{','.join(re.findall('[0-9]+(?=<)', found[0]))}</mn>", result
    )
    if "\\" in result or "<mi>&</mi>" in result:  # what it does not know, it copies
        logger.warning("no MathML for this formula: %s", latex, location=node)
    return result


def visit_math(self, node):
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate"))
    self.body.append(mathml(node, "inline") + "</span>")
    raise nodes.SkipNode


def visit_displaymath(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math notranslate"))
    self.body.append(mathml(node, "block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def number_by_file(app, env):
    """Give each chapter the number in its file's name, also where one before it is missing."""
    for name in env.titles:
        chapter = CHAPTER.fullmatch(name)
        if chapter is None or "secnumber" not in env.titles[name]:
            continue
        number = (int(chapter[1]),)
        env.titles[name]["secnumber"] = number
        sections = env.toc_secnumbers[name]
        for anchor, counted in sections.items():
            sections[anchor] = counted and number + tuple(counted[1:])
        for link in env.tocs[name].findall(nodes.reference):
            if counted := link.get("secnumber"):
                link["secnumber"] = number + tuple(counted[1:])
        # Sphinx goes on counting where a chapter of another part had the same number.
        for numbered in env.toc_fignumbers.get(name, {}).values():
            for i, anchor in enumerate(sorted(numbered, key=numbered.get), start=1):
                numbered[anchor] = (*number, i)
    return []


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.connect("env-get-updated", number_by_file, priority=900)  # after Sphinx has counted
    return {"parallel_read_safe": True, "parallel_write_safe": True}
