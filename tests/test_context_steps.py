"""The step that is derived for ranks that share a text, against torch's ring on real ranks."""

import inspect
import json

import compare
import context_steps
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as functional
from depth import few
from test_sharded_step import CONFIGS
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel

from memlab import Model, Run, Sharding, estimate
from memlab.cli import main
from memlab.lab.ranks import in_turn, on_ranks
from memlab.step import Lora, simulate

FEW = {"vocab_size": 16}  # so that layers, and not the loss, are the peak
LLAMA = Model.preset("llama-3-8b")


def question(family, recipe="fp32", *, config=None, **said):
    whole = CONFIGS[family] | (config or {})
    return compare.question(whole, recipe, {"context": 2, "zero": 3}, {"tokens": 32} | said)


OVER_TWO = few(
    4,
    (
        question("llama"),
        question("llama", "bf16"),
        question("qwen3", checkpoint="block"),
        question("llama", batch=1, param_dtype="bf16", micro_batches=2, gradient_sync="last"),
        question("llama", "bf16", batch=1, checkpoint="block", config={"num_key_value_heads": 1}),
        question(
            "llama", tokens=64, config=FEW | {"num_key_value_heads": 4, "num_hidden_layers": 5}
        ),
        question("qwen3", "bf16", tokens=4, batch=3, reduce_dtype="fp32"),
        question("llama", tokens=128, batch=1, checkpoint="block", config=FEW),
        question("llama", tokens=64, config=FEW, reshard_after_forward=False),
    ),
)
OVER_FOUR = few(
    2,
    (
        question("llama", context=4),
        question("llama", "bf16", context=4, tokens=64, config=FEW),
        question("llama", context=4, batch=1, checkpoint="block", param_dtype="bf16"),
        question("qwen3", "bf16", data=2, micro_batches=2),
    ),
)


@pytest.fixture(scope="module")
def over_two():
    return on_ranks(2, context_steps.several, OVER_TWO, seconds=300)


@pytest.fixture(scope="module")
def over_four():
    return on_ranks(4, context_steps.several, OVER_FOUR, seconds=300)


def holds(asked, number, ranks):
    """Rank 0, whose step is described, and that no other one holds more."""
    compare.holds(simulate(*asked), ranks[0][number], (*compare.PARTS, "inputs"))
    peaks = [rank[number]["peak"] for rank in ranks]
    assert peaks[0] == max(peaks) > peaks[-1]  # which has no mask


@pytest.mark.parametrize("number", range(len(OVER_TWO)), ids=str)
def test_two_real_ranks_hold_what_is_derived(number, over_two):
    holds(OVER_TWO[number], number, over_two)


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(OVER_FOUR)), ids=str)
def test_four_real_ranks_hold_what_is_derived(number, over_four):
    holds(OVER_FOUR[number], number, over_four)


def plain():
    """What torch says to SDPA of a CPU under context_parallel."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    x = torch.zeros(1, 2, 8, 4)
    with context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
        try:
            functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        except NotImplementedError as error:
            return str(error)
    return "ran"


def ring():
    """How far torch's ring around the CPU's kernel is from the attention of one device."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    rank, pieces = dist.get_rank(), 2 * dist.get_world_size()
    draw = torch.manual_seed(0)
    whole = [torch.randn(1, n, 16, 8, generator=draw).requires_grad_() for n in (4, 2, 2)]
    expected = functional.scaled_dot_product_attention(*whole, is_causal=True, enable_gqa=True)
    expected.square().sum().backward()
    cut = [x.detach().clone() for x in whole]
    how = {"buffers": cut, "buffer_seq_dims": [2, 2, 2], "no_restore_buffers": set(cut)}
    with context_steps.ring_on_cpu(), context_parallel(mesh, **how):
        mine = [x.clone().requires_grad_() for x in cut]
        out = functional.scaled_dot_product_attention(*mine, is_causal=True, enable_gqa=True)
        out.square().sum().backward()

    def part(x):
        both = x.chunk(pieces, 2)
        return torch.cat([both[rank], both[pieces - 1 - rank]], 2)

    pairs = [(out, expected), *((a.grad, b.grad) for a, b in zip(mine, whole, strict=True))]
    return max(float((a - part(b)).abs().max()) for a, b in pairs)


def test_the_ring_computes_what_one_device_does_and_torch_has_none_for_a_cpu():
    for said, apart in on_ranks(2, in_turn, (plain,), (ring,)):
        assert "flash_attention_for_cpu.default does not have a sharding strategy" in said
        assert apart < 1e-5


def test_the_sources_say_so():
    from accelerate.big_modeling import _attach_context_parallel_hooks
    from torch.distributed.tensor.experimental._context_parallel import _attention as theirs

    assert theirs._cp_options.rotate_method is theirs._RotateMethod.ALL_GATHER
    assert theirs._cp_options.convert_to_f32 and theirs._cp_options.enable_load_balance
    hook = inspect.getsource(_attach_context_parallel_hooks)
    assert 'module_kwargs["attention_mask"] = None' in hook


@pytest.mark.parametrize("more", [{}, {"checkpoint": "block"}, {"context": 4}], ids=str)
def test_layers_that_are_counted_are_like_those_that_are_simulated(more):
    asked = question("llama", "bf16", config={"num_hidden_layers": 9}, **more)
    short, whole = simulate(*asked), simulate(*asked, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak and short.held_contents == whole.held_contents


def gpu(context, **more):
    devices = Sharding(context=context, data=8 // context, zero=3)
    return simulate(LLAMA, "bf16", Run(**{"tokens": 8192} | more, devices=devices))


def test_a_mask_that_nobody_reads_is_there_as_long_as_the_layers_run():
    tokens = 8192 // 4
    step = gpu(4)
    made = [r for r, change, _ in step.log.events if r and r.dtype == "bool" and change > 0]
    assert max(record.bytes for record in made) == tokens**2


def test_ranks_that_share_a_text_hold_a_part_of_it_and_each_layers_output_twice():
    """Merged pieces lie head by head, and the projection after attention keeps its own copy."""
    alone, shared = gpu(1, tokens=65536), gpu(8, tokens=65536)
    assert shared.peak.contents["logits"] == alone.peak.contents["logits"] / 8
    twice = LLAMA.layers * 2 * (65536 // 8) * LLAMA.heads * LLAMA.head_dim
    kept = shared.peak.contents["activations"] - alone.peak.contents["activations"] / 8
    assert kept == pytest.approx(twice, rel=1e-6)
    assert shared.peak.contents["weights"] == alone.peak.contents["weights"]


def test_the_shell_answers_with_the_peak(tmp_path, capsys):
    config = tmp_path / "config.json"
    model, recipe, run = OVER_FOUR[-1]
    config.write_text(json.dumps(model.config), encoding="utf-8")
    asked = "--batch 2 --tokens 32 --backend cpu --precision bf16 --micro-batches 2"
    shared = "--ranks 4 --context-parallel 2 --zero 3"
    assert main(["estimate", str(config), *asked.split(), *shared.split(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["peak"]["bytes"] == simulate(model, recipe, run).peak.bytes
    asked = "--tokens 64 --precision bf16 --context-parallel 2 --zero 3"
    assert main(["estimate", str(config), *asked.split()]) == 0
    assert "one rank of 2 (context 2, ZeRO 3)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"tokens": 30}, "tokens=30 with context=2; a multiple of 4 is needed"),
        ({"loop": "trainer"}, "loop='trainer' is not described beside context=2"),
        ({"lora": Lora(3)}, "LoRA|lora=.* is not described beside context=2"),
        ({"attention": "eager"}, "eager attention, or a window, is not described"),
        ({"dropout": 0.1}, "attention_dropout=0.1 is not described beside context=2"),
        ({"implementation": "memlab"}, "memlab 'llama' is not described beside context=2"),
        ({"loss": "chunked"}, "loss='chunked' is not described beside FSDP2"),
        ({"backend": "cuda"}, "fp32 with kernel='auto' on CUDA is not described"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question("llama", **said))


def test_other_families_replicas_and_a_host_are_refused_by_name():
    with pytest.raises(ValueError, match="'gpt2' is not described beside context=2; known"):
        estimate(*question("gpt2"))
    devices = Sharding.of(context=2, zero=3, cpu_offload="pinned")
    with pytest.raises(ValueError, match="cpu_offload='pinned' is not described beside context=2"):
        estimate(*question("llama")[:2], Run(tokens=32, devices=devices))
    with pytest.raises(ValueError, match="autocast='bf16' is not described beside context=2"):
        estimate(*question("llama", "autocast-bf16"))
    with pytest.raises(ValueError, match=r"FSDP2's \(ZeRO 3 over data and context alone\)"):
        estimate(LLAMA, "bf16", Run(tokens=32, devices=Sharding(context=2)))
