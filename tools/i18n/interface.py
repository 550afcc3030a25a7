"""What surrounds the text of a page (buttons, menus, what a screen reader is told), in a language.

The theme's own catalogues lack Portuguese and have Simplified Chinese only, some of its words are
in no catalogue at all, and some words are ours. So the finished pages are gone through once: a text
between two tags, or an attribute that somebody reads, is replaced where it is one of these words.
"""

import html
import re

from memlab.base.message import Message, rendered

WORDS = (
    "Skip to main content",
    "Back to top",
    "Home",
    "Main",
    "Page",
    "Contents",
    "Search",
    "Search this book...",
    "Please activate JavaScript to enable the search functionality.",
    "Color mode",
    "Light",
    "Dark",
    "System Settings",
    "Version warning",
    "Toggle primary sidebar",
    "Toggle secondary sidebar",
    "Toggle hidden content",
    "Click to show",
    "Click to hide",
    "previous",
    "next",
    "previous page",
    "next page",
    "Show code cell content",
    "Hide code cell content",
    "Solution",
    "Write each answer into its field, as a number, as a size such as 3 GiB or as a calculation "
    "such as 2 * 4096, and press Check: ✓ is right to the last digit, ✗ comes with a hint.",
    "What it asks you to build is built in the notebook; the answer can be checked here.",
    "Your answer",
    "Check",
    "Right:",
    "Not yet:",
    "The check did not start: this browser may be too old for it.",
    "Show code cell output",
    "Hide code cell output",
    "Copy",
    "Copied!",
    "Copy to clipboard",
    "Link to this heading",
    "Link to this image",
    "Link to this equation",
    "By The memlab contributors",
    "© Copyright 2026.",
    "Language",
    "Use this page",
    "Show all code",
    "Show less code",
    "Download the notebook",
    "Download the text",
    "Download memlab",
    "The notebook's first cell installs this file, if both lie in one folder.",
    "Open in JupyterLab, on Binder",
    "Starts a machine for you; the first start takes minutes.",
    "Open in Colab",
    "The notebook's first cell installs memlab and what the chapters use.",
    "Run it on your machine",
    "Run this page on your machine",
    "Ask a question",
    "The book as PDF",
    "working copy",
    "Tested with",
    "Cite it",
    "See its source",
    "Edit it",
    "Print, or save as PDF",
    "I have read this page",
    "{done} of {all} chapters read",
    "Cite this page",
    "About {1} minutes",
)
# What the theme says in Simplified Chinese, or in Sphinx's own words: whose English it is.
SAID_ALREADY = {
    "跳转至主要内容": "Skip to main content",
    "回到顶部": "Back to top",
    "初始页面": "Home",
    "请启用 JavaScript 以启用搜索功能。": (
        "Please activate JavaScript to enable the search functionality."
    ),
    "上一页": "previous page",
    "下一页": "next page",
    "By The memlab contributors": "By The memlab contributors",
    "De The memlab contributors": "By The memlab contributors",
    "作者： The memlab contributors": "By The memlab contributors",
}
ATTRIBUTES = (
    "title|aria-label|placeholder|data-bs-title|data-count|data-right|data-wrong|data-failed"
)
SHOWN = re.compile(
    rf"<(?:script|style|pre|svg)\b.*?</(?:script|style|pre|svg)>|"
    # What has a number in it names its message and the number.
    r"(?P<open><p data-said=\"(?P<pattern>[^\"]*)\" data-number=\"(?P<number>[^\"]*)\"[^<]*>)"
    r"[^<]*|"
    rf"(?P<before>>\s*|\b(?:{ATTRIBUTES})=\")(?P<text>[^<>\"]*[^<>\"\s])(?P<after>(?=\s*<|\"))",
    re.S,
)


def translate(page, words):
    """The HTML of a page with what surrounds its text in the language of `words`."""

    def one(found):
        if found["pattern"] is not None:
            told = Message(html.unescape(found["pattern"]), html.unescape(found["number"]))
            return found["open"] + html.escape(rendered(told, words))
        if found["text"] is None:  # a script, a style, code or a drawing
            return found[0]
        shown = " ".join(html.unescape(found["text"]).split())
        new = words.get(SAID_ALREADY.get(shown, shown))
        if new is None:
            return found[0]
        return found["before"] + html.escape(new) + found["after"]

    return SHOWN.sub(one, page)
