"""Exercises of offloading."""

from ..formats import storage
from ..model import Model
from ..terms.offloading import traffic
from . import exercise


def _llama() -> Model:
    return Model.preset("llama-3-8b")


def _stay(logits: bool = True, norms: bool = True) -> int:
    """Bytes that two operators store: 8 sequences of 64 tokens of the small model in fp32.

    Formula     (3L + n) tensors of width D, n numbers a token and the logits, n = 2L + 1 norms
    """
    tiny = Model.preset("tiny-llama")
    n = (2 * tiny.layers + 1) * norms
    return 4 * 8 * 64 * ((3 * tiny.layers + n) * tiny.d_model + n + tiny.vocab * logits)


def _linear() -> int:
    return storage(sum(t.count for t in _llama().tensors() if t.linear), "bf16")


def _come(layers: int = 8, head: int = 1, norm: int = 1) -> int:
    """Bytes of the last layers of Llama-3-8B, its last norm and its head."""
    llama = _llama()
    inside = storage(sum(t.count for t in llama.tensors() if t.copies > 1), "bf16") // 32
    ends = head * llama.vocab * llama.d_model + norm * llama.d_model
    return layers * inside + storage(ends, "bf16")


def _states() -> int:
    return 2 * storage(Model.preset("qwen3-4b").parameter_count, "bf16")


exercise(
    "ex-offloading-1",
    answer=_stay,
    hint="In pack, ask whether the storage is in self.known before you call the old pack.",
    wrong={
        lambda: 0: "That is ToHost as it was. What is stored twice stays now.",
        lambda: _stay(logits=False): "The logits are stored twice as well, by the loss.",
        lambda: _stay(norms=False): "The input of each norm is stored more than once as well.",
    },
)

exercise(
    "ex-offloading-2",
    answer=lambda: 3 * 2 * _linear(),
    hint="Each forward pass sends the weights of the linear layers again: 13.98 GiB, out and back.",
    wrong={
        lambda: 4 * 2 * _linear(): "One forward pass sent them before. By how much does it grow?",
        lambda: 3 * _linear(): "That is what goes out. It comes back in backward as well.",
        lambda: 0: "Weights do not become fewer with the tokens; each micro-batch sends them all.",
    },
)

exercise(
    "ex-offloading-3",
    answer=_come,
    hint="Each token is a pass, which needs every layer that is on the CPU, the norm and the head.",
    wrong={
        lambda: _come(head=0): "The head is on the CPU as well.",
        lambda: _come(norm=0): "The last norm has a weight, too, one value for each feature.",
        lambda: _come(layers=32): "Most layers are on the GPU and stay there.",
        lambda: _come(layers=7): "From layer 24 to layer 31: both of them are on the CPU.",
    },
)

exercise(
    "ex-offloading-4",
    answer=lambda: traffic(states=_states()),
    hint="Two states of two bytes for each parameter come, and go back.",
    wrong={
        _states: "Half of it: there are two states, and each comes and goes back.",
        lambda: 2 * _states() * 2: "Both states are in bf16, two bytes each.",
    },
)
