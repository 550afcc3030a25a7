"""Quantized matrices: bytes by the formulas, values beside torchao's, layers that still work."""

import copy

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("torchao")

from memlab import Model, storage  # noqa: E402
from memlab.lab import calibrate  # noqa: E402
from memlab.lab.blocks import real_block_tensor, torchao  # noqa: E402
from memlab.lab.models import TinyLlama  # noqa: E402
from memlab.lab.quantize import LEVELS, Quantized, dequantize, quantize
from memlab.lab.quantized_linear import QuantizedLinear, quantize_  # noqa: E402
from memlab.measure import storage_bytes  # noqa: E402

FORMATS = "int8/row int8/128 int8/128:bf16 int4/32:bf16 int4/128 nf4 mxfp8 mxfp4 nvfp4".split()


def matrix(rows=96, columns=256, seed=0):
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    return values.to(torch.bfloat16)


@pytest.mark.parametrize("format", FORMATS)
def test_bytes_are_those_of_the_formula(format):
    for rows, columns in ((96, 256), (1, 128), (7, 384)):
        q = quantize(matrix(rows, columns), format)
        assert storage_bytes(q) == storage(rows * columns, format, row=columns)
        assert dequantize(q).shape == (rows, columns) and dequantize(q).dtype == torch.bfloat16


@pytest.mark.parametrize("format", FORMATS)
def test_every_value_has_the_nearest_level(format):
    w = matrix().float()
    q = quantize(w, format)
    back = dequantize(q, torch.float32)
    scales = q.scales.float() * (1 if q.factor is None else q.factor)
    block = w.shape[-1] // scales.shape[-1]
    base = {"int8": range(-127, 128), "nf4": LEVELS["nf4"], "int4": LEVELS["int4"]}
    if format == "mxfp8":
        levels = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
        levels = levels[levels.isfinite()]
    else:
        levels = torch.tensor(base.get(format.split("/")[0], LEVELS["fp4_e2m1"])).float()
    wide = scales.repeat_interleave(block, -1)
    best = torch.stack([(level * wide - w).abs() for level in levels]).amin(0)
    assert torch.allclose((back - w).abs(), best, atol=1e-6)


@pytest.mark.parametrize("format", ["mxfp8", "mxfp4", "nvfp4"])
def test_as_far_from_the_weight_as_torchao_and_the_same_scales(format):
    w = matrix(128, 256)
    q = quantize(w, format)
    if format == "nvfp4":
        made = torchao("prototype.mx_formats.nvfp4_tensor").NVFP4Tensor
        theirs = made.to_nvfp4(w, per_tensor_scale=q.factor)
    else:
        element = {"mxfp8": torch.float8_e4m3fn, "mxfp4": torch.float4_e2m1fn_x2}[format]
        theirs = torchao("prototype.mx_formats.mx_tensor").MXTensor.to_mx(w, element, 32)
    assert torch.equal(
        theirs.scale.view(torch.uint8).flatten(), q.scales.view(torch.uint8).flatten()
    )
    ours, back = dequantize(q, torch.float32), theirs.dequantize(torch.float32)
    # Halfway between two levels they take the even code; both are as far from the weight.
    assert torch.allclose((ours - w.float()).abs(), (back - w.float()).abs(), atol=1e-5)
    assert ((ours - back).abs() > 1e-5).float().mean() < 0.05


def test_int8_blocks_are_torchaos():
    theirs = real_block_tensor("int8/128", 64, 256)
    wide = torch.randn((64, 256), generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    q = quantize(wide, "int8/128")
    assert (q.codes.int() - theirs.qdata.int()).abs().max() <= 1
    assert (q.codes == theirs.qdata).float().mean() > 0.9  # theirs divides by 127.5, in bf16


def test_nf4_is_torchaos_where_the_scales_are_wide():
    nf4 = torchao("quantization.quantize_.workflows.nf4.nf4_tensor")
    w = matrix(128, 256)
    theirs = nf4.to_nf4(w, 64, 256).get_original_weight().float()
    ours = dequantize(quantize(w, "nf4"), torch.float32)
    far = (theirs - w.float()).norm() / (ours - w.float()).norm()
    assert 0.99 < far < 1.05  # double quantization rounds the scales as well


def test_edge_values_survive():
    w = torch.zeros(2, 128)
    w[1, 0] = 1e30
    for format in ("int8/128", "int4/32", "nf4", "mxfp8", "mxfp4", "nvfp4"):
        back = dequantize(quantize(w, format), torch.float32)
        assert back.isfinite().all() and (back[0] == 0).all()
        # MX stops at 6/8 or 7/8 of a power of two; the fp8 scale of nvfp4 may be rounded up.
        assert 0.6 < float(back[1, 0] / w[1, 0]) < 1.07


@pytest.mark.parametrize("format", ["int8/64:bf16", "nf4", "mxfp4", "nvfp4"])
@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_multiplies_with_its_levels(format, bias):
    torch.manual_seed(0)
    layer = torch.nn.Linear(128, 96, bias=bias).requires_grad_(False)
    x = torch.randn(2, 5, 128)
    wanted = F.linear(x, dequantize(quantize(layer.weight, format), torch.float32), layer.bias)
    for pieces in (1, 3):
        quantized = QuantizedLinear(layer, format, pieces=pieces)
        assert torch.allclose(quantized(x), wanted, atol=1e-5)
        assert quantized(x).shape == (2, 5, 96)


def test_a_model_keeps_what_is_skipped_and_its_embedding():
    model = Model.preset("tiny-llama").replace(d_ff=384)
    net = TinyLlama(model).to(torch.bfloat16).requires_grad_(False)
    wide, ids = copy.deepcopy(net), torch.randint(256, (2, 16))
    quantize_(net, "int8/128:bf16", skip=("lm_head",))
    kinds = [type(part).__name__ for part in net.modules()]
    assert kinds.count("QuantizedLinear") == 7 * 4 and kinds.count("Linear") == 1
    off = (net(ids).float() - wide(ids).float()).norm() / wide(ids).float().norm()
    assert off < 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantize(matrix(4, 100), "int8/128"), "C=100 is not a multiple of int8/128's blo"),
        (lambda: quantize(matrix(), "bf16"), "bf16 cannot be built here; known: int8/128, nf4"),
        (lambda: quantize(matrix(), "int4/32:bf16+bf16"), "int4/32:bf16.bf16 cannot be built"),
        (lambda: quantize(matrix(), "nf4-dq"), "nf4-dq cannot be built here"),
        (lambda: quantize(matrix(4, 7), "int4/row"), "C=7 is odd: two codes of 4 bits share"),
        (lambda: QuantizedLinear(torch.nn.Linear(64, 8), "nf4", pieces=3), "8 rows do not divide"),
    ],
)
def test_wrong_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def skewed(count=512, columns=128, seed=1):
    """Inputs of which a few columns are large, and all depend on few things, as in a network."""
    torch.manual_seed(seed)
    sizes = torch.ones(columns)
    sizes[:4] = 30
    return (torch.randn(count, 16) @ torch.randn(16, columns) + torch.randn(count, columns)) * sizes


@pytest.mark.parametrize("format", ["int4/128:bf16", "nf4", "mxfp4"])
def test_calibration_helps_on_inputs_it_did_not_see_in_the_same_bytes(format):
    w, both = matrix(64, 128).float(), skewed(1024)
    seen, unseen = both[:512], both[512:]
    nearest = quantize(w, format)
    by_gptq = calibrate.gptq(w, seen, format)
    by_awq, s = calibrate.awq(w, seen, format)
    assert storage_bytes(by_gptq) == storage_bytes(by_awq) == storage_bytes(nearest)

    def off(back):
        return calibrate.output_error(w, back, unseen)

    plain = dequantize(nearest, torch.float32)
    better = dequantize(by_gptq, torch.float32)
    assert off(better) < 0.7 * off(plain)
    assert (better - w).norm() > (plain - w).norm()  # the weights are further away
    # The scales of MX are powers of two: there is nothing between them to choose from.
    awq_limit = 1 if format == "mxfp4" else 0.8
    assert off(dequantize(by_awq, torch.float32) / s) <= awq_limit * off(plain)


def test_gptq_on_inputs_without_pattern_rounds_to_the_nearest():
    w = matrix(8, 64).float()
    q = calibrate.gptq(w, torch.eye(64), "int8/64")
    assert torch.equal(q.codes, quantize(w, "int8/64").codes)
    assert isinstance(q, Quantized)
