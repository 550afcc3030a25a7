"""The loops that optimizers have, and the one that each takes by itself."""

from __future__ import annotations

from .. import programs

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..run import Run
    from .recipe import Recipe

TORCH = (("forloop", "foreach", "fused"), {"cpu": "forloop", "cuda": "foreach"})
ONE_BY_ONE = (("forloop",), {"cpu": "forloop", "cuda": "forloop"})
TORCHAO = (("forloop", "compiled"), {"cpu": "compiled", "cuda": "compiled"})

# Recipe.optimizer: the loops that it has, and by backend the one it takes by itself.
LOOPS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "adamw": TORCH,
    "amsgrad": TORCH,
    "sgd": TORCH,
    "momentum": TORCH,
    "adafactor": (("forloop", "foreach"), TORCH[1]),
    "hf_adafactor": ONE_BY_ONE,
    "lion": ONE_BY_ONE,
    "muon": TORCH,  # of AdamW beside it; its own goes parameter by parameter
    "adamw8bit": TORCHAO,
    "adamw4bit": TORCHAO,
    "adamw_fp8": TORCHAO,
    "bnb_adamw8bit": (("fused",), {"cuda": "fused"}),  # on a CPU it is another code
}


def loop_of(recipe: Recipe, run: Run) -> str:
    """The optimizer's loop: the one that the run says, or what this optimizer takes by itself.

    Raises      ValueError for an optimizer without a described step, and for a loop or a backend
                that it does not have
    """
    name = recipe.optimizer
    if name not in LOOPS:
        raise ValueError(f"the step of {name!r} is not described; known: {', '.join(LOOPS)}")
    loops, own = LOOPS[name]
    if run.backend not in own:
        raise ValueError(f"backend={run.backend!r}: {name} is described on {', '.join(own)}")
    if run.optimizer_impl is None:
        return (programs.adamw(run) if name == "adamw" else "") or own[run.backend]
    if run.optimizer_impl not in loops:
        raise ValueError(f"optimizer_impl={run.optimizer_impl!r}: {name} has {', '.join(loops)}")
    return run.optimizer_impl
