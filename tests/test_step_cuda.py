"""The simulated step on CUDA against a trace of it, in every family; none is measured."""

import itertools

import pytest
import torch
from real_steps import Question, build, deep, quiet, random_configs, simulated

from memlab import Run
from memlab.measure import trace
from memlab.step.ops.sdpa_kernel import kernel

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")


def traced(step: Question):
    """The same step on fake tensors, with the graph of CUDA."""
    with quiet(), torch.device("meta"):
        module = build(step)
        ids = torch.zeros(step.run.batch, step.run.tokens, dtype=torch.long)
    theirs = step.run.implementation == "transformers"
    inputs = {"input_ids": ids, "labels": ids} if theirs else (ids, ids)
    kept = []  # until the next forward pass is over

    def keeps(module):
        on = next(module.parameters()).device
        if not kept:
            kept.append(torch.zeros(ids.shape, dtype=torch.long, device=on))
        kept[1:] = [module(kept[0], labels=kept[0])]
        return kept[1].loss

    return trace(
        module,
        keeps if step.run.loop == "keeps-outputs" else inputs,
        Run(optimizer_impl=step.run.optimizer_impl),
        autocast=step.recipe.autocast,
    )


def on_cuda(steps):
    """Those whose heads flash attention takes without padding them, if it takes them."""
    for step in steps:
        width = step.model.head_dim
        if step.run.attention == "eager" or step.precision == "fp32" or width % 8 == 0:
            yield step


ANY = ("none", "block")
DRAWN = [
    *random_configs(deep(9), 81, checkpoints=ANY),
    *random_configs(deep(6), 82, checkpoints=ANY, families=LLAMAS, windows=True),
    *random_configs(
        deep(3), 83, checkpoints=ANY, families=LLAMAS, implementations=("memlab",), dropouts=(0.0,)
    ),
    *random_configs(deep(2), 84, families=("gpt2",), implementations=("memlab",), dropouts=(0.1,)),
]


FP16 = [
    step.replace(precision=("fp16", "autocast-fp16")[i % 2]) for i, step in enumerate(DRAWN[::4])
]


@pytest.mark.sample(7)
@pytest.mark.parametrize("step", [*on_cuda(DRAWN + FP16)], ids=str)
def test_the_cuda_graph_is_the_traced_one(step):
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)
    assert found.rows["activations"] == real.rows["activations"]
    assert found.rows["logits"] == real.rows["logits"]


SMALL = {
    "gpt2": {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_inner": 80, "vocab_size": 61},
    "opt": {"ffn_dim": 80},
    "gpt_neox": {"intermediate_size": 80},
    "llama": {"intermediate_size": 80, "num_key_value_heads": 2},
    "gemma": {"intermediate_size": 80, "num_key_value_heads": 1, "head_dim": 8},
}
SHAPE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61}
# One after the other they had been refused: dropout, gpt2 under autocast, shared heads in fp32,
# gpt_neox's SDPA in fp32.
CASES = [
    *itertools.product(SMALL, ("fp32", "autocast-bf16"), (0.1,), ("sdpa",)),
    ("gpt2", "autocast-bf16", 0.0, "eager"),
    ("gpt_neox", "fp32", 0.0, "sdpa"),
    ("llama", "fp32", 0.0, "sdpa"),
    ("llama", "bf16", 0.1, "eager"),
]
# Norms are stand-ins in a trace, and what masks are checked for goes a moment earlier.
OTHER = ("norm", "new_empty", "empty_like", "aten.eq.Scalar", "aten.all", "eq", "all")


@pytest.mark.sample(7)
@pytest.mark.parametrize("family, precision, dropout, attention", CASES)
def test_every_allocation_is_the_traced_one(family, precision, dropout, attention):
    """Size of each allocation and the total after it, in order, but for the norms'."""
    shape = SMALL[family] if family == "gpt2" else {**SHAPE, **SMALL[family]}
    run = Run.cpu(dropout=dropout, attention=attention, batch=3, tokens=11)
    step = Question({"model_type": family, **shape}, precision, run)
    if family == "opt":  # where views of gradients meet, the trace adds out of place
        step = step.replace(config=step.config | {"num_hidden_layers": 1})
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert found.held == real.held
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.backward"]]
    end = next(i for i, event in enumerate(real.timeline) if event.phase == "backward")
    there = [e for e in real.timeline[:end] if e.kind == "alloc" and e.bytes]
    assert [
        (size, total) for record, size, total in events if size > 0 and not other(record.op)
    ] == [(event.bytes, event.total) for event in there if not other(event.op)]


def other(op: str) -> bool:
    return op in OTHER or any(part in op for part in OTHER[:-2])


def test_the_scores_of_shared_heads_in_fp32_are_kept():
    """SDPA's math: one probability in fp32 a pair of tokens, and with dropout a byte more."""
    B, T, N, layers = 2, 64, 4, 3
    config = {"model_type": "llama", **SHAPE, "intermediate_size": 80, "num_hidden_layers": layers}
    kept = {}
    for kv_heads, dropout in ((4, 0.0), (2, 0.0), (2, 0.1)):
        run = Run(batch=B, tokens=T, dropout=dropout)
        found = simulated(Question(config | {"num_key_value_heads": kv_heads}, "fp32", run))
        kept[kv_heads, dropout] = sum(
            row.bytes for row in found.saved.rows if row.shape.endswith("T · T")
        )
    scores = B * N * T * T
    assert kept == {(4, 0.0): 0, (2, 0.0): 4 * scores, (2, 0.1): 9 * scores}


@pytest.mark.parametrize(
    "dtype, width, options, name",
    [
        ("bf16", 64, {}, "flash"),
        ("bf16", 64, {"dropout": 0.1}, "flash"),
        ("bf16", 64, {"shared": True}, "flash"),
        ("bf16", 64, {"masked": True}, "efficient"),
        ("bf16", 320, {}, "efficient"),
        ("bf16", 320, {"shared": True}, "math"),
        ("fp32", 64, {"dropout": 0.1}, "efficient"),
        ("fp32", 64, {"shared": True}, "math"),
        ("fp32", 30, {}, "math"),
    ],
)
def test_the_kernel_is_the_one_that_a_trace_takes(dtype, width, options, name):
    from memlab.measure.fake_cuda.attention import choose

    assert kernel("cuda", dtype, width, **options) == name
    kind = {"bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    q = torch.empty(1, 4, 8, width, dtype=kind, device="meta")
    k = torch.empty(1, 2 if options.get("shared") else 4, 8, width, dtype=kind, device="meta")
    mask = torch.empty(8, 8, dtype=torch.bool, device="meta") if options.get("masked") else None
    assert choose(q, k, k, mask, mask is None) == name
