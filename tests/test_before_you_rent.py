"""The exercise of chapter 11 that changes a script until it fits: its answer, rehearsed."""

from pathlib import Path

import nbformat
import pytest

from memlab import exercises, rehearse
from memlab.units import GiB

CHAPTER = Path(__file__).resolve().parent.parent / "notebooks" / "11_watching.ipynb"


@pytest.mark.deep
@pytest.mark.parametrize("argument", ["fused=True", "foreach=False"])
def test_either_argument_of_adamw_makes_it_fit_with_the_exercise_s_answer(
    tmp_path, capsys, argument
):
    cells = {cell.id: cell.source for cell in nbformat.read(CHAPTER, as_version=4).cells}
    names = {}
    exec(cells["script"], names)
    line = "model.gradient_checkpointing_enable()\noptimizer ="
    assert repr(line)[1:-1] in cells["formula-changed"]
    script = names["SCRIPT"].replace("optimizer =", line, 1)
    path = tmp_path / "finetune.py"
    path.write_text(script.replace("parameters()", f"parameters(), {argument}"), encoding="utf-8")
    found = rehearse(path, on="H100 80GB")
    assert found.verdict.fits
    capsys.readouterr()
    exercises.check("ex-watching-4", -(-found.peak // GiB))
    assert capsys.readouterr().out.startswith("✓")
