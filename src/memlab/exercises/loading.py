"""Exercises of loading."""

from ..model import Model
from ..model.checkpoint_file import listed, sizes
from ..terms.loading import moments, peak, shards
from ..units import GB
from . import exercise


def _sizes(name: str, format: str = "bf16") -> list[int]:
    return sizes(Model.preset(name), format)


def _copied(name: str) -> int:
    """Host memory at the peak: built in fp32, a checkpoint in bf16 read in addition."""
    old = _sizes(name)
    return peak(moments(old, new=old, way="copy", built=_sizes(name, "fp32"))).host


def _files(name: str) -> list[int]:
    """Bytes of the tensors in each file of a checkpoint in bf16, cut at 5 GB."""
    found = _sizes(name)
    return [sum(found[i] for i in file) for file in shards(found, limit=5 * GB)]


def _written(*names: str) -> int:
    """Bytes of these tensors in all layers of Llama-3-8B, in bf16."""
    model = Model.preset("llama-3-8b")
    found = zip(listed(model), sizes(model), strict=True)
    return sum(size for (name, _), size in found if name.endswith(names))


exercise(
    "ex-loading-1",
    answer=lambda: max(_files("qwen3-4b")),
    hint="Fill a file with one tensor after another; what would pass 5 GB opens the next.",
    wrong={
        lambda: 5 * GB: "A tensor is never cut, so a file is rarely full to the byte.",
        lambda: sum(_sizes("qwen3-4b")): "That is the whole checkpoint, more than one file holds.",
        lambda: min(_files("qwen3-4b")): "That is the smaller of the two files.",
        lambda: _copied("qwen3-4b"): "The model is on the device; the host has only a file.",
        lambda: sum(_sizes("qwen3-4b", "fp32")): "That is the model on the device, in fp32.",
    },
)

exercise(
    "ex-loading-2",
    answer=lambda: _written("attention.q", "attention.v"),
    hint="Only a page that is written to becomes yours. Which tensors does the step write to?",
    wrong={
        lambda: sum(_sizes("llama-3-8b")): "Only what is written to is copied.",
        lambda: _written("attention.q", "attention.k", "attention.v", "attention.out"): (
            "Two of the four projections are trained."
        ),
        lambda: 2 * _written("attention.q"): "v has 8 heads; q has 32.",
        lambda: _written("attention.q", "attention.v") // 32: "That is one layer.",
    },
)

exercise(
    "ex-loading-3",
    answer=lambda: max(_files("llama-3-8b")),
    hint="The largest file decides. Its header is not a tensor.",
    wrong={
        lambda: max(_files("llama-3-8b")) + 12128: "That is the whole file; subtract its header.",
        lambda: _files("llama-3-8b")[0]: "That is the first file; another one is larger.",
        lambda: sum(_files("llama-3-8b")): "Those are all files; only one is in memory at a time.",
        lambda: min(_files("llama-3-8b")): "That is the smallest file; the peak is the largest.",
    },
)

exercise(
    "ex-loading-4",
    answer=lambda: 4 * _copied("qwen3-4b"),
    hint="The model as it is built, and the file as it is read, both at once, in each process.",
    wrong={
        lambda: _copied("qwen3-4b"): "That is one process; four run at the same time.",
        lambda: 4 * sum(_sizes("qwen3-4b", "fp32")): (
            "Four bytes for each parameter: that is the model alone, as PyTorch builds it in fp32."
        ),
        lambda: 4 * sum(_sizes("qwen3-4b")): "Those are the files alone; the models are there too.",
        lambda: 8 * sum(_sizes("qwen3-4b", "fp32")): "The file is in bf16.",
    },
)
