"""A quiz: read from its file, shown as plain HTML, or as a widget where a kernel runs."""

import hashlib
import html
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.messages import Message, number, say
from ..widgets import Live
from .expression import value

FOLDER = Path(__file__).resolve().parent.parent / "data" / "quizzes"
EXPRESSION = re.compile(r"\{([^{}]+)\}")
CODE = re.compile(r"`([^`]+)`")
ANSWERS = "Answers"
SCORE = "Right at the first try: {1} of {2}"
ABC = "ABCD"

Say = Callable[[str], str]


@dataclass(frozen=True)
class Question:
    """One question, with the choices in the order in which they are shown.

    Shapes      choices: (what it says, whether it is right, why or which slip), 3 or 4
    """

    ask: str
    choices: Sequence[tuple[str, bool, str]]

    @property
    def answer(self) -> str:
        """The letter of the right choice."""
        return next(ABC[i] for i, (_, right, _) in enumerate(self.choices) if right)


class Quiz(Live):
    """The questions of a chapter; a notebook shows them by itself."""

    def __init__(self, label: str) -> None:
        self.label = label

    @cached_property
    def questions(self) -> list[Question]:
        """The questions with every number computed.

        Raises      ValueError for an expression without a value, and where `holds` does not
        """
        read, names = _read(self.label), dict[str, Any]()
        for name, words in read.get("names", {}).items():
            names[name] = value(words, names)
        found = []
        for each in read["question"]:
            if "holds" in each and value(each["holds"], names) is not True:
                raise ValueError(f"{self.label}: {each['holds']!r} does not hold: {each['ask']}")
            given = [[each["right"], each["because"]], *each["wrong"]]
            choices = [
                (_told(words, names), i == 0, _told(why, names))
                for i, (words, why) in enumerate(given)
            ]
            # The same order everywhere, in which the right one is not always the first.
            order = sorted(range(len(given)), key=lambda i: _shuffled(each["ask"] + given[i][0]))
            found.append(Question(_told(each["ask"], names), [choices[i] for i in order]))
        return found

    def html(self, said: Say = say) -> str:
        """The quiz as a page shows it: choices, and below them the folded answers.

        said        what says a sentence in the language of the page
        """
        done = []
        for i, each in enumerate(self.questions, 1):
            name = f"quiz-{self.label}-{i}"
            rows, answers = [], []
            for letter, (words, right, why) in zip(ABC, each.choices, strict=False):
                field = f'<input type="radio" name="{name}" value="{letter}"/>'
                rows.append(f"<label>{field} <span>{marked(said(words))}</span></label>")
                head = f"<strong>{'✓' if right else '✗'} {marked(said(words))}</strong>"
                kind = "right" if right else "wrong"
                answers.append(
                    f'<li data-choice="{letter}" data-kind="{kind}">{head}<br/>'
                    f"{marked(said(why))}</li>"
                )
            done.append(
                f"<fieldset><legend>{i}. {marked(said(each.ask))}</legend>{''.join(rows)}"
                f'<p class="memlab-quiz-said" aria-live="polite"></p>'
                f"<details><summary>{html.escape(said(ANSWERS))}</summary>"
                f"<ul>{''.join(answers)}</ul></details></fieldset>"
            )
        score = html.escape(said(SCORE), quote=True)
        last = f'<p class="memlab-quiz-score" data-said="{score}" aria-live="polite"></p>'
        return f'<div class="memlab-quiz">{"".join(done)}{last}</div>'

    def sheet(self, said: Say = say) -> str:
        """The questions for paper, without an answer."""
        done = []
        for each in self.questions:
            rows = "".join(f"<li>{marked(said(words))}</li>" for words, _, _ in each.choices)
            done.append(f"<li><p>{marked(said(each.ask))}</p><ol>{rows}</ol></li>")
        return f'<ol class="memlab-quiz-sheet">{"".join(done)}</ol>'

    def widget(self) -> Any:
        """The live form: a choice brings the sentence that belongs to it."""
        import ipywidgets

        first: dict[int, bool] = {}
        score = ipywidgets.HTML()

        def asked(i: int, question: Question) -> Any:
            options = [(plain(say(words)), at) for at, (words, _, _) in enumerate(question.choices)]
            choice = ipywidgets.RadioButtons(
                options=options, value=None, layout={"width": "max-content", "max_width": "100%"}
            )
            answer = ipywidgets.HTML()

            def follow(_: Any) -> None:
                words, right, why = question.choices[choice.value]
                mark = "✓" if right else "✗"
                answer.value = f"<strong>{mark}</strong> {marked(say(why))}"
                first.setdefault(i, right)
                told = say(Message(SCORE, number(sum(first.values())), number(len(self.questions))))
                score.value = html.escape(told)

            choice.observe(follow, names="value")
            head = ipywidgets.HTML(f"<strong>{i}. {marked(say(question.ask))}</strong>")
            return ipywidgets.VBox([head, choice, answer])

        forms = [asked(i, question) for i, question in enumerate(self.questions, 1)]
        return ipywidgets.VBox([*forms, score])

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        lines = []
        for i, each in enumerate(self.questions, 1):
            lines.append(f"{i}. {say(each.ask)}")
            lines += [f"   {ABC[j]}) {say(words)}" for j, (words, _, _) in enumerate(each.choices)]
        return "\n".join(lines)


def quiz(label: str) -> Quiz:
    """The quiz of a chapter, by the chapter's label.

    Example     quiz("kv-cache")
    Raises      ValueError for a label without a quiz, with the closest ones
    """
    if label not in labels():
        close = get_close_matches(str(label), labels(), n=3, cutoff=0.4)
        known = ", ".join(close or labels())
        raise ValueError(f"no quiz {label!r}; {'closest' if close else 'known'}: {known}")
    return Quiz(label)


def labels() -> list[str]:
    """The labels of the chapters that have a quiz, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def sentences(label: str) -> Iterator[str]:
    """Every sentence of a quiz as a catalogue has it: `{1}` stands for a value."""
    yield from (ANSWERS, SCORE)
    for each in _read(label)["question"]:
        words = each["ask"], each["right"], each["because"], *sum(each["wrong"], [])
        yield from map(_pattern, words)


def marked(words: str) -> str:
    """A sentence as HTML, with what stands between backticks as code."""
    return CODE.sub(r"<code>\1</code>", html.escape(words))


def plain(words: str) -> str:
    """A sentence where no markup is possible."""
    return CODE.sub(r"\1", words)


def _read(label: str) -> dict[str, Any]:
    with (FOLDER / f"{label}.toml").open("rb") as file:
        return tomllib.load(file)


def _shuffled(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()


def _pattern(words: str) -> str:
    places = iter(range(1, 100))
    return EXPRESSION.sub(lambda _: f"{{{next(places)}}}", words)


def _told(words: str, names: dict[str, Any]) -> str:
    """A sentence of a file with its values.

    Raises      TypeError for a value that is no whole number and no text: say how many digits
    """
    values = []
    for expression in EXPRESSION.findall(words):
        found = value(expression, names)
        if isinstance(found, bool) or not isinstance(found, (int, str)):
            raise TypeError(f"{expression!r} gives {found!r}: make it text, as digits(x, 1) does")
        values.append(found if isinstance(found, str) else f"{found:,}")
    return Message(_pattern(words), *values) if values else words
