"""Exercises of chapter 09, loading."""

from ..model import Model
from ..model.checkpoint_file import listed, sizes
from ..terms.loading import moments, peak, shards
from ..units import GB
from . import exercise


def _sizes(name: str, format: str = "bf16") -> list[int]:
    return sizes(Model.preset(name), format)


def _copied(name: str) -> int:
    """Host memory at the peak: built in fp32, a checkpoint in bf16 read beside it."""
    old = _sizes(name)
    return peak(moments(old, new=old, way="copy", built=_sizes(name, "fp32"))).host


def _embedding() -> int:
    """Bytes of the matrix that Qwen3-4B's embedding and head share, in bf16."""
    return _sizes("qwen3-4b")[0]


def _largest_file() -> int:
    found = _sizes("qwen3-4b")
    return max(sum(found[i] for i in file) for file in shards(found, limit=5 * GB))


def _written(*names: str) -> int:
    """Bytes of these tensors in all layers of Llama-3-8B, in bf16."""
    model = Model.preset("llama-3-8b")
    found = zip(listed(model), sizes(model), strict=True)
    return sum(size for (name, _), size in found if name.endswith(names))


exercise(
    "ex-loading-1",
    answer=lambda: _copied("qwen3-4b"),
    hint="The model as it is built, and the file as it is read, both at once.",
    wrong={
        lambda: sum(_sizes("qwen3-4b", "fp32")): (
            "Four bytes for each parameter: that is the model alone, as PyTorch builds it in fp32."
        ),
        lambda: sum(_sizes("qwen3-4b")): "That is the file alone; the model is there too.",
        lambda: 2 * sum(_sizes("qwen3-4b", "fp32")): "The file is in bf16.",
    },
)

exercise(
    "ex-loading-2",
    answer=_largest_file,
    hint="Fill a file with one tensor after another; what would pass 5 GB opens the next.",
    wrong={
        lambda: 5 * GB: "A tensor is never cut, so a file is rarely full to the byte.",
        lambda: sum(_sizes("qwen3-4b")): "That is the whole checkpoint, more than one file holds.",
        lambda: sum(_sizes("qwen3-4b")) - _largest_file(): "That is the smaller of the two files.",
    },
)

exercise(
    "ex-loading-3",
    answer=lambda: sum(_sizes("qwen3-4b")) + _embedding(),
    hint="to_empty gives memory to every parameter by its name. How many names has the matrix?",
    wrong={
        lambda: sum(_sizes("qwen3-4b")): (
            "So it was before: to_empty does not see that two names mean one matrix."
        ),
        lambda: 2 * (sum(_sizes("qwen3-4b")) + _embedding()): "Two bytes a value in bf16.",
        lambda: _embedding(): "That is the shared matrix alone.",
        lambda: 2 * _embedding(): "Those are the two matrices; the layers come on top.",
    },
)

exercise(
    "ex-loading-4",
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
