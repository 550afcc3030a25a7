"""The exercises of the chapter on gradients."""

from ..estimate import estimate
from ..model import Model
from ..terms.gradients import gradients
from . import exercise


def _llama() -> Model:
    return Model.preset("llama-3-8b")


def _last_layers(count: int) -> int:
    """Parameters of so many layers, without embedding, last norm and head."""
    return count * sum(t.numel for t in _llama().tensors() if t.name.startswith("layers."))


def _all() -> int:
    return _llama().parameter_count


def _tiny() -> Model:
    return Model.preset("tiny-llama")


def _largest() -> int:
    return max(tensor.numel for tensor in _tiny().tensors())


exercise(
    "ex-gradients-1",
    answer=lambda: gradients(_largest(), format="fp32"),
    hint="When a hook runs, the gradients of earlier hooks are gone. Which matrix is the largest?",
    wrong={
        lambda: gradients(
            _tiny().parameter_count, format="fp32"
        ): "Those are all gradients at once: set `parameter.grad = None` at the end of the hook.",
        lambda: gradients(
            _largest(), format="bf16"
        ): "The largest gradient is right; its parameter is in fp32.",
        lambda: gradients(
            _tiny().vocab * _tiny().d_model, format="fp32"
        ): "That is the embedding. Compare it with a feed-forward matrix of this small model.",
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
        ): "No bf16 gradient stays: the backward pass of the cast turns it into fp32.",
    },
)


exercise(
    "ex-gradients-3",
    answer=lambda: gradients(_all(), format="bf16"),
    hint="The fall is `zero_grad`. Which band of the figure ends there, and how high is it?",
    wrong={
        lambda: gradients(
            _all(), format="fp32"
        ): "That is the band of the optimizer states, which stays. The gradients are bf16.",
        lambda: (
            2 * gradients(_all(), format="fp32")
        ): "Everything is in bf16 in this run: two bytes for each gradient.",
    },
)


exercise(
    "ex-gradients-4",
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
