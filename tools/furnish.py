"""What a page says that its build cannot know: the date of the last commit, and the book's PDF.

Both change without any input of a page changing. So the finished pages are gone through when
everything is built: a page that says already what is true stays as it is.
"""

import html
import re
import subprocess

WORKING = "working copy"
DATE = re.compile(r"(<!--date-->).*?(<!--/date-->)")
LINK = re.compile(r"<!--pdf (.*?) pdf-->|<!--pdf-->(.*?)<!--/pdf-->", re.S)


def committed(root):
    """The day of the last commit of a checkout; nothing where a file differs, or outside one."""

    def git(*words):
        command = ["git", *words]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8")
        except FileNotFoundError:
            return None
        return None if done.returncode else done.stdout.strip()

    # Below another project's checkout, that one's commits say nothing about these files.
    if git("rev-parse", "--show-prefix") != "" or git("status", "--porcelain") != "":
        return None
    return git("log", "-1", "--format=%cs")


def furnished(page, date, paper):
    """The HTML of a page with this date, and with the link to the PDF or without it."""
    page = DATE.sub(lambda found: f"{found[1]}{html.escape(date)}{found[2]}", page)
    link = "<!--pdf-->{}<!--/pdf-->" if paper else "<!--pdf {} pdf-->"
    return LINK.sub(lambda found: link.format(found[1] or found[2]), page)


def furnish(pages, date, paper):
    """Furnish every page below a folder; returns how many were written anew."""
    changed = 0
    for path in sorted(pages.rglob("*.html")):
        was = path.read_text(encoding="utf-8")
        if (now := furnished(was, date, paper)) != was:
            path.write_text(now, encoding="utf-8")
            changed += 1
    return changed
