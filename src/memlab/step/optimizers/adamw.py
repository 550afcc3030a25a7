"""AdamW, and AdamW with a third state: states in the first step, temporaries in every one."""

from __future__ import annotations

from ...terms.optimizer import SMALLEST_QUANTIZED, numel
from ..core.engine import Engine
from ..core.graph import Parameter
from .each import Each, Made, Temporaries, make_states, those

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def adamw(engine: Engine, each: Each, loop: str) -> None:
    """One torch.optim.AdamW.step().

    forloop     two temporaries of each parameter's size, the last one kept until the next: sqrt of
                the second moment, and that over the bias correction
    foreach     the square roots of all second moments at once; all further work is in place
    fused       nothing beside the states
    Source      torch/optim/adam.py, torch 2.13
    """
    make_states(engine, each, states)
    _update(engine, each, loop)


def amsgrad(engine: Engine, each: Each, loop: str) -> None:
    """One torch.optim.AdamW(amsgrad=True).step(): the root is that of the third state."""
    make_states(engine, each, lambda p: [*states(p), ("max_exp_avg_sq", p.shape, p.dtype)])
    _update(engine, each, loop)


def wide_adamw(engine: Engine, each: Each, loop: str) -> None:
    """AdamW with fp32 states beside narrow weights, in one kernel a parameter.

    Source      the figure of 10 bytes a parameter in How to Scale Your Model; in PyTorch such a
                step is bitsandbytes' AdamW. In JAX a compiled update holds what XLA plans: no
                buffer of it is described here
    """
    make_states(
        engine,
        each,
        lambda p: [
            ("step", (), "fp32"),
            ("exp_avg", p.shape, "fp32"),
            ("exp_avg_sq", p.shape, "fp32"),
        ],
    )


def offload_adamw(engine: Engine, each: Each, loop: str) -> None:
    """One torchao.optim.CPUOffloadOptimizer.step(): small tensors are fused AdamW's on the device.

    Gradients are copied to the host as they come, and stay here too (offload_gradients=False).

    Source      torchao, optim/cpu_offload.py
    """
    make_states(engine, those(each, lambda p: numel(p.shape) < SMALLEST_QUANTIZED), states)


def states(parameter: Parameter) -> Sequence[Made]:
    """The counter and the two moments."""
    shape, dtype = parameter.shape, parameter.dtype
    return [("step", (), "fp32"), ("exp_avg", shape, dtype), ("exp_avg_sq", shape, dtype)]


def _update(engine: Engine, each: Each, loop: str) -> None:
    if loop == "forloop":
        last: list[Any] = []
        for parameter in each():
            engine.before_update(parameter)
            temporaries = [
                engine.new(name, parameter.shape, parameter.dtype) for name in ("sqrt", "div")
            ]
            last = temporaries[1:]
            del temporaries
        last.clear()
    elif loop == "foreach":
        one = engine.new("one", (), "fp32")  # what the step counters are raised by
        del one
        Temporaries(engine, each, lambda p: ("foreach_sqrt", p.shape, p.dtype)).drop()


def elsewhere(engine: Engine, each: Each, loop: str) -> None:
    """One step with the states on a host and those of one parameter at a time on the device."""
    for parameter in each():
        _one_elsewhere(engine, parameter)


def _one_elsewhere(engine: Engine, parameter: Parameter) -> None:
    """AdamW([parameter]).step() between its states' arrival and their leaving; the counter stays.

    Source      memlab.lab.offloaded_optimizer.OffloadedStates
    """
    shape, dtype = parameter.shape, parameter.dtype
    if not parameter.state:
        parameter.state = [engine.new("step", (), "fp32", "optimizer").storage]
    here = [engine.new(name, shape, dtype, "optimizer") for name in ("exp_avg", "exp_avg_sq")]
    temporaries = [engine.new(name, shape, dtype) for name in ("sqrt", "div")]
    del temporaries, here
