"""The quizzes as pages: a section in each chapter, and one page of sheets to print.

`tools/book.py` makes both from the package's data, after a language has its words: the same
sentences, which memlab's own catalogue has, and the numbers that memlab computes now. The section
is a cell as a reader would type it, with its output: the downloaded notebook shows the widget.
"""

import json
import re
from functools import cache

from memlab import quizzes
from memlab.base.message import is_message, rendered

PAGE = "quizzes"
CHAPTER = re.compile(r"\((?P<label>[\w-]+)\)=\n# (?P<title>.+)")
EXERCISES = re.compile(r"(?:\([\w-]+\)=\n)?## Exercises$", re.M)
HEADING = "Quiz: six questions"
HOW = "Choose, and read what each choice says. In a notebook the last line shows this quiz."
WORDS = (HEADING, HOW, "Answers", "chapter")  # and what memlab.quizzes says itself
CALL = 'from memlab.quizzes import quiz\n\nquiz("{label}")'


def chapters(root):
    """(path, label) of each notebook whose label has a quiz, in the order of the book."""
    known = set(quizzes.labels())
    for path in sorted((root / "notebooks").glob("[0-9]*.ipynb")):
        first = _source(json.loads(path.read_text(encoding="utf-8"))["cells"][0])
        found = CHAPTER.match(first)
        if found and found["label"] in known:
            yield path, found["label"]


computed = cache(quizzes.quiz)  # the numbers are the same in each language


def stage(root, source, language, words, banner):
    """Put each quiz in front of its chapter's exercises, and all of them on the page of sheets.

    words       English -> the language's; what they lack stays English
    banner      what a page says where a part of it is English still; in English nothing
    """

    def say(told):
        return rendered(told, words, language)

    sheets, rows, left = [], [], ""
    for path, label in chapters(root):
        quiz = computed(label)
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        (where,) = (cell["id"] for cell in cells if EXERCISES.match(_source(cell)))
        target = source / "notebooks" / path.name
        notebook = json.loads(target.read_text(encoding="utf-8"))
        at = [cell["id"] for cell in notebook["cells"]].index(where)
        english = any(is_message(x) and x not in words for x in quizzes.sentences(label))
        left = banner if english else left
        notebook["cells"][at:at] = section(label, quiz, say, banner if english else "")
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        target.write_text(text + "\n", encoding="utf-8")
        title = _source(notebook["cells"][0]).split("\n")[1].removeprefix("# ")
        sheets.append(f"## {int(path.stem[:2])}. {title}\n\n{quiz.sheet(say)}\n")
        letters = " | ".join(question.answer for question in quiz.questions)
        rows.append(f"| [{title}](#quiz-{label}) | {letters} |")
    if not sheets:
        return
    head = [f"## {say('Answers')}\n", f"| {say('chapter')} | 1 | 2 | 3 | 4 | 5 | 6 |"]
    page = source / f"{PAGE}.md"
    whole = [
        page.read_text(encoding="utf-8") + left,
        *sheets,
        *head,
        "|---|---|---|---|---|---|---|",
        *rows,
    ]
    page.write_text("\n".join(whole) + "\n", encoding="utf-8")


def sentences():
    """All that the quizzes of all chapters say, for a translator."""
    return [words for label in quizzes.labels() for words in quizzes.sentences(label)]


def section(label, quiz, say, banner=""):
    """The two cells of a quiz in its chapter."""
    text = f"(quiz-{label})=\n## {say(HEADING)}\n\n{say(HOW)}{banner}"
    shown = {"text/html": quiz.html(say), "text/plain": say(HEADING)}
    result = {"output_type": "execute_result", "data": shown, "metadata": {}, "execution_count": 1}
    heading: dict[str, object] = {
        "cell_type": "markdown",
        "id": "quiz-heading",
        "metadata": {},
        "source": text,
    }
    call: dict[str, object] = {"cell_type": "code", "id": "quiz", "metadata": {"tags": ["quiz"]}}
    call |= {"source": CALL.format(label=label), "outputs": [result], "execution_count": 1}
    return [heading, call]


def _source(cell):
    return "".join(cell["source"])
