"""Other worlds, for the checks that no single figure turns: what would have to be so instead.

Each name is a check; what follows is what it uses, and what stands there in the other world.
"""

from types import SimpleNamespace

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


WORLDS = {
    # Note 000
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
    "three_sources": {"step": lambda: SimpleNamespace(rows={"weights": 1, "gradients": 1})},
    "only_the_weights": {"step": less_with_a_narrow_base},
    "zeros_are_isolated": {"a_pruned_layer": lambda: [SimpleNamespace(weight=torch.zeros(4, 4))]},
    "allocated_is_not_all": {"CachingAllocator": Flat},
    "any_head": {"FULL": Model.preset("tinyllama-1.1b").replace(kv_heads=1)},
    "one_unit": {"MiB": 10**6},
    "lora_keeps_the_base": {"step": a_step_of_adapters_alone},
    "one_shard": {"shards": lambda *_, **__: [1, 2]},
    # Note 004
    "no_pieces": {"pieces": lambda tokens, batch: 1},
    "bound_by": {
        "fits": lambda size: True,
        "seconds_per_token": lambda *_: {"products": 2e-6, "logits": 1e-6},
    },
}
