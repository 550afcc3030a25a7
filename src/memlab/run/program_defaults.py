"""What a program does where nothing is said, as every door reads it: memlab.run.loops has it.

A field of a Run that is None, and a recipe that is None, is what the program of `run.loop` does by
itself. tests/test_program_defaults.py reads the same from the installed libraries.
"""

from __future__ import annotations

from ..base.frozen import replace
from ..base.message import Listed, Message
from .loops import LOOPS, Defaults

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..recipe import Recipe
    from .run import Run

PREPARED = "prepare_model_for_kbit_training"  # peft's, of a model whose linear layers are codes


def of(run: Run) -> Defaults:
    """What the program of this run does by itself, of which nothing need be said.

    Source      peft, utils/other.py: prepare_model_for_kbit_training makes fp32 of all that is
                no codes, and turns gradient checkpointing on
    """
    own = LOOPS[run.loop].defaults
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
    called = LOOPS[run.loop].called
    found = [called] if called else []
    return found + [PREPARED] if prepared else found


def _on_codes(run: Run) -> bool:
    return run.lora is not None and run.lora.base is not None
