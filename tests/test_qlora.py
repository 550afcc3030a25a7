"""QLoRA: a base of four-bit codes under adapters, real and simulated to the byte."""

import pytest
import torch
from compare import allocates_as_real, is_real
from real_steps import Question

from memlab import Model, Run
from memlab.cli import main
from memlab.lab.blocks import part_bytes, torchao
from memlab.lab.lora import adapt, merge
from memlab.lab.models import TinyLlama
from memlab.lab.qlora import FrozenLinear, quantize_base, upcast, widen_base
from memlab.lab.quantize import dequantize, quantize
from memlab.lab.quantized_linear import QuantizedLinear
from memlab.measure import Saved, storage_bytes
from memlab.step import Lora, simulate

SHAPE = {"num_hidden_layers": 3, "hidden_size": 64, "vocab_size": 300, "intermediate_size": 128}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 40}
LLAMA = {"model_type": "llama", "head_dim": 16, **SHAPE}
QWEN = {"model_type": "qwen2", **SHAPE}
GPT = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 90}
GPT |= {"n_inner": 128, "n_positions": 40}
# Its width of 352 does not fill blocks of 64.
TINY = Model.preset("tiny-llama").replace(d_ff=384)
ALL = ("q", "k", "v", "out", "gate", "up", "down")
STEPS = [
    Question(
        config,
        precision,
        Run.cpu(implementation=where, batch=2, tokens=tokens, lora=lora, checkpoint=again),
    )
    for config, where, precision, tokens, lora, again in [
        (LLAMA, "memlab", "bf16", 16, Lora(4, ("q", "v"), "nf4"), "none"),
        (LLAMA, "memlab", "bf16", 16, Lora(4, ("q", "v"), "nf4", keep_wide=True), "none"),
        (LLAMA, "memlab", "fp32", 33, Lora(1, ALL, "nf4"), "none"),
        (LLAMA, "memlab", "bf16", 33, Lora(4, ALL, "nf4"), "block"),
        (LLAMA, "memlab", "bf16", 16, Lora(2, ("q", "v"), "nf4"), "block"),
        (LLAMA, "memlab", "bf16", 16, Lora(2, ("q", "v"), "nf4", keep_wide=True), "block"),
        (LLAMA, "transformers", "bf16", 16, Lora(4, ALL, "nf4"), "none"),
        (LLAMA, "transformers", "bf16", 21, Lora(4, ("q", "v"), "nf4"), "block"),
        (LLAMA, "transformers", "fp32", 16, Lora(4, ("up",), "nf4", dropout=0.1), "none"),
        (LLAMA, "transformers", "fp32", 16, Lora(4, ALL, "nf4"), "block"),
        (QWEN, "transformers", "bf16", 16, Lora(4, ("q", "down"), "nf4", dtype="bf16"), "none"),
        (LLAMA, "transformers", "autocast-bf16", 16, Lora(4, ALL, "nf4"), "block"),
        (LLAMA, "transformers", "autocast-bf16", 16, Lora(4, ("q", "v"), "nf4"), "none"),
        (LLAMA, "transformers", "autocast-bf16", 16, Lora(2, ("up",), "nf4", dropout=0.1), "none"),
        (QWEN, "transformers", "autocast-bf16", 21, Lora(4, ALL, "nf4"), "none"),
        (QWEN, "transformers", "autocast-bf16", 21, Lora(2, ("q", "down"), "nf4"), "block"),
        (GPT, "memlab", "bf16", 16, Lora(4, ("qkv", "down"), "nf4"), "none"),
        (GPT, "memlab", "fp32", 16, Lora(4, ("up",), "nf4", keep_wide=True), "none"),
    ]
]


@pytest.mark.sample(9)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, _ = is_real(step)


@pytest.mark.sample(5)
@pytest.mark.parametrize("step", STEPS[::2], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


def net_and_ids(dtype=torch.bfloat16):
    torch.manual_seed(0)
    net = adapt(TinyLlama(TINY).to(dtype), 4)
    return net, torch.randint(TINY.vocab, (2, 8))


def layer(kind, dtype=torch.float32):
    torch.manual_seed(0)
    return kind(torch.nn.Linear(128, 64, bias=False).to(dtype).requires_grad_(False), "nf4")


def test_both_ways_give_the_same_numbers_and_one_keeps_the_weight():
    x = torch.randn(2, 5, 128, requires_grad=True)
    found = {}
    for kind in (QuantizedLinear, FrozenLinear):
        net = layer(kind)
        with Saved(exclude=[net, x]) as saved:
            y = net(x)
        (dx,) = torch.autograd.grad(y.square().sum(), x)
        found[kind] = y, dx, saved.bytes
    kept, again = found.values()
    assert torch.equal(kept[0], again[0])
    torch.testing.assert_close(kept[1], again[1])
    assert (kept[2], again[2]) == (4 * 128 * 64, 0)


def test_torchao_keeps_no_wide_weight_either():
    nf4 = torchao("quantization.quantize_.workflows.nf4.nf4_tensor")
    weight = nf4.to_nf4(torch.randn(128, 128).bfloat16(), block_size=64, scaler_block_size=256)
    x = torch.randn(4, 128, dtype=torch.bfloat16, requires_grad=True)
    with Saved(exclude=[weight, x]) as saved:
        y = nf4.linear_nf4(x, weight)
    y.sum().backward()
    assert saved.bytes == 0
    assert sum(part_bytes(weight).values()) < 0.6 * weight.numel()


def test_the_base_alone_becomes_codes():
    net, ids = net_and_ids()
    quantize_base(net)
    lora = Lora(4, base="nf4")
    adapters = 2 * lora.parameter_count(TINY)
    weights = storage_bytes(list(net.parameters()))
    assert weights == lora.base_bytes(TINY, "bf16") + adapters
    assert type(net.lm_head) is torch.nn.Linear
    q = net.layers[0].attention.q
    assert type(q.base) is FrozenLinear and type(q.a) is torch.nn.Linear
    net(ids, ids).backward()
    assert {n for n, p in net.named_parameters() if p.grad is not None} == {
        n for n, p in net.named_parameters() if ".a." in n or ".b." in n
    }


def test_the_logits_are_those_of_the_rounded_weights():
    net, ids = net_and_ids(torch.float32)
    twin, _ = net_and_ids(torch.float32)
    for part in twin.layers.modules():
        if isinstance(part, torch.nn.Linear) and not part.weight.requires_grad:
            part.weight.data = dequantize(quantize(part.weight, "nf4"), torch.float32)
    torch.testing.assert_close(quantize_base(net)(ids), twin(ids))


def test_what_is_not_quantized_is_doubled_and_runs():
    net, ids = net_and_ids()
    quantize_base(net)
    codes = [(m.codes, m.scales) for m in net.modules() if isinstance(m, FrozenLinear)]
    before, held = storage_bytes(list(net.parameters())), storage_bytes(codes)
    assert upcast(net) is net
    assert storage_bytes(list(net.parameters())) - held == 2 * (before - held)
    found = simulate(
        TINY, "fp32", Run.cpu(batch=2, tokens=8, implementation="memlab", lora=Lora(4, base="nf4"))
    )
    assert storage_bytes(list(net.parameters())) == found.rows["weights"]
    assert net(ids).dtype == torch.float32
    net(ids, ids).backward()


def test_codes_cannot_be_added_to():
    net, _ = net_and_ids()
    with pytest.raises(TypeError, match="a FrozenLinear holds no weight"):
        merge(quantize_base(net))


def test_widened_it_computes_the_same_and_can_be_merged():
    net, ids = net_and_ids(torch.float32)
    for name, p in quantize_base(net).named_parameters():
        if ".b." in name:
            torch.nn.init.normal_(p, std=0.1)
    with torch.no_grad():
        before = net(ids)
        torch.testing.assert_close(merge(widen_base(net, torch.float32))(ids), before)
    assert storage_bytes(list(net.parameters())) == 4 * TINY.parameter_count


@pytest.mark.parametrize(
    "config, recipe, how, lora, words",
    [
        (LLAMA, "bf16", {"implementation": "memlab"}, Lora(4, base="nf4"), "or on cuda"),
        (LLAMA, "bf16", {}, Lora(4, base="nf4", keep_wide=True), "bitsandbytes has it not"),
        (GPT, "bf16", {}, Lora(4, ("qkv",), "nf4"), "not described for transformers gpt2"),
    ],
)
def test_what_is_not_described_is_named(config, recipe, how, lora, words):
    with pytest.raises(ValueError, match=words):
        simulate(Model.from_config(config), recipe, Run(batch=1, tokens=8, lora=lora, **how))
    narrow = TINY.replace(d_ff=96)
    with pytest.raises(ValueError, match="down: 96 inputs do not fill blocks of 64"):
        simulate(narrow, "fp32", Run.cpu(batch=1, tokens=8, lora=Lora(4, base="nf4")))


def test_on_cuda_a_base_in_nf4_changes_the_weights_and_one_copy_at_a_time():
    """Llama-3-8B as a GPU user fine-tunes it: bitsandbytes under peft's adapters."""
    llama = Model.preset("llama-3-8b")
    lora = Lora(16, ALL, "nf4")
    how = dict(batch=1, tokens=2048, checkpoint="block", loss="chunked")
    wide, narrow = (
        simulate(llama, "bf16", Run(lora=each, **how)) for each in (Lora(16, ALL), lora)
    )
    for name in ("gradients", "optimizer", "logits"):
        assert narrow.rows[name] == wide.rows[name], name
    less = lora.base_bytes(llama, "bf16") + lora.level_bytes(llama) - 2 * llama.parameter_count
    assert narrow.rows["weights"] - wide.rows["weights"] == less
    assert narrow.rows["activations"] == wide.rows["activations"]
    assert 0 <= narrow.peak.bytes - wide.peak.bytes - less <= 2 * 3 * llama.d_ff * llama.d_model


def test_the_shell_says_the_same(capsys):
    words = "estimate llama-3-8b --recipe bf16 --backend cpu --batch 1 --tokens 64 --json"
    words += " --lora-base nf4"
    assert main(words.split()) != 0
    assert "--lora-base nf4 is of adapters: --lora-rank" in capsys.readouterr().err
    assert main([*words.split(), "--lora-rank", "8"]) == 0
    how = {"batch": 1, "tokens": 64, "lora": Lora(8, base="nf4")}
    found = simulate(Model.preset("llama-3-8b"), "bf16", Run.cpu(**how))
    assert f'"bytes": {found.peak.bytes}' in capsys.readouterr().out


@pytest.mark.parametrize("targets", [("up",), ("q", "v")])
def test_biases_of_a_prepared_base_are_narrow_after_the_first_call(targets):
    """Linear4bit makes its bias bf16 for good, which the preparation had made fp32."""
    config = {"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 61}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 128}
    how = {"batch": 2, "tokens": 9, "lora": Lora(3, targets, "nf4")}
    step = Question(config, "fp32", Run.cpu(**how))
    is_real(step)
    biases = 2 * (64 + 32 + 32)
    assert step.run.lora.bias_count(step.model) == biases
    assert step.run.lora.codes_beside(step.model, "fp32") == 2 * 7 * 16 * 4 - 2 * biases
