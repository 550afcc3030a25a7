"""Other worlds, for the checks that no single figure turns: what would have to be so instead.

Each name is a check; what follows is what it uses, and what stands there in the other world.
Where a check asks a library, it is a function that makes the other world while it is entered.
"""

import itertools
from functools import partial
from types import SimpleNamespace
from unittest import mock

import torch

from memlab import Model
from memlab.cases.muon_lion import D20
from memlab.cases.nvfp4_program import COMMAND
from memlab.lab.models import TinyLlama


class Squared(TinyLlama):
    """A loss that is no mean over its tokens: pieces of a batch do not add up to the whole."""

    def forward(self, *given):
        return super().forward(*given) ** 2


class Nothing:
    """Nothing is kept for backward."""

    bytes = 0

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Later:
    """Whatever is counted, the next counts more."""

    count = 0

    def __init__(self, **_):
        Later.count += 1
        self.bytes = self.peak = Later.count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def label(self, _):
        pass


class Narrow:
    """A model whose gradients have one byte a value, and are there after any pass."""

    def __init__(self, *_):
        self.gradient = torch.zeros(4, dtype=torch.int8)

    def bfloat16(self):
        return self

    def __call__(self, *_):
        return SimpleNamespace(backward=lambda: None)

    def parameters(self):
        return [SimpleNamespace(grad=self.gradient)]


class OtherEmbedding(torch.nn.Embedding):
    pass


class Flat:
    """An allocator that keeps nothing beside what is alive."""

    allocated = reserved = peak_allocated = 1000

    def malloc(self, *_):
        pass

    free = malloc


def torchao_takes_all(_):
    return SimpleNamespace(is_sm_at_least_89=lambda: True, is_sm_at_least_100=lambda: True)


def one_sum():
    return [SimpleNamespace(total=80 * 10**9, said={"master": "bf16"})]


def int8_is_smaller(states):
    return {"states": 1 if states == "int8/row" else 2}


def less_with_a_narrow_base(lora, **_):
    return SimpleNamespace(rows={"activations": 2 if lora.base is None else 1})


def a_step_of_adapters_alone(recipe, tokens, lora=None):
    size = 1 if lora else 1000
    return SimpleNamespace(
        peak=SimpleNamespace(bytes=size), rows={"weights": size, "activations": 0}
    )


def eight_or_wide(_, eight=False, host=False):
    return 103_125 if eight else 400_000


def tied():
    table = SimpleNamespace(weight=0)
    return SimpleNamespace(lm_head=table, wte=table)


def steep():
    """Gradients over twenty powers of ten, of which no scale brings all into FP8."""
    up = torch.nn.Linear(8, 8)
    layers = torch.nn.ModuleList([torch.nn.ModuleDict({"up": up})])
    for p in layers.parameters():
        p.grad = torch.logspace(-20, 0, p.numel()).view_as(p)
    return SimpleNamespace(layers=layers)


def torch_with(**others):
    """The names of torch that a check uses, some of them for something else."""
    names = "nn optim ones zeros tensor Generator float32 bfloat16 profiler".split()
    return SimpleNamespace(**{name: getattr(torch, name) for name in names} | others)


def quantizers(**known):
    """A transformers that knows these quantizers alone; True: it is given data first."""
    table = {name: SimpleNamespace(requires_calibration=data) for name, data in known.items()}
    return mock.patch("transformers.quantizers.auto.AUTO_QUANTIZER_MAPPING", table)


WORLDS = {
    # Note 000
    "untied": {
        "net": tied,
        "counts": lambda: {"lm_head": 0},
        "group": lambda claim: SimpleNamespace(result=""),
    },
    "tables_stay": {"net": lambda fp8: torch.nn.Sequential(OtherEmbedding(2, 2))},
    "head_too": {"net": lambda fp8=False: SimpleNamespace(lm_head=torch.nn.Linear(16, 16))},
    "stored": {"net": lambda: torch.nn.Linear(4, 4).bfloat16(), "parameters": lambda: 20},
    "moments": {
        "GROUPS": ("all",),
        "net": lambda: None,
        "counts": lambda: {"all": 1},
        "state_bytes": lambda net: {"all": 8},
    },
    "windows": {"Saved": Later},
    "reason": {"learning": steep},
    "quantized": {"compiled": lambda *_, **__: 10, "kept_compiled": lambda fp8: 10},
    "together": {"BATCH": 10**6},
    "exact": {"peak": lambda *_, **__: 49_500_000_000},
    "suits_a6000": {"limit": lambda card: 10**12},
    "suits_h100": {"limit": lambda card: 10**9},
    "not_a_4090": {"limit": lambda card: 10**12},
    "no_checkpoints": {"kept_compiled": lambda: 10**9},
    "at_the_start": {"limit": lambda card: 1},
    "two_bytes": {"compiled": lambda *_, **__: 10**12},
    "same_with_fp8": {"trained": lambda fp8: SimpleNamespace(states=1 + fp8, gradients=1 + fp8)},
    "from_linear": {"kept": lambda *_: {"activations": 10**9}},
    "fp8_cards": {"torchao": torchao_takes_all},
    # Note 001
    "adam_states_in_fp32": {"torch": torch_with(bfloat16=torch.float32)},
    "gradients_beside_wide_master": {"torch": torch_with(float32=torch.bfloat16)},
    "rounded_weights": {
        "small_moments": lambda again=False: {"forward": 0},
        "rounded_values": lambda model: 0,
    },
    "only_a_format_changes": {"QUESTION": ("fp16", "fp32")},
    "recompute_by_prefix": {"small_moments": lambda recompute: {"peak": 9 - len(recompute)}},
    "loading_sets_the_peak": {"small_moments": lambda loading: {"loading": 2, "peak": 1}},
    "other_format_is_larger": {"full": int8_is_smaller},
    "int8_saves": {"full": int8_is_smaller},
    "table_activations": {"full": lambda: {"activations": 20 * 10**9, "logits": 0}},
    "trained_parameters": {"FULL": Model.preset("qwen3-4b")},
    "recompute_makes_tenth": {
        "small_moments": lambda recompute="": {"forward": 100 * (recompute == "none"), "ready": 0}
    },
    "narrow_reach": {"all_sums": one_sum},
    "explained": {"all_sums": one_sum},
    "nothing_disposed": {"end_of_forward": lambda *_, **__: 0},
    "before_the_first_step": {"REPORT": {"model_loaded": 0}},
    "left_from_loading": {"most_alive": lambda: 75 * 10**9},
    "old_and_new_states": {"storage": lambda *_: 0},
    "narrow_master": {"COMMAND": COMMAND | {"--lr": "1"}},
    "starts_from_the_codes": {"STARTS_FROM": "wide"},
    "at_one_moment": {"most_alive": lambda: 10**12},
    "waiting_for_the_self_test": {"WAITING": {}},
    "copies_of_gradients": {"CLEANS_GRADIENTS": False},
    "most_is_in_the_step": {
        "EARLIER": {"backward_done": 10, "most in the step": 10},
        "small_moments": lambda disposed: {"peak": 1, "forward": 1},
    },
    "fp4_cards": {"torchao": torchao_takes_all},
    # Note 002
    "zero_block": {"torch": torch_with(zeros=torch.ones)},
    "fp8_stores": {"TinyLlama": Narrow},
    "fp8_card": {"lab_fp8": SimpleNamespace(kernel_takes=lambda *_: False)},
    "on_disk": {"Tracker": Later},
    "reduction_of_all": {"kept": eight_or_wide},
    "negligible": {"CODE": {"benchmark": {"baseline": D20, "8-bit": D20}}},
    "fp8_saves": {"kept_by_layers": lambda: (4.0, 2.0, 1.0)},
    "fp8_scaling": {"lab_fp8": SimpleNamespace(cast=lambda x: (x.to(torch.float8_e4m3fn), 1))},
    "real_batch": {"TinyLlama": Squared},
    "galore_shape": {"low_rank": SimpleNamespace(galore=lambda s, rank: 4 * rank * sum(s))},
    "above_10b": {"EIGHT": -7.9, "most": lambda **how: 100},
    "priority": {"most": lambda **how: 10**10 - 5 * 10**9 * ("eight" in how)},
    "larger_models": {"kept": lambda m, eight=False: m.parameter_count if eight else 2 * 10**9},
    "parity": {"losses": lambda eight: [2.0 if eight else 1.0] * 30},
    "rounded_in_forward": {"Saved": Nothing},
    # Note 003
    "only_weights_and_activations": {
        "decode": lambda *_, **__: {
            "kv_cache": SimpleNamespace(derived=1),
            "activations": SimpleNamespace(derived=2),
        }
    },
    "calibration": partial(quantizers, bitsandbytes_8bit=True),
    "tools_exist": partial(quantizers, bitsandbytes_4bit=False),
    "formats_or_methods": partial(quantizers, awq=True),
    "accelerate_offloads": partial(
        mock.patch, "transformers.integrations.accelerate", SimpleNamespace()
    ),
    "pruning_is_lighter": {
        "a_pruned_layer": lambda: (None, 3, 1, 1),
        "masked": lambda *_, **__: 1,
    },
    "lora_trains_little": {
        "adapt": lambda net, rank: net,
        "Lora": lambda rank: SimpleNamespace(parameter_count=lambda model: model.parameter_count),
    },
    "profiler": {"torch": torch_with(ones=lambda _: torch.ones(1))},
    "lora_at_inference": {"merge": lambda net: torch.nn.Linear(1, 1)},
    "no_grad_gradients": {"tiny": Narrow, "kept_by_forward": lambda _: (0,)},
    "on_a_cpu": {
        "torch": torch_with(cuda=SimpleNamespace(memory_allocated=itertools.count().__next__)),
        "tiny": lambda: torch.nn.Linear(1, 1),
    },
    "only_int4_loses": {
        "torch": torch_with(randn=lambda *shape, generator: torch.ones(shape)),
        "quantize": lambda w, format: w,
        "dequantize": lambda q, dtype: q,
    },
    "three_sources": {"step": lambda: SimpleNamespace(rows={"weights": 1, "gradients": 1})},
    "only_the_weights": {"step": less_with_a_narrow_base},
    "zeros_are_isolated": {"a_pruned_layer": lambda: [SimpleNamespace(weight=torch.zeros(4, 4))]},
    "allocated_is_not_all": {"CachingAllocator": Flat},
    "any_head": {"FULL": Model.preset("tinyllama-1.1b").replace(kv_heads=1)},
    "one_unit": {"MiB": 10**6},
    "lora_keeps_the_base": {"step": a_step_of_adapters_alone},
    "one_shard": {"shards": lambda *_, **__: [1, 2]},
    # Note 004
    "tokenizer": {"SMALL_WIDE": SimpleNamespace(d_model=512, embed_dim=128)},
    "no_pieces": {"pieces": lambda tokens, batch: 1},
    "bound_by": {
        "fits": lambda size: True,
        "seconds_per_token": lambda *_: {"products": 2e-6, "logits": 1e-6},
    },
}
