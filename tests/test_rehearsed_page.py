"""The page that puts rehearsals beside real runs repeats what its command stored."""

import ast
import sys

import pytest
import rehearsed

STEP_COUNTERS = 4 * (32 * 9 + 3)  # of AdamW, for each tensor of Llama-3-8B
CUT_BATCH = 4 * 8 * (2048 // 8)  # what context_parallel keeps of a batch: four tensors of int64
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="proven on Linux")


def test_every_program_has_a_row_and_misses_by_nothing():
    found = rehearsed.stored()
    assert set(found["programs"]) == set(rehearsed.names()) and len(found["programs"]) > 10
    apart = {name: one["rehearsed"] - one["run"] for name, one in found["programs"].items()}
    assert apart == dict.fromkeys(apart, 0)
    assert set(found["trained"]) == set(rehearsed.TRAINED)
    apart = {how: one["described"] - one["rehearsed"] for how, one in found["trained"].items()}
    assert apart == dict.fromkeys(apart, 0) | {"loop": STEP_COUNTERS}
    assert set(found["ranked"]) == set(rehearsed.RANKED)
    apart = {how: one["described"] - one["rehearsed"] for how, one in found["ranked"].items()}
    first_of_four = 4 * (8 * 9 + 1)
    more = {"layers": first_of_four, "ring": STEP_COUNTERS - CUT_BATCH}
    assert apart == dict.fromkeys(apart, STEP_COUNTERS) | more


def test_what_the_ring_keeps_of_a_batch_is_said_beside_the_description():
    words = f"--precision bf16 --tokens 2048 {rehearsed.RANKED['ring'][1]} --json"
    told = rehearsed.asked("-m", "memlab", "estimate", "llama-3-8b", *words.split())
    assert any(f"at least {CUT_BATCH} B" in each for each in told["leaves_out"])


def test_the_mistake_that_the_page_tells_of_was_as_large():
    found = rehearsed.stored()["ranked"]["sequence"]["described"]
    words = "--precision bf16 --tokens 2048 --tensor 8 --sequence --optimizer-impl forloop --json"
    before = rehearsed.asked("-m", "memlab", "estimate", "llama-3-8b", *words.split())
    said = f"{found - before['peak']['bytes']:,} B too little"
    assert said in (rehearsed.ROOT / "book" / "rehearsed.md").read_text(encoding="utf-8")


def test_the_tables_say_what_is_stored():
    table, found = rehearsed.programs(None), rehearsed.stored()
    for name, one in found["programs"].items():
        assert f"| `{name.removesuffix('.py')}` |" in table and f"{one['run']:,} | +0" in table
        assert ast.get_docstring(ast.parse((rehearsed.PROGRAMS / name).read_text("utf-8")))
    assert f"| -{STEP_COUNTERS:,} |" in rehearsed.trained(None)
    assert rehearsed.ranked(None).count(f"| -{STEP_COUNTERS:,} |") == len(rehearsed.RANKED) - 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["noise.py", "pictures.py", "texts.py"])
def test_a_program_is_rehearsed_and_run_again(name):
    pytest.importorskip("transformers")
    assert rehearsed.of_program(name) == rehearsed.stored()["programs"][name]


def test_what_a_program_prints_is_no_document(tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsed, "PROGRAMS", tmp_path)
    (tmp_path / "says.py").write_text("print({'loss': 1})\nprint('{\"peak\": 7}')\n")
    assert rehearsed.asked("says.py") == {"peak": 7}
    (tmp_path / "fails.py").write_text("import sys; sys.exit('no such thing')\n")
    with pytest.raises(RuntimeError, match="fails.py"):
        rehearsed.asked("fails.py")
