"""The loops that optimizers have, and the one that each takes by itself."""

from __future__ import annotations

from . import program_defaults

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..recipe.recipe import Recipe
    from . import Run

TORCH = (("forloop", "foreach", "fused"), {"cpu": "forloop", "cuda": "foreach"})
ONE_BY_ONE = (("forloop",), {"cpu": "forloop", "cuda": "forloop"})
TORCHAO = (("forloop", "compiled"), {"cpu": "compiled", "cuda": "compiled"})
# bitsandbytes has one code for each backend, and none to choose.
BNB: tuple[tuple[str, ...], dict[str, str]] = ((), {"cpu": "forloop", "cuda": "fused"})
PAGED: tuple[tuple[str, ...], dict[str, str]] = ((), {"cuda": "fused"})

# step_name(recipe) without a rank: its loops, and by backend the one that it takes by itself.
LOOPS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "adamw": TORCH,
    "amsgrad": TORCH,
    "wide_adamw": (("fused",), {"cuda": "fused"}),
    "sgd": TORCH,
    "momentum": TORCH,
    "adafactor": (("forloop", "foreach"), TORCH[1]),
    "hf_adafactor": ONE_BY_ONE,
    "lion": ONE_BY_ONE,
    "muon": TORCH,  # of AdamW beside it; its own goes parameter by parameter
    "muon8": TORCH,
    "galore": TORCH,
    "adamw8bit": TORCHAO,
    "adamw4bit": TORCHAO,
    "adamw_fp8": TORCHAO,
    "offload_adamw": (("fused",), {"cuda": "fused"}),
    "bnb_adamw": BNB,
    "bnb_adamw8bit": BNB,
    "bnb_paged_adamw": PAGED,
    "bnb_paged_adamw8bit": PAGED,
}


def step_name(recipe: Recipe) -> str:
    """The name of the optimizer's step: its own, but for two that torch does not have.

    muon8       Muon with its momentum in 8 bits
    wide_adamw  AdamW with fp32 states beside narrow weights
    """
    if recipe.optimizer == "muon" and recipe.states == ("int8/128",):
        return "muon8"
    wide = recipe.states == ("fp32", "fp32") and recipe.updated in ("bf16", "fp16")
    if recipe.optimizer == "adamw" and wide:
        return "wide_adamw"
    return recipe.optimizer


def loop_of(recipe: Recipe, run: Run) -> str:
    """The optimizer's loop: the one that the run says, or what this optimizer takes by itself.

    Source      transformers, training_args.py: optim is "adamw_torch_fused" from torch 2.8 on
    Raises      ValueError for an optimizer without a described step, and for a loop or a backend
                that it does not have
    """
    name = step_name(recipe).partition("/")[0]
    if name not in LOOPS:
        raise ValueError(f"the step of {name!r} is not described; known: {', '.join(LOOPS)}")
    loops, own = LOOPS[name]
    where = run.steps_on
    if where not in own:
        if own is PAGED[1]:
            plain = name.replace("paged_", "")
            raise ValueError(
                f"backend={where!r}: bitsandbytes pages nothing on a CPU; {name} is {plain} there"
            )
        raise ValueError(f"backend={where!r}: {name} is described on {', '.join(own)}")
    if run.optimizer_impl is None:
        if run.devices.whole_beside_divided:
            return "forloop"  # foreach refuses plain weights beside DTensors
        zero = run.devices.deepspeed and name == "adamw" and where == "cuda"
        asked = program_defaults.adamw(run) if name == "adamw" else ""
        return asked or ("fused" if zero else own[where])
    if run.optimizer_impl not in (loops or (own[where],)):
        has = ", ".join(loops) or f"{own[where]} on {where}"
        raise ValueError(f"optimizer_impl={run.optimizer_impl!r}: {name} has {has}")
    return run.optimizer_impl
