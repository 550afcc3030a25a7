"""The sentences around the figures of an answer."""

from __future__ import annotations

from ..base.message import Listed, Message
from ..base.quoted import shown
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step.windows import windows
from ..terms.kv_cache import mla_cache, windowed_cache
from ..terms.optimizer import managed
from ..units import text
from ..verdict import BAND, RUNS, percent
from . import loop_tables
from . import words as say
from .pasted import WHOLE, text_of
from .several import cards, one_of, per_gpu
from .table_peak import HILLS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..verdict import Room

    Said = dict[str, Any]

MOST_KEYS = 40  # of a config, that a sentence names
# What the form calls a change of memlab.explain.changes, where that is another name.
CHANGES = {
    "torch's loss in chunks": "torch's chunked loss",
    "autocast": "mixed precision (bf16 autocast)",
    "pure bf16": "bf16 weights and states",
    "8-bit states": "8-bit AdamW",
    "block checkpointing": "gradient checkpointing",
}


def said(found: Said, model: str, recipe: str, run: Run, zero: int) -> Said:
    """What to say of the figures that were found, for a model and a recipe of these names.

    zero        the stage that was asked for, which a run on one device does not have
    """
    return {
        "heading": heading(found, model, recipe, run),
        "heights": heights(found),
        "divides": undivided(run, zero),
        "advice": advice(found),
        "steps": [
            Message(say.CHANGED, change=called(name), cost=cost, size=per_gpu(size, found["gpus"]))
            for name, cost, size in found["changes"]
        ],
        "verdict": verdict(found),
        "picture": pictured(found),
        "scale": Message(say.SCALE, limit=found["limit_text"], card=found["card"]),
    }


def pictured(found: Said) -> str:
    """The bar in words."""
    parts = [Message(row["term"] + " {size}", size=row["text"]) for row in found["rows"]]
    return Message(
        say.PICTURE, size=total_of(found), parts=Listed(", ", parts), limit=found["limit_text"]
    )


def heading(found: Said, model: str, recipe: str, run: Run) -> str:
    """What the ledger is of, as the title of memlab.estimate's says it."""
    if not found["peak"]:
        recipe = one_of(recipe, found["gpus"])
        return Message(say.HEADING_AT_REST, model=model, recipe=recipe)
    sizes = {"batch": f"{run.batch:,}", "tokens": f"{run.tokens:,}"}
    pairs = run.sequences != run.batch
    size = Message(say.PAIRS if pairs else say.BATCH, **sizes)
    if run.micro_batches > 1:
        many = say.BATCHES_OF_PAIRS if pairs else say.BATCHES
        size = Message(many, passes=f"{run.micro_batches:,}", **sizes)
    tokens = one_of(size, found["gpus"])
    return Message(say.HEADING, model=model, recipe=recipe, tokens=tokens, moment=found["moment"])


def heights(found: Said) -> str:
    """The peak of each phase."""
    tops = {name: size for name, _, size in found["hills"]}
    if not tops:
        return ""
    each = [Message(name + " {size}", size=tops[name]) for name in HILLS if name in tops]
    return Message(say.HILLS, hills=Listed(" · ", each))


def called(change: str) -> str:
    """A change's name in the form's words; in MicroPython one with numbers has no hash."""
    return CHANGES.get(change, change) if isinstance(change, str) else change


def undivided(run: Run, zero: int) -> str:
    """That ZeRO has nothing to divide, where it was asked of one device."""
    return Message(say.UNDIVIDED, stage=zero) if zero and run.devices.data == 1 else ""


def verdict(found: Said) -> str:
    """Whether it fits, or that only what stays is known to."""
    if not found["peak"]:
        part = of_text() if found.get("without") else None
        if found["fits"]:
            told = part.FITS_SO_FAR_TEXT if part else say.FITS_SO_FAR
        else:
            told = part.TOO_MUCH_AT_REST_TEXT if part else say.TOO_MUCH_AT_REST
        return Message(told, why=found["why"], **figures(found))
    return known(found)


def known(found: Said) -> str:
    """Whether it fits, is tight, or does not fit."""
    more: Said = {}
    if found["state"] == "tight":
        more = {"most": found["most"], "percent": percent(BAND), "runs": RUNS}
    tight = say.TIGHT_RANKS if found["gpus"] > 1 else say.TIGHT
    told = {"yes": say.FITS, "tight": tight, "no": say.TOO_MUCH}[found["state"]]
    if found.get("without"):
        part = of_text()
        tight = part.TIGHT_RANKS_TEXT if found["gpus"] > 1 else part.TIGHT_TEXT
        told = {"yes": part.FITS_TEXT, "tight": tight, "no": part.TOO_MUCH_TEXT}[found["state"]]
    return Message(told, **figures(found), **more)


def figures(found: Said) -> Said:
    """What each of these sentences names."""
    return {
        "card": cards(found["card"], found["gpus"]),
        "limit": found["limit_text"],
        "total": total_of(found),
        "left": found["left"],
    } | ({"without": found["without"]} if found.get("without") else {})


def total_of(found: Said) -> str:
    """What it needs, or what each of several GPUs does."""
    return per_gpu(found["total_text"], found["gpus"])


def of_text() -> Any:
    """The sentences about the text of a whole, fetched with the first config of one."""
    from . import config_words

    return config_words


def beside(room: Room) -> str:
    """What of a card no total holds."""
    return Message(say.WITHOUT, size=text(room.beside), percent=percent(BAND), runs=RUNS)


def advice(found: Said) -> str:
    """What stands before the changes, or that none helps."""
    if found["fits"] or not found["peak"] or "never" not in found:  # nobody looked for any
        return ""
    if not found["changes"]:
        return Message(say.NO_CHANGE, never=found["never"])
    return say.CHEAPEST_TIGHT if found.get("then") else say.CHEAPEST


def left_out(model: Model, recipe: Recipe, run: Run, peak: bool, room: Room) -> list[str]:
    """What the total does not hold, one line each."""
    told: list[str] = [beside(room)]
    if room.nccl:
        told.append(Message(say.OF_NCCL, size=text(room.nccl)))
    paged = paged_of(model, recipe, run)
    if paged:
        told.append(Message(say.PAGED, size=text(paged)))
    cache = cache_of(model, run)
    if cache:
        told.append(Message(say.CACHE, size=text(cache)))
    if run.lora is not None and run.lora.base:
        told.append(say.NF4_LEAVES_OUT)
    if not peak:
        told.append(say.ONLY_IN_A_STEP)
        return told
    if run.devices.fsdp:
        told.append(say.LEFT_BY_FSDP)
    return told


def paged_of(model: Model, recipe: Recipe, run: Run) -> int:
    """Bytes of states in managed memory, of the part that one of the devices has."""
    if run.lora is not None:
        from . import adapters_resident  # fetched with the first adapters

        return adapters_resident.paged(model, recipe, run.lora)
    _, more = loop_tables.widened(model, recipe, run)
    return more + sum(
        [
            managed(recipe.optimizer, shape=run.devices.shape(tensor, "optimizer")) * tensor.copies
            for tensor in run.devices.tensors(model)
        ]
    )


def cache_of(model: Model, run: Run, format: str = "bf16") -> int:
    """Bytes of the keys and values of the same tokens; 0 for layers that are not described.

    Formula     sum over layers of 2 · B · min(T, W) · K · H · b; of latent attention that of
                memlab.terms.kv_cache.mla_cache
    """
    tokens, latent = run.tokens or 0, model.latent
    if latent is not None:
        sizes: dict[str, Any] = {"latent": latent.kv_rank, "rope": latent.rope}
        return mla_cache(model.layers, tokens=tokens, batch=run.batch, format=format, **sizes)
    try:
        near, sliding = windows(model, run.window)
    except ValueError:
        return 0
    slides = [near is not None] * model.layers if sliding is None else sliding
    each = [(near or None) if slid else None for slid in slides]
    shape: dict[str, Any] = {"kv_heads": model.kv_heads, "head_dim": model.head_dim}
    return windowed_cache(each, batch=run.batch, tokens=tokens, format=format, **shape)


def of_config(read: dict[str, Any], pasted: dict[str, Any]) -> list[str]:
    """Which keys of a config were read, and which were not, and why; what is left of a whole."""
    from ..model.fields import used  # as memlab.page.pasted has it

    family, whole = read["model_type"], read.get(WHOLE)
    if not whole:
        return of_keys(used(family, pasted))
    said = of_keys(used(family, text_of(pasted) or {}))
    return [Message(say.BUT_TEXT, family=whole)] + said


def of_keys(told: dict[str, list[str]]) -> list[str]:
    """The lines about keys that were read but for some, change nothing, and are not known."""
    said = (
        (say.CONFIG_READ, told["read"]),
        (say.CONFIG_NO_EFFECT, told["no effect"]),
        (say.CONFIG_UNKNOWN, told["not known"]),
    )
    return [Message(words, keys=listed(keys)) for words, keys in said if keys]


def listed(keys: list[str]) -> str:
    """Names of keys as one line may repeat them: text only, and not more than a few lines."""
    words = ", ".join([shown(key)[1:-1] for key in sorted(keys)[:MOST_KEYS]])
    return f"“{words}, …”" if len(keys) > MOST_KEYS else f"“{words}”"
