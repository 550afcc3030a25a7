"""What may wait on a host, and beside what: the rules of memlab.Run's `offload`."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .run import Run


def check_offload(run: Run) -> None:
    """Refuse what nobody's code does.

    Raises      ValueError
    """
    off = run.offload
    if "states" in off and (run.step_in_backward or run.optimizer_loop != "forloop"):
        raise ValueError(
            "offload of states: the optimizer steps after backward, with optimizer_impl='forloop'"
        )
    if "gradients" in off and "optimizer" not in off:
        raise ValueError("offload of gradients is for an optimizer that steps there: say both")
    if "optimizer" in off:
        _check_host(run)


def _check_host(run: Run) -> None:
    """torchao's CPUOffloadOptimizer: a fused AdamW on the host.

    Source      torchao, torchao/optim/cpu_offload.py
    """
    if "states" in run.offload:
        raise ValueError("offload of states and of the optimizer: the states are with it; say one")
    if run.step_in_backward:
        raise ValueError("offload of the optimizer: it steps after backward, not inside")
    if run.optimizer_impl not in (None, "fused"):
        raise ValueError(
            f"offload of the optimizer with optimizer_impl={run.optimizer_impl!r}: the host's loop "
            "is torch's fused one"
        )
    if "gradients" in run.offload and run.micro_batches > 1:
        raise ValueError(
            f"offload of gradients with {run.micro_batches} micro-batches: one that has left "
            "cannot be added to"
        )
