"""Real matrices in block formats, as torchao builds them, and the bytes of each of their parts."""

import importlib
from types import ModuleType

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..measure.storages import storage_bytes
from ..units import whole
from .quiet import quiet
from .scaled_mm import quick_on_a_cpu

FORMATS = ("int8/128", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "nf4-dq")


def real_block_tensor(format: str, rows: int, columns: int) -> Tensor:
    """A random [rows, columns] matrix, bf16 before, in one of FORMATS as torchao keeps it.

    Shapes      columns: a multiple of the block; for nf4-dq rows · columns one of 64 · 256
    Source      torchao 0.18: MXTensor, NVFP4Tensor, Int8WeightOnlyConfig, and to_nf4 for QLoRA
    Leaves out  a scale layout for one kernel (`is_swizzled_scales`), which pads the scales
    Raises      ValueError for another format and for a shape that does not fill its blocks
    """
    if format not in FORMATS:
        raise ValueError(f"no torchao tensor for format {format!r}; known: {', '.join(FORMATS)}")
    block = {"int8/128": 128, "nvfp4": 16}.get(format, 32)
    shape = (whole("rows", rows), whole("columns", columns))
    if format == "nf4-dq" and rows * columns % (64 * 256):
        raise ValueError(f"rows · columns = {rows * columns} is not a multiple of 64 · 256")
    if format != "nf4-dq" and columns % block:
        raise ValueError(f"columns={columns} is not a multiple of {format}'s block of {block}")
    wide = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)

    if format == "nf4-dq":
        nf4 = torchao("quantization.quantize_.workflows.nf4.nf4_tensor")
        return nf4.to_nf4(wide, block_size=64, scaler_block_size=256)
    if format == "nvfp4":
        nvfp4 = torchao("prototype.mx_formats.nvfp4_tensor")
        return nvfp4.NVFP4Tensor.to_nvfp4(wide, per_tensor_scale=torch.tensor(1.0))
    if format == "int8/128":
        layer = torch.nn.Linear(1, 1, bias=False)
        layer.weight = torch.nn.Parameter(wide)
        quantization = torchao("quantization")
        by_128 = quantization.Int8WeightOnlyConfig(granularity=quantization.PerGroup(128))
        quantization.quantize_(layer, by_128)
        return layer.weight
    element = {"mxfp8": torch.float8_e4m3fn, "mxfp6": "fp6_e2m3", "mxfp4": torch.float4_e2m1fn_x2}
    mx = torchao("prototype.mx_formats.mx_tensor")
    return mx.MXTensor.to_mx(wide, element[format], 32)


def parts(tensor: Tensor) -> dict[str, Tensor]:
    """The plain tensors inside a quantized one, by the names that torchao gives them.

    Raises      TypeError for a tensor that is not made of others
    """
    if not is_traceable_wrapper_subclass(tensor):
        raise TypeError(f"a {type(tensor).__name__} has no parts; a quantized tensor is needed")
    names, _ = tensor.__tensor_flatten__()
    return {name: getattr(tensor, name) for name in names}


def part_bytes(tensor: Tensor) -> dict[str, int]:
    """Bytes of each part of a quantized tensor."""
    return {name: storage_bytes(part) for name, part in parts(tensor).items()}


def torchao(name: str) -> ModuleType:
    """A module of torchao, imported without the lines it prints where its CUDA libraries fail.

    Example     torchao("quantization") is torchao.quantization
    Raises      ImportError where torchao is missing
    """
    quick_on_a_cpu()  # its FP8 layers call torch._scaled_mm themselves
    with quiet():
        return importlib.import_module(f"torchao.{name}")
