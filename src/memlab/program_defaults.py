"""What each program does where nothing is said: one table, which every door reads.

A field of a Run that is None, and a recipe that is None, is what the program of `run.loop` does by
itself. tests/test_program_defaults.py reads the same from the installed libraries.
"""

from __future__ import annotations

from .base.frozen import dataclass, replace
from .base.message import Listed, Message
from .programs import CLASSES, DISTILLED, TRL

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .recipe import Recipe
    from .run import Run

EVERYWHERE = ("cuda", "cpu")  # backends
PREPARED = "prepare_model_for_kbit_training"  # peft's, of a model whose linear layers are codes


@dataclass(frozen=True)
class Defaults:
    """What a program takes by itself.

    weights     the format in which it loads a model; None: the one that the config says
    autocast    the backends on which its forward pass is under autocast to bf16
    checkpoint  none, or block: each layer's activations are computed again in backward
    clip        whether the gradients' norm is bounded, by 1.0
    fused       the backends on which AdamW is the fused one; torch's own choice on others
    loss        plain: the model's own; fused_head: TRL's
    adapters    the format of adapters beside a base of codes; None: peft's own
    prepares    whether a base of codes has been through peft's preparation
    """

    weights: str | None = None
    autocast: tuple[str, ...] = ()
    checkpoint: str = "none"
    clip: bool = True
    fused: tuple[str, ...] = EVERYWHERE
    loss: str = "plain"
    adapters: str | None = None
    prepares: bool = False


# A loop that is written by hand, as PyTorch's and peft's guides write it.
OWN = Defaults(clip=False, fused=(), prepares=True)
# trl 1.16: trainer/base_config.py (bf16, gradient_checkpointing); trainer/utils.py:
# create_model_from_path (dtype="float32"); sft_trainer.py, dpo_trainer.py, grpo_trainer.py,
# distillation_trainer.py: adapters of a quantized model are made bf16.
TRLS = Defaults("fp32", EVERYWHERE, "block", adapters="bf16")
TABLE = {
    "plain": OWN,
    "keeps-outputs": OWN,
    # karpathy/nanoGPT, train.py: dtype='bfloat16', a nullcontext() on a CPU, grad_clip=1.0;
    # model.py: configure_optimizers, fused on CUDA.
    "nanogpt": Defaults("fp32", ("cuda",), fused=("cuda",)),
    # transformers 5.23, training_args.py: bf16=False, gradient_checkpointing=None,
    # max_grad_norm=1.0, optim="adamw_torch_fused"; the model is loaded with dtype="auto".
    "trainer": Defaults(prepares=True),
}
TABLE.update({loop: replace(TRLS, loss="fused_head") for loop in TRL})
TABLE.update({loop: TRLS for loop in DISTILLED})


def of(run: Run) -> Defaults:
    """What the program of this run does by itself, of which nothing need be said.

    Source      peft 0.21, utils/other.py: prepare_model_for_kbit_training makes fp32 of all that is
                no codes, and turns gradient checkpointing on
    """
    own = TABLE[run.loop]
    if own.prepares and run.implementation == "transformers" and _on_codes(run):
        return replace(own, weights="fp32", checkpoint="block")
    return own


def adamw(run: Run) -> str:
    """The loop of AdamW that a program asks for; nothing: torch's own choice."""
    return "fused" if run.backend in of(run).fused else ""


def precision(run: Run) -> str:
    """The name of the precision that a program takes by itself; nothing: what the config says."""
    own = of(run)
    if run.phase == "train" and run.backend in own.autocast:
        return "autocast-bf16"
    return own.weights or ""


def taken(run: Run, recipe: Recipe, *, chosen: bool) -> list[tuple[str, object, str]]:
    """What a program took where nothing was said: the field, its value, and in words.

    recipe      with which the answer was made
    chosen      whether somebody said that recipe; otherwise it is the program's own
    """
    own = of(run)
    what: list[tuple[str, object, str]] = []
    if run.phase != "train" or not _programs(run):
        return []
    if not chosen:
        words = "{weights} weights under bf16 autocast" if recipe.autocast else "{weights} weights"
        what.append(("precision", recipe.name, Message(words, weights=recipe.weights)))
    if run.lora is not None and run.lora.base and own.adapters and run.lora.dtype is None:
        words = Message("adapters in {format}", format=own.adapters)
        what.append(("lora_dtype", own.adapters, words))
    if run.checkpoint is None:
        words = "gradient checkpointing" if own.checkpoint == "block" else "no checkpointing"
        what.append(("checkpoint", own.checkpoint, words))
    if run.clip is None and own.clip:
        what.append(("clip", True, "clipping at 1.0"))
    if run.optimizer_impl is None and recipe.optimizer == "adamw" and adamw(run):
        what.append(("optimizer_impl", adamw(run), "fused AdamW"))
    if run.loss == "plain" and own.loss == "fused_head":
        what.append(("loss", own.loss, "logits in tiles"))
    return what


def told(run: Run, recipe: Recipe, *, chosen: bool) -> str:
    """The same in one line; "" where nothing was taken."""
    words = [said for _, _, said in taken(run, recipe, chosen=chosen)]
    if not words:
        return ""
    pattern = "{program}'s defaults: {what}"
    programs = Listed(" and ", _programs(run))
    return Message(pattern, program=programs, what=Listed(", ", words))


def _programs(run: Run) -> list[str]:
    """Whose defaults these are; nobody's in a loop that is written by hand."""
    prepared = of(run).prepares and run.implementation == "transformers" and _on_codes(run)
    found = [CLASSES[run.loop]] if run.loop in CLASSES else []
    return found + [PREPARED] if prepared else found


def _on_codes(run: Run) -> bool:
    return run.lora is not None and run.lora.base is not None
