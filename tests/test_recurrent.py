"""The state of recurrent layers: as a call of the real code keeps it."""

import causal_types
import pytest

from memlab import Run
from memlab.lab.causal import Causal
from memlab.lab.trace_call import trace_call
from memlab.terms.kv_cache import kv_cache
from memlab.terms.recurrent import convolution, state

CALL = Run(phase="prefill", batch=2, tokens=16)


def kept(family):
    return trace_call(Causal(causal_types.small(family)), "bf16", CALL).rows["kv_cache"]


def test_mamba_2_keeps_a_state_and_the_inputs_of_its_convolution():
    heads, head_dim, state_dim, groups, kernel = 8, 16, 16, 1, 4
    derived = state(4, heads=heads, head_dim=head_dim, state_dim=state_dim, batch=2)
    channels = heads * head_dim + 2 * groups * state_dim
    derived += convolution(4, channels=channels, kernel=kernel, batch=2)
    assert derived == 4 * 2 * (8 * 16 * 16 * 4 + 160 * 4 * 2) == kept("mamba2")


def test_a_hybrid_keeps_both_kinds():
    config = causal_types.small("qwen3_next")
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    wide, tall = config["linear_key_head_dim"], config["linear_value_head_dim"]
    derived = state(3, heads=values, head_dim=tall, state_dim=wide, batch=2)
    channels = 2 * keys * wide + values * tall
    derived += convolution(3, channels=channels, kernel=config["linear_conv_kernel_dim"], batch=2)
    heads = {"kv_heads": config["num_key_value_heads"], "head_dim": config["head_dim"]}
    assert derived + kv_cache(1, **heads, batch=2, tokens=16) == kept("qwen3_next")


def test_the_published_mamba_2():
    # state-spaces/mamba2-2.7b: L=64, D=2560, N=80, H=64, S=128, one group, W=4
    sizes = {"heads": 80, "head_dim": 64, "state_dim": 128}
    assert state(64, **sizes, batch=1) == 64 * 80 * 64 * 128 * 4 == 167_772_160


@pytest.mark.parametrize("field", ["heads", "head_dim", "state_dim", "batch"])
def test_impossible_counts_are_named(field):
    sizes = {"heads": 1, "head_dim": 1, "state_dim": 1, "batch": 1}
    with pytest.raises(ValueError, match=f"{field}=-1"):
        state(1, **(sizes | {field: -1}))
    with pytest.raises(TypeError, match="kernel=1.5"):
        convolution(1, channels=1, kernel=1.5, batch=1)
