"""A student and its teacher: TRL's DistillationTrainer and GKDTrainer on a CPU, counted."""

import json
import re
from pathlib import Path
from unittest import mock

import pytest
from real_steps import quiet
from real_trainers import derived, trained

from memlab import Model, Run, Sharding, estimate
from memlab.adapters import Lora
from memlab.cli import main
from memlab.lab.trainers import CONFIG
from memlab.run.loops import TAUGHT
from memlab.run.teacher import Teacher
from memlab.step import simulate
from memlab.step.loops import divergence
from memlab.units import text

ROOT = Path(__file__).resolve().parent.parent

# Of the libraries, about each other.
pytestmark = pytest.mark.filterwarnings("ignore")
# Deeper and wider than the student, with heads of another number.
WIDER = CONFIG | {"num_hidden_layers": 6, "hidden_size": 96, "intermediate_size": 200}
WIDER |= {"num_attention_heads": 6, "num_key_value_heads": 3}
OTHER = {"model_type": "qwen3", "head_dim": 24} | {k: WIDER[k] for k in WIDER if k != "model_type"}
TEACHER = Teacher(Model.from_config(WIDER))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("precision", "said"),
    [
        (
            "fp32",
            {"loop": "distillation", "checkpoint": "none", "teacher": TEACHER, "completion": 20},
        ),
        (
            "autocast",
            {"loop": "distillation", "checkpoint": "none", "teacher": TEACHER, "micro_batches": 2},
        ),
        ("bf16", {"loop": "distillation", "checkpoint": "block", "completion": 9, "batch": 1}),
        (
            "fp32",
            {
                "loop": "distillation",
                "checkpoint": "none",
                "teacher": Teacher(TEACHER.model, "bf16"),
            },
        ),
        (
            "bf16",
            {
                "loop": "distillation",
                "checkpoint": "none",
                "teacher": Teacher(Model.from_config(OTHER), "fp32"),
            },
        ),
        (
            "fp32",
            {"loop": "distillation", "checkpoint": "none", "teacher": TEACHER, "lora": Lora(4)},
        ),
        (
            "fp32",
            {
                "loop": "gkd",
                "checkpoint": "none",
                "teacher": TEACHER,
                "micro_batches": 2,
                "completion": 9,
            },
        ),
        ("autocast", {"loop": "gkd", "checkpoint": "none", "teacher": TEACHER, "micro_batches": 2}),
        ("bf16", {"loop": "gkd", "checkpoint": "block", "completion": 20, "batch": 1}),
        (
            "autocast",
            {
                "loop": "gkd",
                "checkpoint": "none",
                "teacher": Teacher(Model.from_config(OTHER), "bf16"),
            },
        ),
        ("fp32", {"loop": "gkd", "teacher": TEACHER, "lora": Lora(4), "checkpoint": "block"}),
    ],
    ids=str,
)
def test_a_trainer_that_distils_takes_what_is_derived(tmp_path, precision, said):
    run = Run.cpu(**{"batch": 3, "tokens": 32} | said)
    assert trained(precision, run, tmp_path) == derived(precision, run)


def test_bf16_true_changes_nothing_for_the_distillation_trainer(tmp_path):
    run = Run.cpu(batch=2, tokens=32, loop="distillation", checkpoint="none", teacher=TEACHER)
    assert trained("autocast", run, tmp_path) == trained("fp32", run, tmp_path)
    student = Model.from_config(CONFIG)
    sizes = [simulate(student, name, run).peak.bytes for name in ("autocast", "fp32")]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_many_tiles_take_what_is_derived(tmp_path, precision):
    """Of 16 tokens by 400 words, so that the last ones are cut on both sides."""
    run = Run.cpu(
        batch=3, tokens=32, loop="distillation", checkpoint="none", teacher=TEACHER, completion=13
    )
    with quiet():
        from trl.kernels import chunked_divergence as theirs
    own = mock.patch.multiple(divergence, TOKENS=16, WORDS=400)
    with mock.patch.multiple(theirs, TOKEN_CHUNK_SIZE=16, VOCAB_CHUNK_SIZE=400), own:
        assert trained(precision, run, tmp_path) == derived(precision, run)


def test_on_cuda_a_step_holds_two_tiles_and_the_heads_gradient_in_fp32():
    model, teacher = Model.preset("llama-3.2-1b"), Teacher(Model.preset("llama-3.2-3b"))
    run = Run(
        batch=8,
        tokens=1024,
        loop="distillation",
        checkpoint="none",
        teacher=teacher,
        completion=1000,
    )
    step = simulate(model, "bf16", run)
    events, start = step.log.events, step.log.marks["second.backward"]
    names = [None if record is None else record.op for record, _, _ in events[start:]]
    held = step.log.contents(start + names.index("empty") + 2, lambda record: record.op)
    assert held["empty"] == 2 * 4096 * 32768 * 4
    assert held["zeros"] == 4 * (8 * 1000 + model.vocab) * model.d_model
    # What the graph keeps of the teacher: the states before the tokens that are learned.
    assert held["index"] == 2 * 8 * 1000 * (model.d_model + teacher.model.d_model)


def test_all_logits_of_both_models_are_seventeen_tensors():
    model, teacher = Model.preset("llama-3.2-1b"), Teacher(Model.preset("llama-3.2-3b"))
    run = Run(batch=4, tokens=1024, loop="gkd", checkpoint="none", teacher=teacher)
    peak = simulate(model, "bf16", run).peak
    whole, shifted = (2 * 4 * tokens * model.vocab for tokens in (1024, 1023))
    assert peak.moment == "loss" and peak.contents["logits"] == 2 * whole + 15 * shifted
    assert peak.contents["reference"] == 2 * teacher.model.parameter_count
    head = 2 * 2 * 4 * 1024 * teacher.model.kv_heads * teacher.model.head_dim
    assert peak.contents["kv_cache"] == head * teacher.model.layers
    numbers = simulate(model, "bf16", run.replace(teacher=Teacher(teacher.model, "fp32"))).peak
    assert numbers.contents["reference"] == 2 * peak.contents["reference"]


def test_the_page_repeats_what_is_derived():
    page = " ".join((ROOT / "book" / "loops.md").read_text(encoding="utf-8").split())
    model, teacher = Model.preset("llama-3.2-1b"), Teacher(Model.preset("llama-3.2-3b"))
    run = Run(batch=4, tokens=1024, loop="distillation", checkpoint="none", teacher=teacher)
    tiles, whole = (estimate(model, "bf16", run.replace(loop=loop)) for loop in TAUGHT)
    assert f"takes {text(tiles.total())} with `DistillationTrainer` and 4 sequences" in page
    assert f"teacher's weights are {text(tiles['reference'].derived)}. With" in page
    assert f"With `GKDTrainer` it takes {text(whole.total())}." in page
    assert f"when the two divergences are added: {text(whole['logits'].derived)}." in page


def test_a_run_with_a_teacher_is_read_again_as_it_was_written():
    for teacher in (None, TEACHER, Teacher(Model.preset("deepseek-v3"), "bf16")):
        run = Run(tokens=64, loop="gkd", teacher=teacher)
        assert Run.from_json(run.to_json()) == run
    with pytest.raises(ValueError, match="teacher has no field 'size'"):
        Run.from_dict({"tokens": 8, "loop": "gkd", "teacher": {"model": {}, "size": 1}})


def test_the_shell_names_a_teacher(capsys):
    told = ["--tokens", "64", "--loop", "gkd", "--teacher", "llama-3.2-3b", "--json"]
    assert main(["estimate", "llama-3.2-1b", "--teacher-weights", "fp32", *told]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run"]["teacher"]["weights"] == "fp32"
    run = Run(tokens=64, loop="gkd", teacher=Teacher(Model.preset("llama-3.2-3b"), "fp32"))
    model = Model.preset("llama-3.2-1b")
    assert said["peak"]["bytes"] == simulate(model, None, run).peak.bytes
    assert main(["estimate", "llama-3.2-1b", "--tokens", "8", "--teacher-weights", "bf16"]) == 2
    assert "--teacher-weights bf16: say --teacher CONFIG too" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"loop": "sft", "teacher": TEACHER}, "teacher='llama' is for loop='distillation' or"),
        ({"loop": "gkd", "loss": "chunked"}, "loss='chunked' beside a teacher"),
        ({"loop": "gkd", "texts": "padded"}, "texts='padded' with loop='gkd'"),
        ({"loop": "gkd", "reference": "model"}, "reference='model' is for loop='dpo'"),
        ({"loop": "distillation", "completion": 8}, "completion=8; of 8 tokens 1 to 7"),
        ({"loop": "distillation", "devices": Sharding(data=2)}, "one device alone is described"),
    ],
    ids=str,
)
def test_what_a_teacher_cannot_be_beside_is_named(said, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Run(tokens=8, **said)


def test_what_no_teacher_is_and_what_none_can_teach_is_named():
    with pytest.raises(TypeError, match="teacher='llama'; a memlab.run.teacher.Teacher"):
        Run(tokens=8, loop="gkd", teacher="llama")
    with pytest.raises(TypeError, match="teacher='llama' is a str; Model.preset"):
        Teacher("llama")
    with pytest.raises(ValueError, match="a teacher's weights='int8' are not described"):
        Teacher(TEACHER.model, "int8")
    run = Run(tokens=8, loop="gkd", teacher=TEACHER)
    with pytest.raises(ValueError, match="has V=1,024, the student tiny-llama V="):
        simulate(Model.preset("tiny-llama"), "bf16", run)
    capped = Teacher(Model.preset("gemma-2-2b"))
    run = Run.cpu(tokens=8, loop="distillation", teacher=capped)
    with pytest.raises(ValueError, match="the soft cap of gemma2's logits"):
        simulate(Model.preset("gemma-2b"), "bf16", run)


@pytest.mark.parametrize("loop", TAUGHT)
def test_layers_that_are_counted_hold_what_simulated_ones_do(loop):
    model, teacher = Model.preset("llama-3.2-1b"), Teacher(Model.preset("gemma-3-1b"))
    model = model.replace(vocab=teacher.model.vocab)
    run = Run(batch=2, tokens=64, loop=loop, teacher=teacher, checkpoint="block")
    for precision in ("bf16", "autocast"):
        steps = [simulate(model, precision, run, every_layer=every) for every in (False, True)]
        assert steps[0].peak == steps[1].peak and steps[0].held == steps[1].held
