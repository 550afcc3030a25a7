"""Storage formats against the tensors that torch and torchao really build, to the byte."""

import logging
import warnings

import pytest
import torch

from memlab.formats import format_of, storage

DTYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e8m0fnu,
    torch.int8,
    torch.int32,
    torch.int64,
]
shapes = pytest.mark.parametrize("shape", [(1,), (7, 3), (1024, 512), (2, 33, 5)], ids=str)


@shapes
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elementary_formats_are_what_torch_stores(dtype, shape):
    tensor = torch.empty(shape, dtype=dtype)
    size = tensor.untyped_storage().nbytes()
    assert storage(tensor.numel(), dtype) == storage(tensor.numel(), str(dtype)) == size


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each.is_floating_point], ids=str)
def test_elementary_formats_have_the_numbers_of_finfo(dtype):
    kind, info = format_of(dtype), torch.finfo(dtype)
    assert (kind.bits, kind.max_value) == (info.bits, info.max)
    if kind.name == "e8m0":  # no mantissa: every value is a power of two, and "normal" is idle
        assert kind.smallest_normal is kind.epsilon is None
    else:
        assert (kind.smallest_normal, kind.epsilon) == (info.smallest_normal, info.eps)
        assert 1 + kind.exponent_bits + kind.mantissa_bits == kind.bits


def test_tf32_and_small_floats_have_their_numbers():
    tf32, fp32 = format_of("tf32"), torch.finfo(torch.float32)
    # Round fp32's largest value down to 10 bits of mantissa and look at what is left.
    largest = torch.tensor([fp32.max]).view(torch.int32) & ~(2**13 - 1)
    assert tf32.max_value == largest.view(torch.float32).item()
    assert tf32.smallest_normal == fp32.smallest_normal and tf32.epsilon == 2**13 * fp32.eps
    for name in ("fp6_e2m3", "fp6_e3m2", "fp4_e2m1"):  # no code is spent on infinity or NaN
        kind = format_of(name)
        top = 2 ** (kind.exponent_bits - 1)
        assert kind.max_value == (2 - kind.epsilon) * 2**top
        assert 1 + kind.exponent_bits + kind.mantissa_bits == kind.bits
    for name in ("int8", "int32", "int64"):
        assert format_of(name).max_value == torch.iinfo(getattr(torch, name)).max
        assert format_of(name).epsilon is format_of(name).smallest_normal is None


@pytest.fixture(scope="module", autouse=True)
def quiet_torchao():
    """torchao warns on import about kernels that this machine cannot run."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torchao.quantization")
        import torchao.prototype.mx_formats  # noqa: F401
    logging.disable(logging.NOTSET)


def parts(tensor):
    """Bytes of each plain tensor inside a wrapper: the wrapper's own size is the logical one."""
    found = {}
    for name in tensor.__tensor_flatten__()[0]:
        inner = getattr(tensor, name)
        assert type(inner) is torch.Tensor
        found[name] = inner.untyped_storage().nbytes()
    return found


def weight(shape, dtype=torch.bfloat16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def quantized(shape, config, dtype=torch.bfloat16):
    """The weight of a Linear layer of that [outputs, inputs] shape after torchao quantized it."""
    from torchao.quantization import quantize_

    model = torch.nn.Sequential(torch.nn.Linear(shape[1], shape[0], bias=False, dtype=dtype))
    quantize_(model, config)
    return model[0].weight


matrices = pytest.mark.parametrize("shape", [(1024, 512), (256, 128), (96, 1280)], ids=str)


@matrices
def test_int8_weight_only_keeps_a_zero_point_that_is_always_zero(shape):
    from torchao.quantization import Int8WeightOnlyConfig, PerGroup

    count, row = shape[0] * shape[1], shape[1]
    per_row = quantized(shape, Int8WeightOnlyConfig())
    assert sum(parts(per_row).values()) == storage(count, "int8/row+int8", row=row)
    grouped = quantized(shape, Int8WeightOnlyConfig(granularity=PerGroup(128)))
    assert sum(parts(grouped).values()) == storage(count, "int8/128+int8", row=row)
    # Symmetric, so the zero point carries nothing: one byte a group that the promise leaves out.
    assert not grouped.zero_point.any()
    assert parts(grouped)["zero_point"] == count // 128
    assert storage(count, "int8/128+int8") - storage(count, "int8/128") == count // 128


@matrices
@pytest.mark.parametrize("group", [128, 64, 32])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_int4_keeps_scale_and_zero_point_in_the_weights_own_dtype(shape, group, dtype):
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig

    wide = format_of(dtype).name
    built = quantized(shape, PrototypeInt4WeightOnlyConfig(group_size=group), dtype)
    count, row = shape[0] * shape[1], shape[1]
    assert sum(parts(built).values()) == storage(count, f"int4/{group}:{wide}+{wide}", row=row)


@matrices
@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (torch.float8_e4m3fn, "mxfp8"),
        (torch.float8_e5m2, "fp8_e5m2/32:e8m0"),
        (torch.float4_e2m1fn_x2, "mxfp4"),
    ],
)
def test_mx_formats(shape, dtype, name):
    from torchao.prototype.mx_formats.mx_tensor import MXTensor

    built = MXTensor.to_mx(weight(shape), dtype, 32)
    assert sum(parts(built).values()) == storage(shape[0] * shape[1], name, row=shape[1])


@matrices
@pytest.mark.parametrize("variant", ["fp6_e2m3", "fp6_e3m2"])
def test_mxfp6_promises_six_bits_and_torchao_stores_eight(shape, variant):
    from torchao.prototype.mx_formats.mx_tensor import MXTensor

    count = shape[0] * shape[1]
    stored = parts(MXTensor.to_mx(weight(shape), variant, 32))
    promise = storage(count, "mxfp6", row=shape[1])
    assert promise == storage(count, f"{variant}/32:e8m0") == count * 0.78125
    # Each 6-bit value lies alone in a uint8: two bits in eight are idle.
    assert stored == {"qdata": count, "scale": count // 32}
    assert sum(stored.values()) - promise == count * 2 // 8
    assert sum(stored.values()) == storage(count, "mxfp8")


@matrices
def test_nvfp4(shape):
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    count = shape[0] * shape[1]
    built = NVFP4Tensor.to_nvfp4(weight(shape), per_tensor_scale=torch.tensor(1.0))
    assert sum(parts(built).values()) == storage(count, "nvfp4", row=shape[1])
    # Without the scale of the whole tensor it is a plain block format.
    single = NVFP4Tensor.to_nvfp4(weight(shape))
    assert sum(parts(single).values()) == storage(count, "fp4_e2m1/16:fp8_e4m3", row=shape[1])


@pytest.mark.parametrize("shape", [(130, 160), (1, 32), (128, 64)], ids=str)
def test_scales_laid_out_for_a_kernel_are_padded_to_tiles(shape):
    """What `storage` says that it leaves out: tiles of 128 rows and 4 scales, padded with zeros."""
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    rows, row = shape
    mx = MXTensor.to_mx(weight(shape), torch.float8_e4m3fn, 32, is_swizzled_scales=True)
    nv = NVFP4Tensor.to_nvfp4(weight(shape), is_swizzled_scales=True)
    for built, block in ((mx, 32), (nv, 16)):
        tiles = -(-rows // 128) * -(-(row // block) // 4)
        assert parts(built)["scale"] == tiles * 128 * 4 >= rows * row // block


@pytest.mark.parametrize("shape", [(1024, 512), (256, 128)], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_nf4_of_torchao_against_the_paper(shape, dtype):
    """The same values and 8-bit scales; the rest is kept in the weight's own dtype."""
    from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import to_nf4

    built = to_nf4(weight(shape, dtype), 64, 256)
    count = built.numel()
    stored, paper = parts(built), storage(count, "nf4-dq")
    blocks, wide = count // 64, dtype.itemsize
    assert stored == {
        "quantized_data": count // 2,
        "quantized_scalers": blocks,
        "quantization_factor": blocks // 256 * wide,
        "scaler_mean": wide,
        "nf4": 16 * wide,
    }
    # The paper keeps the scale of 256 scales and their mean in fp32, and one lookup table for all.
    narrower = (blocks // 256 + 1) * (4 - wide)
    table = 16 * wide
    assert sum(stored.values()) - paper == table - narrower
    if (shape, dtype) == ((1024, 512), torch.bfloat16):
        assert sum(stored.values()) == 270_434
        assert paper == 270_468
        # The wrapper reports bf16's megabyte as its size.
        assert built.untyped_storage().nbytes() == 2 * count


def test_torchao_refuses_what_would_need_padding():
    """So no block that torchao builds is partial, and `storage` follows bitsandbytes there."""
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import to_nf4

    for build in (
        lambda: MXTensor.to_mx(weight((4, 33)), torch.float8_e4m3fn, 32),
        lambda: NVFP4Tensor.to_nvfp4(weight((4, 17))),
        lambda: to_nf4(weight((100, 100)), 64, 256),
        lambda: to_nf4(weight((64, 64)), 64, 256),  # 64 scales do not fill a block of 256
    ):
        with pytest.raises(AssertionError, match="divisible"):
            build()
