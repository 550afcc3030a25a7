"""GGUF, the file of llama.cpp: blocks of codes, and a file with them written and read by `struct`.

Letters     R, C rows and columns of a weight; n values of one block

Source      ggml: docs/gguf.md at 01f0d4d, version 3, for the file; llama.cpp at 01243c5:
            ggml/src/ggml-common.h for the blocks, ggml-quants.c for their codes
Leaves out  what llama.cpp's own files have besides: a tokenizer, arrays and floats as metadata
"""

import os
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..base.untrusted import opened
from ..model import Model

ALIGNED = 32  # bytes, if the metadata does not say otherwise
MAGIC, VERSION = b"GGUF", 3
MOST_HEAD = 2**26  # bytes of all that stands before the data
INTEGER, WORDS = 4, 8  # of gguf_metadata_value_type: UINT32 and STRING

# Of each kind its number in the file, the values of a block, and the bytes of its parts.
KINDS: dict[str, tuple[int, int, dict[str, int]]] = {
    "F32": (0, 1, {"value": 4}),
    "F16": (1, 1, {"value": 2}),
    "Q4_0": (2, 32, {"scale, fp16": 2, "codes of 4 bits": 16}),
    "Q8_0": (8, 32, {"scale, fp16": 2, "codes of 8 bits": 32}),
    "Q4_K": (12, 256, {"two fp16": 4, "16 numbers of 6 bits": 12, "codes of 4 bits": 128}),
    "Q6_K": (14, 256, {"scale, fp16": 2, "16 scales of 8 bits": 16, "codes of 6 bits": 192}),
}


class TensorInfo(NamedTuple):
    """Where a tensor lies: its kind, its shape as PyTorch says it, its first byte in the file."""

    kind: str
    shape: tuple[int, ...]
    start: int


class Read(NamedTuple):
    """What a file says of itself: metadata, tensors by name, where their data begin, its bytes."""

    metadata: dict[str, str | int]
    tensors: dict[str, TensorInfo]
    data: int
    size: int


def tensor_bytes(count: int, kind: str, *, row: int | None = None) -> int:
    """Bytes of a tensor of so many values.

    Formula     count / n · bytes of a block
    Shapes      row: values of its last dimension, which whole blocks must fill
    Unit        bytes, a whole number
    Raises      ValueError for an unknown kind, or a row that does not fill its blocks
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    _, values, parts = KINDS[kind]
    if (count if row is None else row) % values:
        raise ValueError(f"{kind}: {row or count} values do not fill blocks of {values}")
    return count // values * sum(parts.values())


def model_bytes(model: Model, layers: str, ends: str, *, more: str | None = None) -> int:
    """Bytes of a model's tensors in such a file; its tokenizer comes on top.

    Shapes      layers: the kind of the layers' matrices; ends: of embedding and head; norms are F32
    more        the kind of v and down in the layers that llama.cpp's mixtures give more bits
    Source      llama.cpp: use_more_bits and llama_tensor_get_type in src/llama-quant.cpp
    """
    total = 0
    for t in model.tensors():
        if len(t.shape) < 2:
            total += t.copies * tensor_bytes(t.numel, "F32")
        elif t.copies == 1:
            total += tensor_bytes(t.numel, ends, row=t.shape[-1])
        else:
            richer = t.name.rpartition(".")[2] in ("v", "down") and more is not None
            some = sum(more_bits(i, t.copies) for i in range(t.copies)) if richer else 0
            total += some * tensor_bytes(t.numel, more or layers, row=t.shape[-1])
            total += (t.copies - some) * tensor_bytes(t.numel, layers, row=t.shape[-1])
    return total


def more_bits(layer: int, layers: int) -> bool:
    """Whether a mixture such as Q4_K_M gives this layer more bits: both ends, and every third."""
    first = layers // 8
    return layer < first or layer >= 7 * layers // 8 or (layer - first) % 3 == 2


def encode(weight: Tensor, kind: str) -> bytes:
    """A weight's bytes in the file, rounded as llama.cpp's reference code does.

    Shapes      weight [.., C]; C fills whole blocks
    Leaves out  the K kinds, whose scales llama.cpp searches for
    Raises      ValueError for those, and for a row that does not fill its blocks
    """
    tensor_bytes(weight.numel(), kind, row=weight.shape[-1])
    if kind in ("F32", "F16"):
        return _raw(weight.to(torch.float32 if kind == "F32" else torch.float16))
    if kind not in ("Q8_0", "Q4_0"):
        raise ValueError(f"{kind} is not written here; known: F32, F16, Q8_0, Q4_0")
    blocks = weight.detach().float().reshape(-1, 32)
    if kind == "Q8_0":
        scale = blocks.abs().amax(-1, keepdim=True) / 127
    else:  # the largest magnitude becomes code 0, which says -8
        scale = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True)) / -8
    scaled = blocks * torch.where(scale == 0, 0.0, 1 / scale)
    if kind == "Q8_0":  # C's roundf: halves away from zero
        codes = (scaled.sign() * (scaled.abs() + 0.5).floor()).to(torch.int8).view(torch.uint8)
    else:
        codes = (scaled + 8.5).floor().clamp(0, 15).to(torch.uint8)
        codes = codes[:, :16] | codes[:, 16:] << 4
    return _raw(torch.cat([scale.half().view(torch.uint8), codes], dim=-1))


def decode(data: bytes, kind: str, shape: tuple[int, ...]) -> Tensor:
    """The values of a tensor again, in fp32, from the first bytes of these that it needs.

    Raises      ValueError for a kind that `encode` does not write
    """
    needed = tensor_bytes(prod(shape), kind)
    raw = torch.frombuffer(bytearray(data[:needed]), dtype=torch.uint8)
    if kind in ("F32", "F16"):
        return raw.view(torch.float32 if kind == "F32" else torch.float16).float().reshape(shape)
    if kind not in ("Q8_0", "Q4_0"):
        raise ValueError(f"{kind} is not read here; known: F32, F16, Q8_0, Q4_0")
    blocks = raw.reshape(-1, tensor_bytes(32, kind))
    scale, codes = blocks[:, :2].contiguous().view(torch.float16).float(), blocks[:, 2:]
    if kind == "Q8_0":
        return (scale * codes.contiguous().view(torch.int8)).reshape(shape)
    return (scale * (torch.cat([codes & 15, codes >> 4], dim=-1).float() - 8)).reshape(shape)


def write(
    path: str | Path,
    tensors: Mapping[str, tuple[str, Tensor]],
    metadata: Mapping[str, str | int],
) -> None:
    """A GGUF file: header, metadata, a line for each tensor, then their data, each aligned.

    Shapes      tensors: name -> kind, weight
    Raises      ValueError as `encode`
    """
    head = MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind = INTEGER if isinstance(value, int) else WORDS
        head += _words(key) + struct.pack("<I", kind)
        head += struct.pack("<I", value) if isinstance(value, int) else _words(value)
    data = b""
    for name, (of, weight) in tensors.items():
        sizes = weight.shape[::-1]  # ggml names the dimension first that lies together
        head += _words(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", KINDS[of][0], len(data))
        data += _padded(encode(weight, of))
    Path(path).write_bytes(_padded(head) + data)


def read(path: str | Path) -> Read:
    """What stands in the head of a GGUF file; the data are left where they are.

    Raises      ValueError for another file or version, for one that ends too early, for kinds and
                metadata that are not described here
    """
    with opened(path) as file:
        whole, ends = file.read(MOST_HEAD), os.fstat(file.fileno()).st_size
    if whole[:4] != MAGIC:
        raise ValueError(f"{Path(path).name} is no GGUF file")
    at = 4

    def take(form: str) -> tuple[int, ...]:
        nonlocal at
        size = struct.calcsize(f"<{form}")
        if at + size > len(whole):
            raise ValueError(f"{Path(path).name} ends in its head")
        at += size
        return struct.unpack_from(f"<{form}", whole, at - size)

    def words() -> str:
        nonlocal at
        (length,) = take("Q")
        if at + length > len(whole):
            raise ValueError(f"{Path(path).name} ends in its head")
        at += length
        return whole[at - length : at].decode("utf-8", "replace")

    version, tensors, pairs = take("IQQ")
    if version != VERSION:
        raise ValueError(f"version {version}; {VERSION} is read here")
    metadata: dict[str, str | int] = {}
    for _ in range(pairs):
        key, (kind,) = words(), take("I")
        if kind not in (INTEGER, WORDS):
            raise ValueError(f"{key}: metadata of kind {kind} are not read here")
        metadata[key] = words() if kind == WORDS else take("I")[0]
    names = {number: name for name, (number, *_) in KINDS.items()}
    found: dict[str, TensorInfo] = {}
    for _ in range(tensors):
        name, (count,) = words(), take("I")
        shape, (number, offset) = take(f"{min(count, 4)}Q")[::-1], take("IQ")
        if name in found:
            raise ValueError(f"{name} is there twice")
        if number not in names or count > 4:
            raise ValueError(f"{name}: kind {number} with {count} dimensions is not read here")
        found[name] = TensorInfo(names[number], shape, offset)
    data = at + -at % ALIGNED
    placed = {name: info._replace(start=data + info.start) for name, info in found.items()}
    for name, info in placed.items():
        size = tensor_bytes(prod(info.shape), info.kind, row=info.shape[-1] if info.shape else 1)
        if info.start + size > ends:
            raise ValueError(
                f"{Path(path).name} ends before {name}, {size:,} bytes from byte {info.start:,}"
            )
    return Read(metadata, placed, data, ends)


def _words(said: str) -> bytes:
    raw = said.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNED)


def _raw(values: Tensor) -> bytes:
    return values.detach().contiguous().numpy().tobytes()
