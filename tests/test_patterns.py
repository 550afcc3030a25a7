"""Each message with places is a pattern that the code has: no place is a number cut from a text."""

import ast
import json
import re

import sources

from memlab import exercises, quizzes
from memlab.base import titles, translated_output
from memlab.base.message import PLACE
from memlab.explain import findings


def of_package():
    """The texts of the package's code, and the patterns that it makes at import."""
    questions = [words for label in quizzes.labels() for words in quizzes.sentences(label)]
    found = {*questions, *titles.patterns(), *findings.SENTENCES, *exercises.units()}
    for path in (sources.ROOT / "src" / "memlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def of_chapters():
    """The messages of the f-strings of all cells, and of their prints."""
    found = set()
    for path in sources.chapters():
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                source = "".join(cell["source"])
                found.update(translated_output.messages(source))
                for node in ast.walk(ast.parse(source)):
                    if isinstance(node, ast.JoinedStr):
                        found.add(translated_output.message([node])[0])
    return found


def test_every_place_of_a_message_is_one_of_the_code_s():
    known = {*of_package(), *of_chapters()}
    asked = [text for text in sources.blocks_of(sources.MESSAGES) if PLACE.search(text)]
    assert len(asked) > 300
    assert [text for text in asked if text not in known] == []


def test_no_drawing_and_no_hint_has_a_place():
    texts = [*sources.drawn(), *(text for many in exercises.hints().values() for text in many)]
    assert any(re.search(r"\d", text) for text in texts)
    assert [text for text in texts if PLACE.search(text)] == []
