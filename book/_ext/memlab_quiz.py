"""Sphinx extension of this book: the script of the quizzes is loaded where a quiz is."""

SCRIPT = "quiz.js"


def only_there(app, pagename, templatename, context, doctree):
    """Leave the script out of a page that has no quiz."""
    if 'class="memlab-quiz"' not in context.get("body", ""):
        scripts = context.get("script_files", [])
        context["script_files"] = [s for s in scripts if _name(s).rpartition("/")[2] != SCRIPT]


def _name(script):
    return str(getattr(script, "filename", script) or "").partition("?")[0]


def setup(app):
    app.connect("html-page-context", only_there, priority=960)  # after what a page may load
    return {"parallel_read_safe": True, "parallel_write_safe": True}
