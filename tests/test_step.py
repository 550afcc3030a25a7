"""The simulated step against real ones, to the byte: what is held when, the peak, every event."""

import subprocess
import sys

import pytest
import torch
from compare import apart, is_real
from real_steps import (
    Question,
    deep,
    random_configs,
    real_step,
    simulated,
)

from memlab import Model, Recipe, Run, Sharding
from memlab.lab.models import TinyLlama
from memlab.measure import trace
from memlab.step import ops, simulate
from memlab.step.core import engine, storage_log

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")
TINY = [
    *random_configs(8, 21, families=LLAMAS, implementations=("memlab",), dropouts=(0.0,)),
    *random_configs(4, 22, families=("gpt2",), implementations=("memlab",), dropouts=(0.0,)),
]
HUGGING_FACE = random_configs(25, 23, families=(*LLAMAS, "gemma"), dropouts=(0.0,))
CHECKPOINTED = random_configs(
    9, 24, families=(*LLAMAS, "gemma"), dropouts=(0.0,), checkpoints=("block",)
)
TINY_AGAIN = [
    *random_configs(
        5,
        25,
        families=LLAMAS,
        implementations=("memlab",),
        dropouts=(0.0,),
        checkpoints=("block",),
    ),
    *random_configs(3, 26, families=("gpt2",), implementations=("memlab",), dropouts=(0.1,)),
    *random_configs(5, 27, families=("gpt2",), implementations=("memlab",), checkpoints=("block",)),
]
EVERY = TINY + HUGGING_FACE + CHECKPOINTED + TINY_AGAIN
ALL = [step for i, step in enumerate(EVERY) if i % 5 < 3 or deep(1) > 1]


@pytest.mark.sample(12)
@pytest.mark.parametrize("step", ALL, ids=str)
def test_every_figure_is_the_real_one(step):
    _, found = is_real(step)
    assert sum(found.peak.contents.values()) == found.peak.bytes


FP16 = [
    step.replace(precision=("fp16", "autocast-fp16")[i % 2])
    for i, step in enumerate(
        [*ALL[::7], *random_configs(3, 28, families=("gpt2", "opt", "gpt_neox"))]
    )
]


@pytest.mark.sample(5)
@pytest.mark.parametrize("step", FP16, ids=str)
def test_fp16_takes_the_bytes_of_bf16(step):
    found = simulated(step)
    assert apart(real_step(step), found) == {}
    wide = simulated(step.replace(precision=step.precision.replace("fp16", "bf16")))
    assert (found.held, found.rows) == (wide.held, wide.rows)
    assert found.peak.bytes == wide.peak.bytes


@pytest.mark.sample(6)
@pytest.mark.parametrize("step", [step for step in ALL if step.model.layers <= 4][::3], ids=str)
def test_every_allocation_is_the_real_one(step):
    """Size of each allocation and the total after it, in order, where nothing is added in place."""
    real, found = real_step(step, in_place=False), simulated(step, in_place=False)
    there = [
        (e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes
    ]
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    assert [(size, total) for _, size, total in events if size > 0] == there


@pytest.mark.parametrize("step", ALL[::4], ids=str)
@pytest.mark.parametrize("layers", [4, 5, 6, 11])
def test_layers_left_out_change_nothing(monkeypatch, step, layers):
    """Four layers and a factor give what all of them give, one by one."""
    model = step.model.replace(layers=layers)
    short = simulate(model, step.recipe, step.run)
    monkeypatch.setattr(engine.Engine, "shown", layers)
    long = simulate(model, step.recipe, step.run)
    assert (len(long.log.events) > len(short.log.events)) == (layers > engine.SHOWN)
    for figure in ("rows", "held", "held_contents"):
        assert getattr(short, figure) == getattr(long, figure)
    assert (short.peak.bytes, short.peak.contents) == (long.peak.bytes, long.peak.contents)
    assert short.peak.first_step_bytes == long.peak.first_step_bytes


@pytest.mark.parametrize("op", ["rsqrt", "flash_attention", "log_softmax", "silu"])
def test_one_byte_more_is_noticed(monkeypatch, op):
    step = Question(
        dict(
            model_type="llama",
            num_hidden_layers=2,
            hidden_size=16,
            intermediate_size=24,
            num_attention_heads=2,
            vocab_size=50,
        ),
        "fp32",
        Run.cpu(batch=2, tokens=16),
    )
    real = real_step(step)
    assert apart(real, simulated(step)) == {}

    class Wrong(storage_log.Record):
        def __init__(self, name, *rest):
            super().__init__(name, *rest)
            self.bytes += name == op

    monkeypatch.setattr(engine, "Record", Wrong)
    assert apart(real, simulated(step))["after_forward"] < 0


FROZEN = [
    (("embedding",), TINY[0]),
    (("embedding", "attention"), TINY[1]),
    (("norm", "feed_forward"), TINY[2]),
    (("positions", "attention", "lm_head"), TINY[8]),
    (("embedding", "norm"), HUGGING_FACE[0]),
    (("attention", "feed_forward"), HUGGING_FACE[2]),
    (("embedding", "attention", "norm"), HUGGING_FACE[3]),
    (("feed_forward", "lm_head"), HUGGING_FACE[4]),
    (("embedding", "attention", "feed_forward"), HUGGING_FACE[6]),
]


BASE = ("embedding", "positions", "attention", "feed_forward", "norm")  # the output head is left
UNTIED = [
    step.replace(config=step.config | {"tie_word_embeddings": False})
    for step in (CHECKPOINTED[0], CHECKPOINTED[1], TINY_AGAIN[0], TINY_AGAIN[1], TINY_AGAIN[9])
]
FROZEN += [  # with checkpoints: only transformers lets the embedding's output ask for a gradient
    (("embedding", "feed_forward"), CHECKPOINTED[2]),
    (("embedding", "attention", "norm"), CHECKPOINTED[3].replace(micro_batches=2)),
    (("attention", "norm"), CHECKPOINTED[4]),
    (("embedding", "positions", "attention"), TINY_AGAIN[8]),
    *((BASE, step) for step in UNTIED),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("frozen, step", FROZEN, ids=str)
def test_frozen_weights(frozen, step):
    step = step.replace(frozen=frozen)
    found = simulated(step)
    assert apart(real_step(step), found) == {}
    if frozen == BASE and step.run.implementation == "memlab":
        assert found.saved.bytes == 0  # no layer is computed backward, so none keeps its input


def test_a_real_shape_on_cuda():
    """Qwen3-0.6B at 4,096 tokens in bf16: the peak is that of a trace, to the byte."""
    model = Model.preset("qwen3-0.6b")
    with torch.device("meta"):
        module = TinyLlama(model).bfloat16()
        ids = torch.zeros(1, 4096, dtype=torch.long)
    real = trace(module, (ids, ids))
    run = Run(implementation="memlab", batch=1, tokens=4096)
    found = simulate(model, "bf16", run)
    assert real.peak == found.peak.bytes > 15 * 2**30
    same = simulate(model, "bf16", run.replace(attention="flash"))
    assert same.held == found.held


DYNAMIC = {"rope_scaling": {"rope_type": "dynamic"}}


@pytest.mark.parametrize(
    "recipe, shape, changes, words",
    [
        ("fp32", {}, {"attention": "flash"}, "attention='flash' in fp32"),
        ("bf16", {"head_dim": 12}, {}, "H=12 on cuda"),
        ("fp32", {"config": DYNAMIC}, {}, "rope_type='dynamic' on cuda"),
        ("bf16", {}, {"attention": "math"}, "known: sdpa, eager, flash"),
        ("bf16", {}, {"kernel": "math"}, "kernel='math' is not described"),
    ],
)
def test_what_is_not_described_on_cuda(recipe, shape, changes, words):
    sizes = dict(layers=1, d_model=32, d_ff=8, heads=4, vocab=8, head_dim=8) | shape
    with pytest.raises(ValueError, match=words):
        simulate(Model(**sizes), recipe, Run(batch=1, tokens=8, **changes))


def test_the_work_does_not_grow_with_the_model():
    llama = Model.preset("llama-3-8b")
    small = simulate(llama, "bf16", Run.cpu(batch=2, tokens=2))
    large = simulate(llama.replace(layers=1000), "bf16", Run.cpu(batch=64, tokens=8192))
    assert len(small.log.events) == len(large.log.events) < 6000
    assert large.peak.bytes > 1000 * small.peak.bytes / 32


def test_it_needs_no_torch():
    code = (
        "import sys, memlab.step, memlab; "
        "run = memlab.Run(batch=1, tokens=4096); "
        "memlab.step.simulate(memlab.Model.preset('llama-3-8b'), None, run); "
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_largest_moment_moves():
    """Long sequences peak in the loss, wide layers in the optimizer."""
    model = Model(layers=3, d_model=64, d_ff=160, heads=4, vocab=3000)
    at = {
        tokens: simulate(model, "fp32", Run.cpu(batch=1, tokens=tokens)).peak for tokens in (2, 512)
    }
    assert [at[t].moment for t in (2, 512)] == ["optimizer", "loss"]
    assert at[512].contents["logits"] == 3 * 4 * 512 * 3000  # log-probabilities, two gradients


WRONG = {
    "implementation": ("jax", "known: transformers, memlab"),
    "attention": ("flash", "attention='flash' is CUDA's; on a CPU sdpa or eager is described"),
    "backend": ("tpu", "backend='tpu' is not described; known: cuda, cpu"),
    "optimizer_impl": ("lamb", "known: forloop, foreach, fused"),
    "checkpoint": ("half", "checkpoint='half' is not described; known: none, block"),
    "dropout": (1.0, "dropout=1.0 is not a probability from 0 to below 1"),
    "batch": (0, "batch=0"),
    "tokens": (1, "at least 2"),
    "recipe": ("int8-base", "is not described"),
    "frozen": (("layers",), "frozen='layers' is not described; known: embedding"),
    "config": ({"hidden_act": "gelu_new"}, "hidden_act='gelu_new' is not described; known: silu"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_described_is_named(name):
    value, words = WRONG[name]
    if name == "recipe":
        value = Recipe(name="int8-base", weights="int8/128", other="bf16")
    recipe = value if name == "recipe" else "fp32"
    model = Model(layers=1, d_model=8, d_ff=8, heads=1, vocab=8)
    if name == "config":
        model = model.replace(config=value)
    said = {"batch": 1, "tokens": 8} | ({} if name in ("recipe", "config") else {name: value})
    with pytest.raises(ValueError, match=words):
        simulate(model, recipe, Run.cpu(**said))


@pytest.mark.parametrize(
    "family, config, words",
    [
        ("gemma", {"hidden_act": "silu"}, "known: gelu_pytorch_tanh"),
        ("llama", {"rope_parameters": {"rope_type": "axial"}}, "rope_type='axial'"),
        ("qwen3", {"rope_scaling": {"type": "ntk"}}, "rope_type='ntk'"),
        ("qwen2", {"layer_types": ["sliding_attention"]}, "use_sliding_window is not true"),
        ("qwen3", {"layer_types": ["chunked_attention"]}, "'chunked_attention', not described"),
        ("qwen3", {"layer_types": ["full_attention"] * 2}, "names 2 layers; the model has 1"),
    ],
)
def test_keys_that_change_the_step(family, config, words):
    model = Model(family=family, layers=1, d_model=8, d_ff=8, heads=1, vocab=8)
    assert simulate(model, "fp32", Run.cpu(batch=1, tokens=8)).peak.bytes
    with pytest.raises(ValueError, match=words):
        simulate(model.replace(config=config), "fp32", Run.cpu(batch=1, tokens=8))


def test_a_model_without_anything_to_train():
    model = Model(layers=1, d_model=8, d_ff=8, heads=1, vocab=8)
    tied = model.replace(tied=True)
    sizes = dict(batch=1, tokens=8)
    assert simulate(model, "fp32", Run.cpu(**sizes, frozen=BASE)).rows["gradients"] == 4 * 8 * 8
    for shaped, frozen in ((model, (*BASE, "lm_head")), (tied, BASE)):
        with pytest.raises(ValueError, match="nothing of this model is left to train"):
            simulate(shaped, "fp32", Run.cpu(**sizes, frozen=frozen, checkpoint="block"))


def test_what_a_family_may_lack():
    llama = Model(layers=1, d_model=8, d_ff=8, heads=1, vocab=8)
    with pytest.raises(ValueError, match="dropout=0.1 is not described for memlab llama"):
        simulate(llama, "fp32", Run.cpu(batch=1, tokens=8, implementation="memlab", dropout=0.1))
    nanochat = Model(family="nanochat", layers=1, d_model=32, d_ff=8, heads=1, vocab=8)
    with pytest.raises(ValueError, match="family 'nanochat' is not described for transformers"):
        simulate(nanochat, "fp32", Run.cpu(batch=1, tokens=8))
    wide = Model(layers=1, d_model=8, d_ff=8, heads=2, kv_heads=1, head_dim=264, vocab=8)
    with pytest.raises(ValueError, match="H=264 with shared"):
        simulate(wide, "fp32", Run.cpu(batch=1, tokens=8))


def test_weight_copies_of_autocast_are_made_once():
    """A tied head under autocast is cast for the head, and the table stays fp32 for the lookup."""
    f = ops.Ops("bf16")
    weight = f.parameter("w", (4, 4), "fp32")
    x = f.new("x", (2, 4), "fp32")
    first, second = f.linear(x, weight), f.linear(x, weight)
    copies = [r for r, size, _ in f.log.events if r and size > 0 and r.op == "to"]
    assert [copy.shape for copy in copies] == [(4, 4), (2, 4), (2, 4)]
    assert first.dtype == second.dtype == "bf16"


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_every_layer_gives_the_same_step_and_can_be_replayed(backend):
    how = dict(batch=2, tokens=64, implementation="memlab", backend=backend)
    model = Model.preset("tiny-llama").replace(layers=9)
    short, whole = (
        simulate(model, "bf16", Run.cpu(**how), every_layer=every) for every in (False, True)
    )
    assert whole.peak.bytes == short.peak.bytes and whole.held == short.held
    assert len(whole.log.events) > len(short.log.events)
    done = whole.replay()
    assert short.peak.bytes <= done.peak_allocated <= done.peak_reserved
    assert done.peak_requested == max(short.peak.bytes, short.peak.first_step_bytes)
    assert whole.replay(done.peak_reserved).fits
    assert not whole.replay(short.peak.bytes // 2).fits
    with pytest.raises(ValueError, match="every_layer=True"):
        short.replay()


def test_several_devices_are_refused():
    run = Run.cpu(batch=1, tokens=8, devices=Sharding(data=2, pipeline=2))
    with pytest.raises(ValueError, match="the step of one device alone is described"):
        simulate(Model.preset("tiny-llama"), "fp32", run)
