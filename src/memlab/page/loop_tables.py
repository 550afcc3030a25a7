"""Steps of named loops: which are counted for the page, and how their moments are named.

A step of Trainer holds what one in a loop of one's own does, and a sum beside; the others have
files of their own, which tools/loop_peaks.py makes.

t T - 1 · z tokens of a sequence that are learned · Z T - z, the prompt's ·
i rows of the first tile of TRL's head, a of one between, l of the last ·
j words of the first tile, x of one between, y of the last; the other letters are those of
memlab.page.peak, with B sequences of a pair's kind where the loop has pairs
"""

from __future__ import annotations

from ..base.message import Message
from ..families import record_of
from ..run.loops import HEADED, TAUGHT, TRAINERS
from ..step.windows import windows
from ..terms.optimizer import managed
from . import words as say
from .layer_forms import attention_of, form_of
from .layer_forms import table_of as table_family
from .peak import BATCH, precision_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from ..recipe import Recipe
    from ..run import Run
    from .peak import Products

PLAIN = "plain"
KEPT = "keeps-outputs"  # the model's output, with keys and values in it
TABLED = ("sft", "dpo", "grpo", KEPT, "nanogpt")  # that have moments of their own
PRECISIONS = ("bf16", "autocast")  # of those
PAIRS = "dpo"  # two sequences each, so that there are always several
EMBEDDINGS = ("embedding", "positions")
ROWS, WORDS = 4096, 32768  # of a tile: memlab.step.loops.fused_tiles
ONE, MANY = "one", "many"
IDS = 8  # bytes of one token's number, int64
# Tensors of the shape of the ids that a loop has of each micro-batch: memlab.step.loops.inputs.
KINDS = {"trainer": 2, "sft": 3, "dpo": 3, "grpo": 2}


def table_of(name: str, loop: str) -> str:
    """The name of a file of moments of a loop, of the same step in a loop of one's own."""
    return f"{loop}.{name}"


def kind_of(kind: str, model: Model, recipe: Recipe, run: Run) -> str:
    """The name of a kind of step in such a file."""
    parts = kind.split(".")
    if run.loop == PAIRS:
        parts[BATCH] = MANY
    if tiled(run.loop, precision_of(recipe)):
        sizes = ((run.rows // (run.tokens or 1) * learned(run), ROWS), (model.vocab, WORDS))
        parts.append("-".join([ONE if size <= most else MANY for size, most in sizes]))
    return ".".join(parts)


def tiled(loop: str, precision: str) -> bool:
    """Whether the head copies each tile into the format that it computes in."""
    return loop in HEADED and precision == "autocast"


def learned(run: Run) -> int:
    """Tokens of each sequence that have a label before them."""
    return (run.tokens or 2) - 1 if run.completion is None else run.completion


def letters_of(model: Model, run: Run) -> dict[str, int]:
    """The value of each letter that only loops have.

    Of two tiles the one between is the last one again: no larger than the first, it is next to
    either what the last one is.
    """
    if run.loop not in HEADED:
        return {}
    tokens, told = run.tokens or 2, learned(run)
    made = {"t": tokens - 1, "z": told, "Z": tokens - told}
    for names, size, most in (
        ("ial", run.rows // tokens * told, ROWS),
        ("jxy", model.vocab, WORDS),
    ):
        last = size - (size - 1) // most * most
        sizes = (min(size, most), most if size > 2 * most else last, last)
        made.update({names[n]: sizes[n] for n in range(3)})
    return made


def widened(model: Model, recipe: Recipe, run: Run) -> tuple[int, int]:
    """By how much states of embeddings are more than 8 bits: bytes of torch's, and of the driver's.

    Source      transformers, trainer.py: create_optimizer, of bitsandbytes' 8-bit optimizers;
                memlab.step.optimizers.bnb
    """
    name = recipe.optimizer
    eight = name.startswith("bnb_") and name.endswith("8bit")
    if run.loop not in TRAINERS or run.lora is not None or not eight:
        return 0, 0
    wide, here, paged = recipe.replace(optimizer=name[:-4]), 0, 0
    for tensor in model.tensors():
        if tensor.name in EMBEDDINGS:
            shape = tensor.shape
            here += wide.state_bytes(shape, False) - recipe.state_bytes(shape, False)
            paged += managed(name[:-4], shape=shape) - managed(name, shape=shape)
    return here, paged


def norms(run: Run, count: int, width: float) -> int:
    """Bytes that clipping takes for a moment, beside the norm of the step before where it is kept.

    Formula     2 · n · b: a norm for each of n trained tensors, once by itself and once in a stack;
                and the norm of all, which takes the place of the last one
    """
    return int((2 * count + (run.loop not in TRAINERS)) * width)


def refused(model: Model, recipe: Recipe, run: Run) -> str:
    """Why there are no moments of this loop; or nothing."""
    if run.loop == PLAIN:
        return ""
    if run.loop in TAUGHT:
        return say.NO_TEACHER
    tabled = run.loop in TABLED
    own = record_of(model.family)
    if tabled:
        known = "loops" in record_of(table_family(model, run)).counted("beside")
    else:
        known = own.counted("trainer", True)  # of phi3 some forms were not held against the sum
    # Without checkpoints a kept output has keys and values. The tables are those of models with a
    # cache and without windows: a window's length is one more number beside keys and values.
    if run.loop == KEPT and run.checkpointing == "none":
        window = windows(model, run.window)[0]
        known = known and window is None and model.config.get("use_cache") is not False
    if not known or form_of(model) != "plain" and model.family == "phi3":
        return Message(say.NO_LOOP_STEP, family=model.family)
    if recipe.master:
        return say.NO_LOOP_COPY
    if run.lora is not None and run.loop not in TRAINERS:
        return say.NO_LOOP_ADAPTERS
    if tabled and run.lora is not None and precision_of(recipe) not in PRECISIONS:
        return say.NO_LOOP_PRECISION
    if tabled and attention_of(model, run) == "eager" and not own.eager_alone:
        return say.NO_LOOP_EAGER
    if run.loss != "plain":
        return say.NO_LOOP_LOSS
    if run.devices.ranks > 1 and not run.devices.replicated:
        return say.NO_LOOP_DEVICES
    return ""


def completed(moments: list[Any], precision: str, run: Run, width: float) -> None:
    """Put into the moments what a loop holds beside them: of Trainer a sum, in place.

    trainer     labels of its own, of every micro-batch and the ids of all but the one that is read;
                how many labels there are, the loss of the steps that were not logged yet, the last
                loss, all in fp32; the last norm. From the loss on, the sum that it is divided from
    the others  the inputs of micro-batches after the second
    width       bytes of a number in the format of the gradients
    """
    more: Products = {}
    if run.loop == "trainer":
        more = {"BT": IDS * (KINDS["trainer"] * run.micro_batches - 1), "": 12 + int(width)}
    elif run.loop in KINDS and run.micro_batches > 2:
        beyond = run.micro_batches - 2
        rows = run.sequences // run.batch  # of each of a batch
        more = {"BT": KINDS[run.loop] * IDS * rows * beyond}
        if run.loop == "grpo":  # an advantage in fp32 for each sequence
            more["B"] = 4 * beyond
    if not more:
        return
    for hill, _, parts in moments:
        held = parts.setdefault("other", {})
        for word in more:
            held[word] = held.get(word, 0) + more[word]
        if run.loop == "trainer" and hill in ("loss", "backward"):
            logits = sum(parts.get("logits", {}).values())
            # Adapters under autocast: logits in its format alone, before there is any loss.
            early = hill == "loss" and run.lora is not None and precision == "autocast"
            if not (early and logits == 2):
                held[""] += 4
