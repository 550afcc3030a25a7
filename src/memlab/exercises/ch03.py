"""The exercises of chapter 03, gradients."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..terms.gradients import accumulation_transient, gradients
from ..units import parse
from . import exercise


def _llama() -> Model:
    return Model.preset("llama-3-8b")


def _last_layers(count: int) -> int:
    """Parameters of so many layers, without embedding, last norm and head."""
    return count * sum(t.numel for t in _llama().tensors() if t.name.startswith("layers."))


def _all() -> int:
    return _llama().parameter_count


exercise(
    "ex-gradients-1",
    answer=lambda: gradients(_last_layers(4), format="bf16"),
    hint="Count one layer (attention, feed-forward, two norms), times 4 layers, times 2 B.",
    wrong={
        lambda: gradients(
            _all(), format="bf16"
        ): "A frozen parameter has no gradient, not even zeros.",
        lambda: (
            gradients(_all(), format="bf16") // 8
        ): "An eighth of the layers is less than an eighth of the model: the embedding and the "
        "head are frozen too.",
        lambda: gradients(
            _last_layers(4), format="fp32"
        ): "The parameters are bf16, and a gradient has the format of its parameter.",
        lambda: gradients(_last_layers(28), format="bf16"): "Those are the frozen layers.",
    },
)


exercise(
    "ex-gradients-2",
    answer=lambda: estimate(_llama(), "autocast")["gradients"].derived or 0,
    hint="In which format are the parameters, and how many `.grad` does each of them have?",
    wrong={
        lambda: gradients(
            _all(), format="bf16"
        ): "Autocast casts copies; the parameters stay fp32, and so do their gradients.",
        lambda: (
            8 * gradients(_all(), format="fp32")
        ): "The micro-batches add to one and the same `.grad`.",
        lambda: (
            8 * gradients(_all(), format="bf16")
        ): "The micro-batches add to one and the same `.grad`, "
        "and it has the format of the parameter.",
        lambda: (
            gradients(_all(), format="bf16") + gradients(_all(), format="fp32")
        ): "Nothing keeps a bf16 gradient here: the way back through the cast makes it fp32.",
    },
)


exercise(
    "ex-gradients-3",
    answer=lambda: accumulation_transient(
        _llama().vocab * _llama().d_model, micro_batches=2, format="bf16"
    ),
    hint="One fresh gradient at a time stands beside `.grad`. Which matrix is the largest?",
    wrong={
        lambda: gradients(
            _llama().d_ff * _llama().d_model, format="bf16"
        ): "That is the largest matrix of a layer. The model has a larger one outside its layers.",
        lambda: gradients(
            _llama().vocab * _llama().d_model, format="fp32"
        ): "Twice too much: a fresh "
        "gradient is bf16 as its parameter is, and embedding and head never have theirs together.",
        lambda: gradients(
            _all(), format="bf16"
        ): "Each fresh gradient is added and freed at once; they are never all there together.",
        lambda: (
            3 * gradients(_llama().vocab * _llama().d_model, format="bf16")
        ): "Three tables stand there when the head is tied to the embedding; this one is not.",
    },
)


def _layers_that_fit(format: str = "bf16", fresh: int = 14336 * 4096) -> int:
    return (parse("7 GiB") - storage(fresh, format)) // gradients(_last_layers(1), format=format)


exercise(
    "ex-gradients-4",
    answer=_layers_that_fit,
    hint="From the 7 GiB take one feed-forward matrix; divide by the gradients of one layer.",
    unit="layers",
    wrong={
        lambda: _layers_that_fit(fresh=0): "They fit, but the second micro-batch needs room for a "
        "fresh gradient beside them.",
        lambda: _layers_that_fit(fresh=_llama().vocab * 4096): "The embedding is frozen, so the "
        "largest fresh gradient is a matrix of a layer.",
        lambda: _layers_that_fit("fp32"): "A gradient has the format of its parameter, bf16.",
        lambda: (
            parse("7 GiB") // (8 * gradients(_last_layers(1), format="bf16"))
        ): "Micro-batches add to one and the same `.grad`.",
    },
)
