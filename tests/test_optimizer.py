"""Optimizer state: derived bytes against the tensors that torch and torchao really keep."""

import contextlib
import io
import warnings

import pytest
import torch

from memlab.terms import optimizer as terms

SHAPES = [(64, 128), (31, 128), (128, 33), (128,), (4096,), (4095,), (8, 16, 32)]
VALUES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def real_state(make, shape, dtype) -> int:
    """Bytes of every tensor in the optimizer's state after one step, wrappers opened."""
    parameter = torch.nn.Parameter(torch.ones(shape, dtype=dtype))
    parameter.grad = torch.ones_like(parameter)
    optimizer = make([parameter])
    optimizer.step()
    return sum(opened(value) for value in optimizer.state[parameter].values())


def opened(tensor: torch.Tensor) -> int:
    """Bytes of a tensor, or of the tensors inside a wrapper."""
    if type(tensor) is not torch.Tensor and hasattr(tensor, "__tensor_flatten__"):
        return sum(opened(getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0])
    return tensor.untyped_storage().nbytes()


TORCH = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": torch.optim.AdamW,
    "amsgrad": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "adafactor": torch.optim.Adafactor,
    "muon": torch.optim.Muon,
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", TORCH)
def test_equal_to_torch(name, shape, value):
    if name == "muon" and len(shape) != 2:
        with pytest.raises(ValueError, match="is not a matrix; Muon takes 2-D weights only"):
            terms.state(name, shape=shape, format=value)
        return
    assert terms.state(name, shape=shape, format=value) == real_state(
        TORCH[name], shape, VALUES[value]
    )


@pytest.fixture(scope="module")
def torchao_optimizers():
    """torchao's low-bit optimizers; importing them beside the CPU wheel of torch is noisy."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        import torchao.optim as ao
    torch.compiler.set_stance("force_eager")  # they compile their step; the state is the same
    yield {"adamw8bit": ao.AdamW8bit, "adamw4bit": ao.AdamW4bit, "adamw_fp8": ao.AdamWFp8}
    torch.compiler.set_stance("default")


@pytest.mark.filterwarnings("ignore")  # torchao's own deprecations, not ours to mend
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", sorted(terms.QUANTIZED))
def test_equal_to_torchao(torchao_optimizers, name, shape, value):
    expected = real_state(torchao_optimizers[name], shape, VALUES[value])
    assert terms.state(name, shape=shape, format=value) == expected


def test_the_small_tensor_rule_by_hand():
    # 4,096 values, 16 blocks of 256: two states of 4,096 codes, 16 fp32 scales, 256 fp32 entries.
    assert terms.state("adamw8bit", shape=(4096,)) == 2 * (4096 + 16 * 4 + 256 * 4) + 4
    # One value less: two plain fp32 states.
    assert terms.state("adamw8bit", shape=(4095,)) == 2 * 4095 * 4 + 4
    # Large enough, but 256 does not divide 128 · 33.
    assert terms.state("adamw8bit", shape=(128, 33), format="bf16") == 2 * 128 * 33 * 2 + 4
    # The 4-bit block of 128 does divide it.
    assert terms.state("adamw4bit", shape=(128, 33)) == 2 * (128 * 33 // 2 + 33 * 4 + 16 * 4) + 4


def test_one_million_parameters_match_the_published_coefficients():
    # https://github.com/pytorch/ao/tree/main/torchao/optim: 2, 1 and 2 bytes per parameter, to
    # which scales, tables and the step counter add this much on 2**20 parameters.
    per = {name: terms.state(name, shape=(1024, 1024)) / 2**20 for name in terms.QUANTIZED}
    assert per["adamw8bit"] == 2 * (1 + 4 / 256) + (2 * 1024 + 4) / 2**20
    assert per["adamw4bit"] == 2 * (0.5 + 4 / 128) + (2 * 64 + 4) / 2**20
    assert per["adamw_fp8"] == 2 * (1 + 4 / 256) + 4 / 2**20


@pytest.mark.filterwarnings("ignore")  # torchao's own deprecations, not ours to mend
@pytest.mark.parametrize("name", sorted(terms.QUANTIZED))
def test_torchao_keeps_its_learning_rate_in_a_tensor(torchao_optimizers, name):
    groups = [{"params": [torch.nn.Parameter(torch.ones(4))]} for _ in range(2)]
    made = torchao_optimizers[name](groups)
    rates = [group["lr"] for group in made.param_groups]
    assert terms.learning_rates(name, groups=2) == sum(map(opened, rates)) == 8
    assert terms.learning_rates("adamw") == 0


def test_muon_leaves_what_is_not_a_hidden_matrix_to_adamw():
    assert terms.state("muon", shape=(64, 128), hidden=True) == 64 * 128 * 4
    assert terms.state("muon", shape=(64, 128), hidden=False) == 2 * 64 * 128 * 4 + 4


def test_states_in_a_format_of_ones_own():
    # Muon with momentum in int8 blocks of 128 and fp32 scales: 1.03125 bytes per parameter.
    assert terms.state("muon", shape=(128, 128), formats=("int8/128",)) == 128 * 128 * 1.03125
    assert (
        terms.state("adamw", shape=(64,), format="bf16", formats=("fp32", "fp32")) == 2 * 64 * 4 + 4
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: terms.state("adam", shape=(4,)),
            "unknown optimizer 'adam'; known: adafactor, adamw",
        ),
        (lambda: terms.state("adamw", shape=(4,), formats=("fp32",)), "1 state formats for adamw"),
        (
            lambda: terms.state("adafactor", shape=(4,), formats=("fp32",)),
            "adafactor, which fixes its",
        ),
        (lambda: terms.state("adamw", shape=(-4,)), "size=-4 is negative"),
        (lambda: terms.quantized_adamw((4,), kind="adamw2bit"), "unknown kind 'adamw2bit'"),
    ],
)
def test_wrong_input_fails_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
