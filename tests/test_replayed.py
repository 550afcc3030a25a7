"""What the allocator holds of a step: one function for each door, on one device and on several."""

import json

import pytest

from memlab import Model, Recipe, Run
from memlab.cli import main
from memlab.cli.estimate_json import ALLOCATOR, WIDE
from memlab.sharding import Sharding
from memlab.step.core.allocator_replay import replayed
from memlab.step.loops.loop import quiet, tops
from memlab.step.simulate import simulate
from memlab.terms.replay import replay

MiB = 2**20
LLAMA = Model.preset("tiny-llama")
HOW = {"batch": 4, "tokens": 64}
SEVERAL = [
    ("bf16", Run(**HOW, devices=Sharding(data=4))),
    ("bf16", Run(**HOW, devices=Sharding(data=4, zero=3))),
    ("fp32", Run(**HOW, devices=Sharding.of(data=2, zero=3, param_dtype="bf16"))),
    ("zero", Run(**HOW, devices=Sharding(data=4, zero=2))),
    ("bf16", Run(**HOW, devices=Sharding(tensor=2))),
    ("bf16", Run(**HOW, micro_batches=4, devices=Sharding.of(pipeline=2, schedule="gpipe"))),
]


@pytest.mark.parametrize(("recipe", "run"), SEVERAL, ids=str)
def test_of_several_devices_it_is_that_of_the_rank_that_holds_most(recipe, run):
    chosen = Recipe.named(recipe)
    done = replayed(LLAMA, chosen, run)
    highest = max(sum(held.values()) for held in tops(LLAMA, chosen, run).values())
    assert done.requested == highest <= done.allocated <= done.reserved


def test_no_stream_gets_what_another_has_let_go_of():
    """By hand: 30 MiB that the copies' stream let go of stay its own, and are taken twice."""
    events = [("alloc", "a", 30 * MiB), ("free", "a", 0), ("alloc", "b", 30 * MiB)]
    assert replay(events).peak_reserved == 30 * MiB
    apart = replay(events, streams={"a": "copies"})
    assert apart.peak_reserved == 60 * MiB and apart.peak_allocated == 30 * MiB
    again = replay([*events, ("alloc", "c", 30 * MiB)], streams={"a": "copies", "c": "copies"})
    assert again.peak_reserved == 60 * MiB


def test_fsdp2_takes_its_buffers_from_streams_of_their_own():
    """torch, _fsdp_collectives.py: foreach_all_gather and foreach_reduce."""
    run = Run(**HOW, devices=Sharding.of(data=4, zero=3, param_dtype="bf16", reduce_dtype="fp32"))
    log = simulate(LLAMA, "fp32", run, every_layer=True).log
    streams = {}
    for record, change, _ in log.events:
        if change > 0:
            streams.setdefault((record.op, record.category), set()).add(record.stream)
    copies, reduced = {"all_gather_copy_in_stream"}, {"reduce_scatter_stream"}
    assert streams["all_gather", "all-gather buffers"] == copies
    assert streams["all_gather_copy_in", "all-gather buffers"] == copies
    assert streams["reduce_scatter", "gradients"] == reduced
    assert streams["reduce_scatter_copy_in", "reduce-scatter buffers"] == {""}
    named = {stream for found in streams.values() for stream in found}
    assert named == {"", *copies, *reduced}
    one = replay([("alloc" if n > 0 else "free", id(r), abs(n)) for r, n, _ in log.events if n])
    assert log.replay(None, False).peak_reserved >= one.peak_reserved


@pytest.mark.parametrize(
    "said",
    ["--ranks 4", "--fsdp 4", "--tensor 2", "--pipeline 2 --schedule gpipe --micro-batches 4"],
)
def test_estimate_prints_it_for_several_devices(capsys, said):
    """It was null for them, though explain replays the same logs."""
    words = f"estimate tiny-llama --precision bf16 --batch 4 --tokens 64 {said} --json"
    assert main(words.split()) == 0
    document = json.loads(capsys.readouterr().out)
    found = document["allocator"]
    assert document["peak"]["bytes"] <= found["allocated"] <= found["reserved"]
    assert ALLOCATOR not in document["leaves_out"]


HELD = ("graph", "logits", "output", "gradients", "state_dict", "model", "fp32_model", "batch")


@pytest.mark.parametrize("recipe", ["bf16", "fp32", "autocast"])
@pytest.mark.parametrize("what", HELD)
def test_what_the_loop_holds_goes_through_the_allocator(what, recipe):
    """It was left out: less was reserved than the peak that was printed above it."""
    chosen, run = Recipe.named(recipe), Run(**HOW, holds=(what,))
    done = replayed(LLAMA, chosen, run)
    highest = max(sum(held.values()) for held in tops(LLAMA, chosen, run).values())
    assert done.requested == highest <= done.allocated <= done.reserved
    plain = replayed(LLAMA, chosen, Run(**HOW))
    assert done.requested > plain.requested and done.reserved >= plain.reserved


@pytest.mark.parametrize("recipe", ["bf16", "fp32", "autocast"])
@pytest.mark.parametrize("more", [{}, {"micro_batches": 2}, {"checkpoint": "block"}], ids=str)
def test_a_loop_that_holds_its_output_is_one_that_keeps_outputs(recipe, more):
    """One program had two answers: only the total of one of them had the logits in it."""
    chosen = Recipe.named(recipe)
    held = Run(**HOW, **more, holds=("output",))
    kept = Run(**HOW, **more, loop="keeps-outputs")
    assert tops(LLAMA, chosen, held) == tops(LLAMA, chosen, kept)
    assert quiet(LLAMA, chosen, held) == quiet(LLAMA, chosen, kept)
    assert quiet(LLAMA, chosen, held) != quiet(LLAMA, chosen, Run(**HOW, **more))
    assert replayed(LLAMA, chosen, held) == replayed(LLAMA, chosen, kept)


@pytest.mark.parametrize("what", HELD)
def test_the_quiet_moments_have_what_the_loop_holds(capsys, what):
    words = f"estimate tiny-llama --precision bf16 --batch 4 --tokens 64 --holds {what} --json"
    found = json.loads((main(words.split()), capsys.readouterr().out)[1])
    plain = quiet(LLAMA, Recipe.named("bf16"), Run(**HOW))
    assert sum(found["held"].values()) > sum(plain.values()) - plain["first_step"]
    assert found["allocator"]["allocated"] >= found["peak"]["bytes"]


def test_keys_and_values_of_an_output_are_counted(capsys):
    """A model returns them in training too, but for checkpoints and where use_cache is false."""
    words = "estimate tiny-llama --precision bf16 --batch 4 --tokens 64 --json"

    def found(*said):
        main([*words.split(), *said])
        return json.loads(capsys.readouterr().out)

    size = 2 * 4 * 4 * 64 * 2 * 32 * 2  # keys and values, L B T K H, 2 bytes each
    for said in (("--loop", "keeps-outputs"), ("--holds", "output")):
        kept = found(*said)
        assert kept["rows"]["kv_cache"] == size
        assert kept["peak"]["contents"]["kv_cache"] == 2 * size  # the last output's, and this one's
        logits = 2 * 4 * 64 * LLAMA.vocab
        more = kept["held"]["between_steps"] - found()["held"]["between_steps"]
        assert more == size + logits + 4  # and the loss
        assert not [line for line in kept["leaves_out"] if "keys" in line]
        again = found(*said, "--checkpoint", "block")
        assert again["rows"]["kv_cache"] == 0 and "kv_cache" not in again["peak"]["contents"]
    packed = found("--loop", "keeps-outputs", "--texts", "packed")["leaves_out"]
    assert [line for line in packed if "looks for no second text in a row" in line]


def test_a_model_in_training_returns_its_cache_but_with_checkpoints():
    """What the line above takes for granted, of the installed transformers."""
    import torch

    how = {"hidden_size": 16, "intermediate_size": 16, "vocab_size": 16, "num_hidden_layers": 2}
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(**how, num_attention_heads=2, num_key_value_heads=1)
    module, ids = transformers.LlamaForCausalLM(config).train(), torch.ones(2, 8, dtype=torch.long)
    kept = module(input_ids=ids, labels=ids).past_key_values
    assert [tuple(layer.keys.shape) for layer in kept.layers] == [(2, 1, 8, 8)] * 2
    module.activation_checkpointing_enable({"use_reentrant": False})
    assert module(input_ids=ids, labels=ids).past_key_values is None


def test_what_no_log_has_is_not_replayed_and_said_so(capsys):
    words = "estimate tiny-llama --precision bf16 --tokens 64 --implementation memlab --json"
    main([*words.split(), "--holds", "wide_logits"])
    found = json.loads(capsys.readouterr().out)
    assert found["allocator"] is None and WIDE in found["leaves_out"]
    with pytest.raises(ValueError, match="holds 'output' twice"):
        tops(LLAMA, Recipe.named("bf16"), Run(**HOW, loop="keeps-outputs", holds=("output",)))
