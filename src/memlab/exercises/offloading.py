"""Exercises of offloading and streaming."""

from ..formats import storage
from ..model import Model
from ..run import Run
from ..terms.offloading import streamed, traffic
from . import exercise


def _states() -> int:
    return 2 * storage(Model.preset("qwen3-4b").parameter_count, "bf16")


def _x() -> int:
    return storage(4096 * 4096, "bf16")


def _streamed(ahead: int) -> int:
    model = Model.preset("qwen3-4b")
    inside = sum(t.count for t in model.tensors() if t.copies > 1)
    ends = storage(model.parameter_count - inside, "bf16")
    return streamed(36, layer=storage(inside // 36, "bf16"), rest=ends, ahead=ahead)


def _peak(tokens: int, *off: str) -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    loop = "forloop" if "states" in off else None
    run = Run(batch=1, tokens=tokens, offload=off, optimizer_impl=loop)
    return simulate(Model.preset("llama-3-8b"), "bf16", run).peak.bytes


def _first(*already: str) -> int:
    tokens = 256
    while _peak(tokens, *already) <= _peak(tokens, "saved", *already):
        tokens += 256
    return tokens


exercise(
    "ex-offloading-1",
    answer=lambda: traffic(states=_states()),
    hint="Two states of two bytes for each parameter come, and go back.",
    wrong={
        _states: "Half of it: there are two states, and each comes and goes back.",
        lambda: 2 * _states() * 2: "Both states are in bf16, two bytes each.",
    },
)

exercise(
    "ex-offloading-2",
    answer=lambda: 32 * 2 * _x(),
    hint="Three copies of one storage, of which one is needed, in each layer.",
    wrong={
        lambda: 32 * 3 * _x(): "One of the three has to be sent. How much beyond that?",
        lambda: 2 * _x(): "That is one layer of 32.",
        lambda: 32 * 4 * _x(): "Once each way? Asked is what is sent out.",
    },
)

exercise(
    "ex-offloading-3",
    answer=lambda: _streamed(2),
    hint="What has no copies stays; three layers are there: one computes, two are coming.",
    wrong={
        lambda: _streamed(1): "That is with one on its way; here there are two.",
        lambda: _streamed(36): "That is the whole model.",
        lambda: 3 * (_streamed(1) - _streamed(0)): "The embedding and the last norm stay there.",
    },
)

exercise(
    "ex-offloading-4",
    answer=lambda: _first("states"),
    hint='Compare on_gpu(tokens, ("states",)) with ("states", "saved") for 256, 512 and so on.',
    unit="tokens",
    wrong={
        lambda: _first(): "From there on it pays with the states there. Are they off in both?",
    },
)
