"""Sums of posted mappings, held against what PyTorch keeps on a CPU and how it allocates."""

from collections import defaultdict
from copy import deepcopy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from posted import litgpt, litgpt_peak, litgpt_tables, readings, torchtitan_peak, torchtune
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy, checkpoint
from torch.utils.checkpoint import create_selective_checkpoint_contexts as contexts

from memlab import Model, Recipe, Run, estimate
from memlab.measure import Tracker
from memlab.terms.allocator import CachingAllocator
from memlab.terms.lora import Lora

SHAPE = Model(
    family="llama", layers=2, d_model=128, heads=8, kv_heads=2, d_ff=448, vocab=512, positions=64
)
B, T, H = 2, 64, 16
ROWS = B * T
PRODUCTS = torch.ops.aten.mm.default
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


class Norm(nn.Module):
    """RMSNorm as Llama's first code has it: in fp32, and the weight after the cast."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(SHAPE.d_model))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return wide.type_as(x) * self.weight


class Block(nn.Module):
    """A layer with repeated keys and values, turned by angles in fp32."""

    def __init__(self):
        super().__init__()
        D, E, wide = SHAPE.d_model, SHAPE.kv_heads * H, SHAPE.d_ff
        self.q, self.k, self.v, self.o = (nn.Linear(D, n, bias=False) for n in (D, E, E, D))
        self.gate, self.up = (nn.Linear(D, wide, bias=False) for _ in range(2))
        self.down, self.norms = nn.Linear(wide, D, bias=False), nn.ModuleList([Norm(), Norm()])

    def forward(self, x, cos, sin):
        y = self.norms[0](x)
        q, k, v = (each(y).view(B, T, -1, H) for each in (self.q, self.k, self.v))
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        q, k, v = (t.transpose(1, 2) for t in (q, repeated(k), repeated(v)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).contiguous().view(B, T, -1))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Selective(nn.Module):
    """The same, checkpointed by operator: attention, and every second product from the first on."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, *inputs):
        how = {"use_reentrant": False, "preserve_rng_state": False}
        return checkpoint(self.block, *inputs, context_fn=self.contexts, **how)

    @staticmethod
    def contexts():
        return contexts(partial(policy, defaultdict(int)))


def policy(counts, context, operator, *args, **kwargs):
    counts[context.is_recompute, operator] += 1
    odd = operator == PRODUCTS and counts[context.is_recompute, operator] % 2
    kept = odd or operator == ATTENTION
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


def turned(x, cos, sin):
    left, right = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
    both = torch.stack([left * cos - right * sin, left * sin + right * cos], -1)
    return both.flatten(3).type_as(x)


def repeated(x):
    many = SHAPE.heads // SHAPE.kv_heads
    return x[:, :, :, None].expand(B, T, x.shape[2], many, H).reshape(B, T, -1, H)


def inputs():
    """A layer's input, and the angles that it turns queries and keys by."""
    x = torch.randn(B, T, SHAPE.d_model, dtype=torch.bfloat16, requires_grad=True)
    return x, [torch.randn(1, T, 1, H // 2) for _ in range(2)]


def kept(module, *, call=None, turns=True):
    """Bytes of a row that wait for backward, beside weights and angles."""
    x, angles = inputs()
    own = {t.untyped_storage().data_ptr() for t in (*module.parameters(), *angles)}
    found = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = (storage.nbytes(), tensor)  # alive: no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = (module if call is None else call)(x, *angles[: 2 * turns])
    assert out.shape == x.shape
    return sum(size for size, _ in found.values()) / ROWS


def test_a_layer_of_torchtitan_keeps_what_is_derived():
    assert kept(Block().bfloat16()) == torchtitan_peak.row(SHAPE, "all")


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_layer_keeps_what_the_policy_names_but_for_the_last_product():
    """Inductor has its graphs from the same partitioner, and was seen to keep the same."""
    torch._dynamo.reset()
    module = Selective().bfloat16()
    compiled = torch.compile(module, backend="aot_eager_decomp_partition")
    assert kept(module, call=compiled) == torchtitan_peak.row(SHAPE, "products", compiled=True)
    torch._dynamo.reset()


def test_an_eager_layer_under_the_policy_keeps_the_last_product_too():
    """Counted where they are cached: what the policy names, and the layer's input."""
    made = []

    class Watched(Selective):
        @staticmethod
        def contexts():
            made.append(Selective.contexts())
            return made[-1]

    x, angles = inputs()
    out = Watched().bfloat16()(x, *angles)
    cached = tree_leaves([list(calls.values()) for calls in made[0][0].storage.values()])
    values = (getattr(leaf, "val", None) for leaf in cached)  # a size is there without a wrapper
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    found = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in (x, *tensors)}
    assert sum(found.values()) / ROWS == torchtitan_peak.row(SHAPE, "products")
    assert out.requires_grad


def test_the_hole_of_the_logits_in_16_bits_stays_empty():
    """Six bytes side by side take one gradient in fp32, and the second one is put behind them."""
    unit = 2**30
    allocator = CachingAllocator(expandable=True)
    for name, size in (("kept", 8), ("logits", 2), ("wide", 4), ("log_softmax", 4)):
        allocator.malloc(name, size * unit)
    allocator.free("wide")
    allocator.free("logits")
    for name in ("gradient", "of the logits"):
        allocator.malloc(name, 4 * unit)
    assert 0 <= allocator.reserved - (8 + 14) * unit < 20 * 2**20  # a segment grows by 20 MiB
    assert allocator.allocated == (8 + 12) * unit


def test_a_stack_of_deep_copies_is_one_layer_more_while_it_is_made():
    """As torchtune made Llama 2: the layer that is copied lives until all copies are there."""

    def made():
        layer = nn.Linear(64, 64, bias=False)
        return nn.ModuleList([deepcopy(layer) for _ in range(4)])

    with Tracker() as tracker:
        made()
    assert tracker.peak == (4 + 1) * 4 * 64**2
    (reading,) = [r for r in readings.read() if r.id == "torchtune/init/llama2-7b-lora"]
    said = torchtune.describe(reading)
    layers = [t for t in said.model.tensors() if t.name.startswith("layers.")]
    more = dict(said.more)
    own = 2 * sum(t.numel for t in layers) + more["adapters"] // said.model.layers
    assert more["the layer that is copied"] == own
    assert more["angles of its copies"] == 32 * more["angles"] == 32 * 4 * 4096 * 128


@pytest.mark.parametrize("trained", [True, False])
def test_the_last_norm_of_torchtune_keeps_what_is_derived(trained):
    """Beside what the fused norm keeps, its input in bf16; the head reads the result either way."""
    module = Norm().bfloat16()
    module.weight.requires_grad_(trained)
    fused = 2 * SHAPE.d_model + 4  # and the reciprocal of each row's root mean square
    run = Run(batch=B, tokens=T, lora=None if trained else Lora(8))
    (_, more), _ = torchtune.beside_checkpoints(SHAPE, run)
    assert kept(module, turns=False) * ROWS == fused * ROWS + more


def test_two_norms_beside_each_other_keep_one_input():
    """StableLM's: attention and feed-forward read two norms of the same stream."""
    wide = SHAPE.d_model

    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(wide), nn.LayerNorm(wide)])

        def forward(self, x):
            return self.norms[0](x) + self.norms[1](x)

    means = 2 * 2 * 2  # of both norms: mean and reciprocal of the standard deviation
    module = Beside().bfloat16().requires_grad_(False)
    stable = litgpt.shape("stablelm-alpha-3b").replace(d_model=wide, head_dim=None, heads=8)
    assert kept(module, turns=False) == 2 * wide + means
    lora, one = litgpt_peak.on({"lora": litgpt_tables.LORA}), stable.replace(block_norms=1)
    for nf4, more in ((False, 0), (True, 2 * wide)):  # codes keep one more layer's own input
        held = [litgpt_peak.layer(each, lora, nf4, tokens=T) for each in (stable, one)]
        assert held[0] - held[1] == more


def test_the_loss_of_all_chunks_goes_backward_before_the_head():
    """So gradients of all logits are there, cast to 16 bits, when the head is written out."""
    hidden = torch.randn(2, 512, 16, dtype=torch.bfloat16, requires_grad=True)
    head, order = torch.randn(64, 16, dtype=torch.bfloat16), []
    pieces = hidden.split(litgpt_peak.CHUNK, dim=1)
    logits = [F.linear(piece, head) for piece in pieces]
    wide = [each.float() for each in logits]
    target = torch.zeros(2 * litgpt_peak.CHUNK, dtype=torch.long)
    losses = [F.cross_entropy(each.flatten(0, 1), target, reduction="none") for each in wide]
    for each in wide:
        each.register_hook(lambda _: order.append("loss"))
    for each in pieces:
        each.register_hook(lambda _: order.append("head"))
    torch.cat(losses).mean().backward()
    assert order == ["loss"] * 4 + ["head"] * 4


def test_weights_in_4_bits_are_those_of_the_recipe():
    for name in ("falcon-7b", "llama-2-7b"):
        model = litgpt.shape(name)
        ledger = estimate(model, Recipe(weights="nf4", other="bf16"), Run())
        assert sum(litgpt_tables.weights(model, "nf4", 2)) == ledger["weights"].derived
        plain = sum(litgpt_tables.weights(model, None, 2))
        assert plain == 2 * model.parameter_count


def test_the_first_micro_batch_has_nothing_of_one_before():
    what = {"method": "lora", "model": "llama-2-7b", "quantize": "nf4", "micro_batch": 1}
    said = litgpt_tables.trained(litgpt.shape("llama-2-7b"), what | {"longest": 1304}, "A100")
    more = dict(said.more)
    assert more["activations of the last pass"] == 0
    assert more["adapters"] == 2 * 4_194_304  # the page's trainable parameters, no states yet
    assert more["logits"] == 6 * 1304 * 32000 + 4 * 32000 * 4096
