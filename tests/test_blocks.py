"""The block tensors of the lab: real, quiet, and refused by name where torchao would fail."""

import subprocess
import sys

import pytest
import torch

pytest.importorskip("torchao")

from memlab.formats import storage
from memlab.lab.blocks import FORMATS, part_bytes, parts, real_block_tensor, torchao
from memlab.measure import storage_bytes


def difference(format, rows, columns):
    """Measured minus derived bytes, the parts having been checked to make up the whole."""
    tensor = real_block_tensor(format, rows, columns)
    assert tuple(tensor.shape) == (rows, columns)
    measured = storage_bytes(tensor)
    assert sum(part_bytes(tensor).values()) == measured
    return measured - storage(rows * columns, format)


@pytest.mark.parametrize(("rows", "columns"), [(2, 16384), (128, 256), (96, 1024)])
def test_what_torchao_stores_and_what_the_format_promises(rows, columns):
    count = rows * columns
    for format in ("mxfp8", "mxfp4", "nvfp4"):
        assert difference(format, rows, columns) == 0
    # Six bits of value in eight bits of storage.
    assert difference("mxfp6", rows, columns) == count * 2 // 8
    # One zero point of a byte for each group, although none is needed.
    assert difference("int8/128", rows, columns) == count // 128
    # A bf16 table of 16 values; bf16, not fp32, for the mean and for one factor in 64 · 256.
    assert difference("nf4-dq", rows, columns) == 32 - 2 - 2 * count // (64 * 256)


def test_the_parts_are_what_the_chapter_says_of_them():
    assert not parts(real_block_tensor("int8/128", 8, 256))["zero_point"].any()
    six = parts(real_block_tensor("mxfp6", 64, 64))["qdata"]
    assert six.dtype == torch.uint8 and six.max() == 2**6 - 1
    nf4 = parts(real_block_tensor("nf4-dq", 128, 128))["nf4"]
    assert nf4.dtype == torch.bfloat16 and nf4.numel() == 16


@pytest.mark.parametrize("format", FORMATS)
def test_the_numbers_survive_the_format(format):
    wide = torch.randn((128, 128), generator=torch.Generator().manual_seed(0))
    tensor = real_block_tensor(format, 128, 128)
    back = tensor.get_original_weight() if format == "nf4-dq" else tensor.dequantize()
    error = (back.float() - wide).norm() / wide.norm()
    assert error < (0.04 if "8" in format or "6" in format else 0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mxfp5", 32, 32), "no torchao tensor for format 'mxfp5'; known: int8/128, mxfp8"),
        (("mxfp8", 4, 33), "columns=33 is not a multiple of mxfp8's block of 32"),
        (("nvfp4", 4, 24), "columns=24 is not a multiple of nvfp4's block of 16"),
        (("int8/128", 4, 64), "columns=64 is not a multiple of int8/128's block of 128"),
        (("nf4-dq", 64, 64), r"rows · columns = 4096 is not a multiple of 64 · 256"),
        (("mxfp8", -1, 32), "rows=-1 is negative"),
    ],
)
def test_wrong_input_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        real_block_tensor(*arguments)


def test_a_plain_tensor_has_no_parts():
    with pytest.raises(TypeError, match="a Tensor has no parts; a quantized tensor is needed"):
        parts(torch.zeros(3))


PROBE = "from memlab.lab.blocks import *; [real_block_tensor(f, 128, 128) for f in FORMATS]"


def prints(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_building_them_prints_nothing():
    """nbval compares what a cell writes to stderr, too."""
    assert prints(PROBE) == ""


def test_the_module_is_torchaos_own_and_logging_is_as_before():
    import logging

    before = logging.root.manager.disable
    assert torchao("quantization").__name__ == "torchao.quantization"
    assert logging.root.manager.disable == before
    with pytest.raises(ImportError):
        torchao("nothing_of_that_name")
