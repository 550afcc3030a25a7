"""The exercise of chapter 9 that changes a script until it fits: its answer, rehearsed."""

from pathlib import Path

import nbformat
import pytest

from memlab import exercises, rehearse
from memlab.units import GiB

CHAPTER = Path(__file__).resolve().parent.parent / "notebooks" / "09_watching.ipynb"


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::FutureWarning")  # checkpointing has a new name
@pytest.mark.parametrize(
    ("argument", "mark"), [("fused=True", "✓"), ("foreach=False", "✗ It fits")]
)
def test_the_script_fits_and_the_exercise_knows_its_peak(tmp_path, capsys, argument, mark):
    cells = {cell.id: cell.source for cell in nbformat.read(CHAPTER, as_version=4).cells}
    names = {}
    exec(cells["script"], names)
    line = "model.gradient_checkpointing_enable()\noptimizer ="
    assert repr(line)[1:-1] in cells["formula-changed"]
    script = names["SCRIPT"].replace("optimizer =", line, 1)
    path = tmp_path / "finetune.py"
    path.write_text(script.replace("parameters()", f"parameters(), {argument}"), encoding="utf-8")
    found = rehearse(path, on="H100 80GB")
    assert found.failure is None and found.verdict.fits
    capsys.readouterr()
    exercises.check("ex-watching-4", -(-found.peak // GiB))
    assert capsys.readouterr().out.startswith(mark)
