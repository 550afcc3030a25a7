"""What an explanation of a serving engine says: headings, reasons, sentences, its flags."""

from __future__ import annotations

from ..base.message import Message
from ..engines import Pool
from ..files.engine_log import EngineLog
from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

HEADINGS = ("of one rank", "derived", "the log", "difference", "what explains it")
# What a log says, by the names of EngineLog's figures.
LOGGED = {"weights": "weights", "activations": "activations", "non_torch": "other"}
LOGGED |= {"graphs": "CUDA graphs", "available": "KV cache", "blocks": "blocks"}
LOGGED |= {"tokens": "tokens", "concurrency": "concurrency"}
MORE = "With the model, each row stands beside the derived one: {1}"
# Fields of Engine: memlab's flags, and those of the engines.
FLAGS_HERE = {
    "utilization": "--gpu-memory-utilization",
    "max_model_len": "--max-model-len",
    "tensor": "--tensor-parallel",
    "seqs": "--max-num-seqs",
    "batched": "--max-num-batched-tokens",
    "block_size": "--block-size",
    "kv_dtype": "--kv-dtype",
    "dtype": "--precision",
    "quantization": "--quantization",
    "sampler": "--sampler",
}
VLLM = FLAGS_HERE | {"tensor": "--tensor-parallel-size", "kv_dtype": "--kv-cache-dtype"}
SGLANG = VLLM | {"utilization": "--mem-fraction-static", "max_model_len": "--context-length"}
THEIRS = {"vllm": VLLM, "sglang": SGLANG | {"tensor": "--tp-size"}}
WITH = "{1}: {2}"
AS_WITH = "as with {1}"
UNKNOWN_WEIGHTS = "another model, format or number of ranks than was said"
LARGEST = "no formula: {1} is the largest that others posted; --non-torch says yours"
NO_FORMULA = "what lies outside PyTorch has no formula; --non-torch says yours"
IN_SHARE = "no formula: the log's own is taken from the share, as vLLM does since 0.21"
BEYOND = "no formula; beyond the share"
LEAVES = "what the rows above leave of the share"
NOWHERE = "no row of the log says where {1} of it are"
OF_BYTES = "the log's own bytes make it"
NOT_OF_BYTES = "the log's own bytes do not make it: another block, cache format or model"
NOT_DESCRIBED = "The log says {1}={2}, which is not described: {3} says what it is here."
OTHERWISE = "{1} {2} was said; the log says {3}."
GB = "What the log calls GB are GiB: {1} divides by 1024 three times."
ONE_RANK = "The log has {1} ranks: these are the figures of rank {2}, whose pool is the smallest."
SORTED = (
    "The log is of vLLM {1}, which sorted all logits with torch.sort: --sampler sort, unless its "
    "sampler was FlashInfer's."
)
FIRST_ENGINE = (
    "The log is of vLLM's first engine (V0): the first step reads whole prompts of the longest "
    "request, and samples 256 sequences with torch.sort."
)
EARLY = (
    "The log is of vLLM {1}: the first step of its second engine (V1) sampled nothing yet, so that "
    "its activations are smaller than derived."
)
COUNTED = (
    "The log is of vLLM {1}; before 0.21 CUDA graphs were not taken from the share, and a model "
    "with windows had its tokens counted otherwise."
)
UNNAMED = "The log names no version; what is derived is of vLLM 0.21 and later."
MOMENTS = {
    "start": "It stopped before it loaded anything: less was free than the share that it wants.",
    "weights": "Memory ran out while the weights were loaded.",
    "profile": "Memory ran out in the first, empty step, which shows the engine what it needs.",
    "sampler": "Memory ran out while the sampler was warmed up, beside the pool.",
    "cache": "Weights and the first step leave no room for the cache.",
    "length": "The pool does not hold one request of the longest length.",
    "graphs": "Memory ran out while CUDA graphs were captured: they lie beside the pool.",
    "running": "Memory ran out after the pool was there.",
}
ASKED = "{1} {2} were asked."
ASKED_FREE = "{1} {2} were asked, {3} were free."
FREE = "{1} {2} of {3} were free, the share is {4}."
HELPS = "what would make it start, each alone"
NOTHING_HELPS = "None of the engine's settings makes it start on this card."
USELESS = "would not: {1}"
REMEDY = "{1}   leaves {2} for the cache: {3} tokens"
SEEN = "{1} takes {2} of {3} when it starts, whatever the model: {4} of them hold the cache."
SEEN_MORE = (
    "{1} were seen, {2} more than this share: the CUDA context and CUDA graphs lie beyond it."
)
SEEN_LESS = (
    "{1} were seen, {2} less than this share: it was started with another share, or not yet up."
)
LEAST = "{1} {2} would hold one request of {3} tokens: the least that this model needs here."
NOT_AT_ALL = "No share of this card holds one request of {1} tokens."
NEVER = "No share of this card holds one request of {1} tokens; this one holds one of {2}."
SENTENCES = (
    *(
        *HEADINGS,
        MORE,
        WITH,
        AS_WITH,
        UNKNOWN_WEIGHTS,
        LARGEST,
        NO_FORMULA,
        IN_SHARE,
        BEYOND,
        LEAVES,
        NOWHERE,
    ),
    *(OF_BYTES, NOT_OF_BYTES, NOT_DESCRIBED, OTHERWISE, GB, ONE_RANK, SORTED, FIRST_ENGINE, EARLY),
    *(COUNTED, UNNAMED, *MOMENTS.values(), ASKED, ASKED_FREE, FREE, HELPS, NOTHING_HELPS, USELESS),
    *(REMEDY, SEEN, SEEN_MORE, SEEN_LESS, LEAST, NEVER, NOT_AT_ALL, "blocks", "concurrency"),
)


def share(found: Pool) -> int:
    """Bytes of the card that an engine takes, where its ledger may need more than these."""
    return found.ledger.total() + min(0, found.available)


def flags(changes: dict[str, Any], of: dict[str, str] = FLAGS_HERE) -> str:
    """Fields of an Engine as a command line has them."""
    return " ".join([f"{of[field]} {value}" for field, value in changes.items()])


def about(log: EngineLog) -> list[str]:
    """What is to be said of a log: its version, its rank, its units."""
    told: list[str] = []
    if log.engine == "vllm":
        if log.v0:
            told.append(FIRST_ENGINE)
        elif log.before(0, 16):
            told.append(Message(EARLY if log.before(0, 8) else SORTED, log.version))
        if log.version is None:
            told += [] if log.v0 else [UNNAMED]
        elif log.before(0, 21):
            told.append(Message(COUNTED, log.version))
    if log.ranks > 1:
        told.append(Message(ONE_RANK, log.ranks, log.rank))
    if log.decimal:
        told.append(Message(GB, log.engine))
    return told


def refusal(log: EngineLog, found: Pool | None) -> str:
    """What was being done when memory ran out, what was asked, and where it is known the share."""
    figures, said = log.figures, MOMENTS[log.refused or "running"]
    if found is not None and log.refused == "start" and "unused" in figures:
        sizes = (figures["unused"], figures["total"], share(found))
        return Message(FREE, said, *(text(round(size)) for size in sizes))
    if "asked" in figures and "free" in figures:
        return Message(
            ASKED_FREE, said, text(round(figures["asked"])), text(round(figures["free"]))
        )
    return Message(ASKED, said, text(round(figures["asked"]))) if "asked" in figures else said
