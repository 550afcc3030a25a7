"""What can account for a gap: every figure is a peak derived anew, and known gaps are found."""

import json
import pickle
from pathlib import Path

import damaged
import pytest

import memlab
from memlab import GiB, Model, Recipe, Run, Sharding, estimate, storage
from memlab.cli import main
from memlab.explain.case import Case
from memlab.explain.causes import CAUSES, CONTEXTS
from memlab.explain.explanation import explain, rounding
from memlab.step import Lora, simulate
from memlab.step.loops.loop import graph

TINY, QWEN = Model.preset("tiny-llama"), Model.preset("qwen3-4b")
HOW = {"batch": 4, "tokens": 64}


def peak(recipe="fp32", model=TINY, **choices):
    return simulate(model, recipe, Run.cpu(**HOW | choices)).peak.bytes


def test_the_base_is_the_simulated_peak():
    for recipe in ("fp32", "bf16", "autocast"):
        found = explain(TINY, recipe, Run.cpu(**HOW), seen=1).predicted
        assert found.total() == peak(recipe)
    assert (
        explain(TINY, "zero", Run.cpu(), seen=1).predicted.total() == estimate(TINY, "zero").total()
    )


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "recipe, believed, truth",
    [
        ("bf16", {}, {"recipe": "fp32"}),
        ("autocast", {}, {"recipe": "fp32"}),
        ("fp32", {"checkpoint": "block"}, {"checkpoint": "none"}),
        ("fp32", {}, {"attention": "eager"}),
        ("bf16", {"loss": "chunked", "tokens": 256}, {"loss": "plain"}),
        ("bf16", {"checkpoint": "block"}, {"recipe": "fp32", "checkpoint": "none"}),
        ("fp32", {"micro_batches": 4}, {"micro_batches": 1, "batch": 16}),
    ],
)
def test_a_switch_that_was_turned_is_found_to_the_byte(recipe, believed, truth):
    seen = peak(**({"recipe": recipe} | believed | truth))
    found = explain(TINY, recipe, Run.cpu(**HOW | believed), seen=seen, level="tensors")
    assert found.gap > 0 and found.sums[0].left == 0, found
    assert found.sums[0].bytes == found.gap


def test_kept_graphs_are_counted():
    more = graph(simulate(TINY, "fp32", Run.cpu(**HOW)))
    found = explain(TINY, "fp32", Run.cpu(**HOW), seen=peak() + 7 * more, level="tensors")
    assert found.sums[0].names == ("7 × losses kept with their graphs",)
    assert found.causes[0].pieces == 7 and found.causes[0].bytes == found.gap


def test_bytes_come_from_the_terms_and_follow_the_model():
    """Predicted with 8-bit states, run with full ones: the gap is the optimizer's term."""
    for model in (TINY, QWEN):
        eight, full = estimate(model, "adamw8bit"), estimate(model, "fp32")
        found = explain(model, "adamw8bit", Run.cpu(), seen=full.total(), level="tensors")
        first = found.causes[0]
        assert first.name == "AdamW's states in fp32"
        assert first.bytes == full["optimizer"].derived - eight["optimizer"].derived
    master = explain(
        QWEN,
        Recipe(weights="bf16", gradients="bf16", states=("fp32", "fp32")),
        Run.cpu(),
        seen="90 GiB",
    )
    one = next(c for c in master.causes if "master" in c.name)
    assert one.bytes == storage(QWEN.parameter_count, "fp32")


def test_the_story_of_28_and_80():
    """The note's settings; what was seen is what they are without three flags, in GB."""
    recipe = Recipe(weights="nvfp4", master="bf16", gradients="bf16", states=("int8/256",) * 2)
    run = Run(batch=1, tokens=96, checkpoint="block", optimizer_impl="forloop")
    found = explain(QWEN, recipe, run, seen="80GB", predicted="28GB")
    assert 24 * GiB < found.predicted.total() < 28 * GiB
    assert found.sums[0].names == ("everything in fp32", "AdamW's foreach temporaries")
    blamed = {one.name for one in found.ruled_out}
    assert {"no checkpointing", "old and new copies while loading"} <= blamed
    assert "28" not in found.notes[1] and "memlab derives" in found.notes[0]
    assert "if GB stood for GiB" in found.notes[1]


def test_levels_say_what_can_be_seen():
    run = Run(batch=1, tokens=64)
    names = {
        level: {one.name for one in explain(TINY, "bf16", run, seen=GiB, level=level).causes}
        for level in ("tensors", "reserved", "device", "process")
    }
    assert "fragmentation and rounding" not in names["tensors"]
    assert "fragmentation and rounding" in names["reserved"]
    assert "the CUDA context" in names["device"] - names["reserved"]
    assert "Python, PyTorch and their libraries" in names["process"]
    with pytest.raises(ValueError, match="known: tensors"):
        explain(TINY, "bf16", run, seen=GiB, level="gpu")


def test_a_slip_of_units():
    found = explain(QWEN, "bf16", Run.cpu(), seen="32 GiB")
    slip = next(one for one in found.causes if one.name == "GiB where GB was meant")
    assert slip.bytes == 32 * (2**30 - 10**9)
    assert not any(
        "meant" in one.name for one in explain(QWEN, "bf16", Run.cpu(), seen="34 GB").causes
    )


def test_nothing_is_missing():
    same = explain(TINY, "fp32", Run.cpu(**HOW), seen=peak(), level="tensors")
    assert (same.gap, same.causes, same.sums) == (0, (), ()) and "+0 B" in str(same)
    assert "less than predicted" in str(explain(TINY, "fp32", Run.cpu(**HOW), seen=1))


def _over(**how):
    return Run(batch=1, tokens=256, micro_batches=2, devices=Sharding.of(**how))


SHARDED = {"data": 4, "zero": 3}
SMALL, MIXTURE = Model.preset("tinyllama-1.1b"), Model.preset("gpt-oss-20b")
# What was believed, and what was true in its place.
DIVIDED = [
    (SMALL, "bf16", _over(**SHARDED), "nothing sharded: each rank has the whole model"),
    (SMALL, "bf16", _over(**SHARDED), "layers gathered until backward"),
    (SMALL, "fp32", _over(**SHARDED, param_dtype="bf16"), "weights gathered as they are stored"),
    (SMALL, "fp32", _over(**SHARDED), "whole gradients until the last micro-batch"),
    (
        SMALL,
        "bf16",
        _over(**SHARDED, cpu_offload="pinned"),
        "weights and states on the cards, not on their hosts",
    ),
    (SMALL, "zero", _over(data=4, zero=2), "DeepSpeed's ZeRO one stage lower"),
    (SMALL, "zero", _over(**SHARDED, library="deepspeed"), "DeepSpeed's ZeRO one stage lower"),
    (MIXTURE, "bf16", _over(**SHARDED, expert=4), "experts gathered, not divided"),
    (
        MIXTURE,
        "bf16",
        Run(batch=1, tokens=2048, devices=Sharding.of(**SHARDED, expert=4)),
        "all tokens at one rank's experts",
    ),
    (
        SMALL,
        "bf16",
        Run(batch=1, tokens=2048, micro_batches=4, devices=Sharding(pipeline=2)),
        "all micro-batches forward before the first goes backward",
    ),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("model", "recipe", "run", "true"), DIVIDED)
def test_what_devices_do_otherwise_is_found_to_the_byte(model, recipe, run, true):
    base = Case(model, Recipe.named(recipe), run)
    assert base.peak() == estimate(model, recipe, run).total()
    case = next(cause for cause in CAUSES if cause.name == true).turn(base)
    assert case is not None and case.peak() > base.peak()
    found = explain(model, recipe, run, seen=case.peak(), level="allocated")
    assert true in found.equal and found.causes[0].bytes == found.gap


def test_one_lower_is_another_stage_with_the_same_keys():
    believed = _over(data=4, zero=2, overlap_comm=True, reduce_bucket_size=1000)
    base = Case(SMALL, Recipe.named("zero"), believed)
    lower = next(c for c in CAUSES if c.name.startswith("DeepSpeed")).turn(base)
    assert lower.run.devices == believed.devices.changed(zero=1)


ALIKE = ("the checkpoint's state dict kept", "a second model (averaged weights, a reference)")


def test_a_cards_figure_has_more_in_it_than_the_cause():
    """nvidia-smi's, in MiB: the context that somebody read, and what the allocator adds."""
    base = Case(Model.preset("qwen3-0.6b"), Recipe.named("bf16"), Run(batch=1, tokens=512))
    case = base.replace(run=base.run.replace(holds=("state_dict",)))
    more = base.replace(beside=("allocator",)).peak() - base.peak()
    for context in CONTEXTS:
        seen = (case.peak() + more + context) // 2**20 * 2**20
        found = explain(base.model, "bf16", base.run, seen=seen, level="device")
        names = [one.name for one in found.causes]
        at = names.index("the checkpoint's state dict kept")
        # As large: gradients that stay, and a second model.
        assert at < 4 and not found.equal, names[:5]
        sizes = [one.bytes // 2**20 for one in found.causes if one.name in ALIKE]
        assert len(set(sizes)) == 1 and len(sizes) == len(ALIKE), (names, sizes)
        assert "         =   " in str(found) and "as many bytes as" in str(found)
    # Without a fault nothing but what each card's figure has in it stands first.
    clean = explain(base.model, "bf16", base.run, seen=base.peak() + more + CONTEXTS[0])
    first = {one.name for one in clean.causes[:2]}
    assert first == {"fragmentation and rounding", "the CUDA context"}


def test_causes_are_named_once_and_each_can_be_turned():
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)
    mine = Run.cpu(implementation="memlab", **HOW)
    said = {"loss": "chunked", "checkpoint": "block", "micro_batches": 2}
    cases = [
        Case(TINY, Recipe.named("bf16"), Run.cpu(**HOW, **said)),
        Case(TINY, Recipe.named("bf16"), mine),
        Case(TINY, Recipe.named("autocast"), Run.cpu(**HOW)),
        Case(TINY, Recipe.named("fp32"), Run.cpu(**HOW, lora=Lora(4, ("q",)))),
        Case(TINY, Recipe.named("fp32"), mine.replace(offload=("saved",))),
        Case(TINY, Recipe.named("fp32"), Run.cpu(**HOW, loop="trainer")),
        *(Case(model, Recipe.named(recipe), run) for model, recipe, run, _ in DIVIDED),
    ]
    turned = {cause.name for cause in CAUSES for case in cases if cause.turn(case) is not None}
    assert turned == {cause.name for cause in CAUSES}


def test_causes_that_make_one_figure_fit_equally():
    """Of the bytes alone a copy of the state dict and one of the model are 128 bytes apart."""
    base = Case(TINY, Recipe.named("fp32"), Run.cpu(**HOW))
    copies = [base.replace(run=base.run.replace(holds=(what,))) for what in ("state_dict", "model")]
    names = ("the checkpoint's state dict kept", "a second model (averaged weights, a reference)")
    for case, name in zip(copies, names, strict=True):
        exact = explain(TINY, "fp32", base.run, seen=case.peak(), level="device")
        assert set(names) & set(exact.equal) == {name} and exact.rounding == 1
        assert exact.causes[0].name in exact.equal  # gradients that stay are as large, say
        near = f"{case.peak() / 1000:.0f} kB"
        rough = explain(TINY, "fp32", base.run, seen=near, level="device")
        assert set(names) <= set(rough.equal) and rough.rounding == 1000
        assert [one.name for one in rough.causes[: len(rough.equal)]] == list(rough.equal)
        assert f"These {len(rough.equal)} causes fit equally" in str(rough)
        assert rough.as_dict()["equal"] == list(rough.equal)


def test_a_figure_is_known_as_it_was_given():
    texts = ("80GB", "41.3 GiB", "60MiB", "3,621,632 B")
    given = [rounding(seen, "device") for seen in texts]
    assert given == [10**9, 2**30 // 10, 2**20, 1]
    assert rounding(5 * 2**20, "device") == 2**20 and rounding(5 * 2**20 + 1, "device") == 1
    assert rounding(5 * 2**20, "tensors") == 0


@pytest.mark.parametrize(
    ("truth", "name"),
    [
        ({"texts": "padded"}, "padding: a mask, kept in every layer"),
        ({"texts": "packed"}, "texts packed into one row, without flash attention"),
        ({"holds": ("fp32_model",)}, "weights averaged in fp32"),
        (
            {"eval_batch": 8, "eval_logits": 70},
            "logits of an evaluation gathered on the device",
        ),
    ],
)
def test_what_a_loop_adds_is_a_cause(truth, name):
    believed = Run(**HOW, loop="trainer")
    case = Case(TINY, Recipe.named("bf16"), believed.replace(**truth))
    found = explain(TINY, "bf16", believed, seen=case.peak(), level="tensors")
    one = next(cause for cause in found.causes if cause.name == name)
    assert name in found.equal and one.bytes == found.gap == found.causes[0].bytes
    assert one.pieces == truth.get("eval_logits", 1)
    if "holds" not in truth:  # states in fp32 beside bf16 add as much as a copy in fp32
        assert found.equal[0] == name


def run(capsys, *words):
    status = main(["explain", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_line(capsys, tmp_path):
    words = "tiny-llama --seen 60MiB --batch 8 --tokens 64 --implementation memlab".split()
    status, out, _ = run(capsys, *words)
    assert status == 0 and "are missing" in out and "losses kept" in out
    document = json.loads(run(capsys, *words, "--json")[1])
    assert document["gap_bytes"] == document["seen_bytes"] - document["predicted_bytes"]
    assert document["causes"] and all(one["look"] for one in document["causes"])
    path = tmp_path / "run.json"
    path.write_text(json.dumps(damaged.TIMELINE | {"peak_bytes": 64 * 2**20}))
    status, out, _ = run(
        capsys, "tiny-llama", "--seen", str(path), "--batch", "8", "--tokens", "64"
    )
    assert status == 0 and "python train.py" in out and "Python, PyTorch" in out
    assert out.index("Python, PyTorch") < out.index("losses kept")
    head = {k: v for k, v in damaged.TIMELINE.items() if k not in ("samples", "events")}
    head.pop("peak_bytes"), head.pop("exit")
    path.write_text(json.dumps(head)[:-1] + ', "samples": [\n[0.0, 1000, null],\n[0.1, 20')
    status, out, err = run(capsys, "tiny-llama", "--seen", str(path))
    assert status == 0 and "cut off: 1 complete sample" in out and not err
    card = {"source": "device", "device": "a card", "device_counts": "card"}
    path.write_text(json.dumps(damaged.TIMELINE | card | {"peak_bytes": 64 * 2**20}))
    out = run(capsys, "tiny-llama", "--seen", str(path))[1]
    assert "other processes too" in out and "another process on the card" in out
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps(damaged.SNAPSHOT))
    status, out, _ = run(capsys, "tiny-llama", "--seen", str(path))
    assert status == 0 and "train.py:7 main" in out and "less than predicted" in out


@pytest.mark.parametrize(
    "words, said",
    [
        ("tiny-llama --seen nothing", "no file"),
        ("tiny-llama --seen 0GB", "more than nothing"),
        ("no-model --seen 1GB", "neither a file nor a preset"),
        ("unknown.json --seen 1GB", "model_type|famil"),
        ("tiny-llama --seen cut.pickle", "truncated"),
        ("tiny-llama --seen evil.pickle", r"system"),
        ("tiny-llama --seen other.json", "none of what is read"),
        ("tiny-llama --seen 90GiB --on RTX-4090", "unknown|which has"),
        ("tiny-llama --seen 90GiB --on 24GB", "which has"),
        ("tiny-llama --seen 1GB --states int3", "int3"),
        ("tiny-llama --seen 1GB --tokens 1", "at least 2"),
        ("tiny-llama --seen 1GB --predicted much", "much"),
    ],
)
def test_bad_input_gets_one_clear_line(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("unknown.json").write_text('{"model_type": "perceptron"}')
    Path("cut.pickle").write_bytes(pickle.dumps(damaged.SNAPSHOT, 4)[:-40])
    Path("evil.pickle").write_bytes(b"\x80\x04cos\nsystem\n\x8c\x01a\x85R.")
    Path("other.json").write_text('{"a": 1}')
    status, out, err = run(capsys, *words.split())
    assert status == 2 and not out and err.count("\n") == 1
    assert memlab.__name__ in err and __import__("re").search(said, err), err
