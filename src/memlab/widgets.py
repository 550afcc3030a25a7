"""A question with something to move: live in a notebook, its default answer everywhere else.

`ask` shows sliders and, below them, what a function says to their values. Where no kernel runs (the
page, a notebook just opened) the answer to the default values stands there as plain HTML, so a
reader never meets a slider that does nothing. The page makes it live again with `Question.answers`:
every answer there is, by the same function, written down beforehand by tools/answers.py.
"""

import html
import itertools
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .base.messages import colon, number, say

HOW_TO = "Run this notebook to move the slider."
HOW_TO_MANY = "Run this notebook to move the sliders."
KEEP = "MEMLAB_ANSWERS"  # a file: every answer to every question asked is added to it


@dataclass(frozen=True)
class Control:
    """One thing to move: its label, the values it takes in order, the value it starts at.

    Shapes      values: a list or a range; default: one of them, by default the first
    Raises      ValueError for no values at all and for a default that is not among them
    """

    label: str
    values: Sequence[Any]
    default: Any = None

    def __post_init__(self) -> None:
        if not len(self.values):
            raise ValueError(f"{self.label!r} has no values to choose from")
        if self.default is None:
            object.__setattr__(self, "default", self.values[0])
        if self.default not in self.values:
            known = ", ".join(map(show, self.values[:8]))
            raise ValueError(f"{self.label!r}: default {self.default!r} is not among {known}")

    def slider(self) -> Any:
        """The control as a slider of ipywidgets that stops at each value."""
        import ipywidgets

        return ipywidgets.SelectionSlider(
            options=[(show(value), value) for value in self.values],
            value=self.default,
            description=say(self.label),
            tooltip=say(self.label),
            continuous_update=False,
            style={"description_width": "initial"},
            layout={"width": "100%", "max_width": "600px"},
        )


class Live(ABC):
    """What a notebook shows as a widget where a kernel runs, and as plain HTML everywhere else."""

    @abstractmethod
    def widget(self) -> Any:
        """What a kernel shows."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """What stands everywhere else."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if _live():
            live = self.widget()._repr_mimebundle_()
            bundle |= {mime: view for mime, view in live.items() if "widget" in mime}
        return bundle


class Question(Live):
    """What `ask` returns; a notebook shows it by itself."""

    def __init__(
        self, question: str, function: Callable[..., Any], controls: Mapping[str, Control]
    ) -> None:
        self.question = question
        self.function = function
        self.controls = dict(controls)
        self.default = {name: control.default for name, control in self.controls.items()}
        self.result = function(**self.default)

    def answer(self, **values: Any) -> str:
        """HTML of what the function says to these values, or to the defaults."""
        return as_html(self.function(**(self.default | values)))

    def answers(self) -> dict[str, Any]:
        """Every answer, for a page that has no kernel: what the sliders say, and their HTML.

        Shapes      controls: name, label, values as the slider shows them, number of the default;
                    answers: one for each combination, that of the last control changing fastest
        """
        controls = [
            {
                "name": name,
                "label": say(each.label),
                "values": [show(value) for value in each.values],
                "default": list(each.values).index(each.default),
            }
            for name, each in self.controls.items()
        ]
        found = []
        for values in itertools.product(*(each.values for each in self.controls.values())):
            try:
                found.append(self.answer(**dict(zip(self.controls, values, strict=True))))
            except ValueError as error:  # a combination that cannot be: say which
                found.append(as_html(str(error)))
        return {"question": say(self.question), "controls": controls, "answers": found}

    def _repr_html_(self) -> str:
        asked = html.escape(say(self.question))
        at = " · ".join(
            f"{html.escape(say(each.label))}{colon()}<strong>{html.escape(show(each.default))}</strong>"
            for each in self.controls.values()
        )
        how = HOW_TO if len(self.controls) == 1 else HOW_TO_MANY
        return (
            f'<div class="memlab-question"><p><strong>{asked}</strong></p>'
            f"<p>{at}</p>{as_html(self.result)}<p><em>{say(how)}</em></p></div>"
        )

    def __repr__(self) -> str:
        at = ", ".join(f"{name}={value!r}" for name, value in self.default.items())
        result = say(self.result) if isinstance(self.result, str) else self.result
        return f"{say(self.question)} [{at}]\n{result}"

    def widget(self) -> Any:
        """The live form: the question, its sliders, and the answer that follows them."""
        import ipywidgets

        sliders = {name: control.slider() for name, control in self.controls.items()}
        answer = ipywidgets.HTML(as_html(self.result))

        def follow(_: Any) -> None:
            values = {name: each.value for name, each in sliders.items()}
            try:
                answer.value = self.answer(**values)
            except ValueError as error:  # a combination that cannot be: say which
                answer.value = as_html(str(error))

        for slider in sliders.values():
            slider.observe(follow, names="value")
        asked = ipywidgets.HTML(f"<strong>{html.escape(say(self.question))}</strong>")
        return ipywidgets.VBox([asked, *sliders.values(), answer])


def ask(
    question: str, function: Callable[..., Any], **controls: Control | Sequence[Any]
) -> Question:
    """Ask a question whose answer depends on something to move.

    Example     ask("How long may a conversation get?", cache, tokens=("tokens", [1024, 8192]))
    Shapes      controls: name of the function's argument = (label, values) or
                (label, values, default); values is a list or a range
                function: returns a Ledger, a Picture, or text
    Raises      ValueError without a control, and for a default that is not among the values
    """
    if not controls:
        raise ValueError("a question needs something to move: name=(label, values, default)")
    described = {
        name: control if isinstance(control, Control) else Control(*control)
        for name, control in controls.items()
    }
    made = Question(question, function, described)
    if KEEP in os.environ:
        with Path(os.environ[KEEP]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(made.answers(), ensure_ascii=False) + "\n")
    return made


def show(value: Any) -> str:
    """A value as a slider names it: whole numbers with thousands separators."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return number(value) if whole else say(str(value))


def as_html(result: Any) -> str:
    """A result as HTML: its own, or its picture, or its text with line breaks kept.

    Raises      TypeError for a bare number: without a unit it says nothing
    """
    if isinstance(result, (int, float)):
        raise TypeError(
            f"the function returned the bare number {result!r}; give it a unit, as text"
        )
    for method in ("_repr_html_", "_repr_svg_"):
        if hasattr(result, method):
            return getattr(result, method)()
    return f"<pre>{html.escape(say(str(result)))}</pre>"


def _live() -> bool:
    """Whether a kernel runs this, and ipywidgets is there to talk to it."""
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell else None
    if getattr(instance, "kernel", None) is None:
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True
