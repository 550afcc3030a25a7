"""`memlab estimate CONFIG --engine vllm`: the pool that a serving engine lays out on a card."""

from __future__ import annotations

import argparse

from ..engines import Engine, Pool, Quantized, pool, start_up
from ..engines.engine import ENGINES, KV_DTYPES, SAMPLERS
from ..files import quantization_config
from ..model import Model
from ..recipe import Recipe
from ..terms.packed import FORMATS
from ..units import parse, text
from . import given
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Flag, field of Engine, and what it is. Their names are vLLM's, where it has one.
NUMBERS = (
    ("max-model-len", "max_model_len", "tokens of the longest request (default: all positions)"),
    ("block-size", "block_size", "tokens of a block (default 16; latent attention 64)"),
    ("max-num-batched-tokens", "batched", "tokens of one step (default: as vLLM's server)"),
    ("max-num-seqs", "seqs", "sequences of one step (default: as vLLM's server)"),
    ("shared-prefix", "prefix", "tokens that all sequences begin with (default 0)"),
)
SIZES = (
    ("loaded", "weights", "the weights of a rank (default: derived)"),
    ("activation-peak", "activations", "the first step beside the weights (default: derived)"),
    ("non-torch", "non_torch", "outside PyTorch's allocator (default: the largest posted)"),
    ("cuda-graphs", "cuda_graphs", "of the share, as newer versions of vLLM take it (default 0)"),
)
OF_ENGINE: tuple[str, ...] = (
    "on",
    "gpu_memory_utilization",
    "mem_fraction_static",
    "kv_dtype",
    "quantization",
    "sampler",
)
OF_ENGINE += tuple(flag.replace("-", "_") for flag, *_ in NUMBERS + SIZES)
# What a command of --engine may say besides: the rest is about a step, or about several devices.
SHARED = ("model", "json", "run", "engine", "precision", "tensor_parallel", *OF_ENGINE)
PRECISIONS = ("bf16", "fp16", "fp32")
DERIVED = "derived from the config"


def add_engine(parser: argparse.ArgumentParser) -> None:
    """The flags of a serving engine."""
    words = "the pool that it lays out when it starts; with --on, and --tensor-parallel N"
    group = parser.add_argument_group("a serving engine", words)
    group.add_argument("--engine", choices=ENGINES, help="whose pool")
    group.add_argument("--on", metavar="DEVICE", help="a card, or a size: 'H100 80GB', '24 GB'")
    words = "vllm: the share of the card that it takes (default 0.9)"
    group.add_argument("--gpu-memory-utilization", type=float, metavar="P", help=words)
    words = "sglang: the share of weights and pool; its log prints it"
    group.add_argument("--mem-fraction-static", type=float, metavar="P", help=words)
    words = f"format of the cache: {', '.join(KV_DTYPES)} (default auto: that of the weights)"
    group.add_argument("--kv-dtype", choices=KV_DTYPES, metavar="FORMAT", help=words)
    words = "how the checkpoint packs its matrices: " + ", ".join(FORMATS)
    words += "; none: not at all (default: as its config says, else as it is published)"
    group.add_argument("--quantization", metavar="FORMAT", help=words)
    words = "sort: torch.sort, as vLLM had it before its own kernel (default fused)"
    group.add_argument("--sampler", choices=SAMPLERS, help=words)
    for flag, _, words in NUMBERS:
        group.add_argument(f"--{flag}", type=int, metavar="N", help=words)
    for flag, _, words in SIZES:
        group.add_argument(f"--{flag}", metavar="SIZE", help=f"{words}, by your own log")


def said(options: argparse.Namespace) -> bool:
    """Whether the command asks about an engine.

    Raises      ValueError for an engine's flag without --engine
    """
    if options.engine is not None:
        return True
    for name in OF_ENGINE:
        if (value := getattr(options, name)) is not None:
            raise ValueError(f"--{name.replace('_', '-')} {value} is of an engine: --engine vllm")
    return False


def answer(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and its status: 1 where the engine would not start.

    Raises      ValueError for a flag of a step, without --on, and for what is not described
    """
    for name, value in vars(options).items():
        if name not in SHARED and value is not None and value is not False:
            flag = f"--{name.replace('_', '-')} {value}"
            raise ValueError(f"{flag} says how a step is run; --engine {options.engine} serves")
    if options.on is None:
        raise ValueError(f"--engine {options.engine}: say the card, --on 'H100 80GB'")
    model, packed = _loaded(options)
    for line in given.left_out(options.model, model, Recipe()):
        raise ValueError(f"--engine {options.engine} loads every part of a model; {line}")
    found = pool(model, _engine(options, packed), on=_card(options.on))
    words = _as_json(found) if options.json else "\n".join(_lines(found))
    return words, 0 if found.starts else 1


def _loaded(options: argparse.Namespace) -> tuple[Model, Quantized | str | None]:
    """The model, and how its checkpoint packs it.

    Raises      ValueError where a flag says another thing than the config
    """
    asked = options.quantization
    config = quantization_config.beside(options.model)
    if config is None:
        return given.model_of(options.model), asked
    model, how = config
    if asked is not None:
        raise ValueError(f"--quantization {asked}: the config says it already: {how.told()}")
    return model, how


def _engine(options: argparse.Namespace, packed: Quantized | str | None) -> Engine:
    shares = {"vllm": "gpu_memory_utilization", "sglang": "mem_fraction_static"}
    mine = shares.pop(options.engine)
    for other in shares.values():
        if (value := getattr(options, other)) is not None:
            flags = f"--{other.replace('_', '-')} {value}", f"--{mine.replace('_', '-')}"
            raise ValueError(f"{flags[0]} is of the other engine; {options.engine} has {flags[1]}")
    dtype = options.precision or "bf16"
    if dtype not in PRECISIONS:
        raise ValueError(f"--precision {dtype} is of training; known: {', '.join(PRECISIONS)}")
    told: dict[str, Any] = {"utilization": getattr(options, mine)}
    told |= {name: getattr(options, name) for name in ("kv_dtype", "sampler")}
    told |= {field: getattr(options, flag.replace("-", "_")) for flag, field, _ in NUMBERS}
    told |= {"tensor": options.tensor_parallel, "quantization": packed}
    for flag, field, _ in SIZES:
        size = getattr(options, flag.replace("-", "_"))
        told[field] = None if size is None else _size(size)
    said = {name: value for name, value in told.items() if value is not None}
    return Engine(name=options.engine, dtype=dtype, **said)


def _size(words: str) -> int:
    """Bytes of a size as a log prints it, rounded to two decimals: "14.96 GiB"."""
    before, _, rest = words.partition(".")
    places = len(rest) - len(rest.lstrip("0123456789"))
    return parse(before + rest) // 10**places if places else parse(words)


def _card(words: str) -> str | int:
    """A card by its name, or "79.22 GiB" as a log has it."""
    return _size(words) if words.strip()[:1].isdigit() and "." in words else words


def _lines(found: Pool) -> list[str]:
    lines = [str(found.ledger), "", "the start-up log:", *(f"  {x}" for x in start_up(found))]
    if found.engine.name == "vllm" and found.starts and found.slots != found.tokens:
        lines.append(f"  (before vLLM 0.21: GPU KV cache size: {found.slots:,} tokens)")
    if found.sequences is not None and found.starts:
        words = f" that share {found.engine.prefix:,}" if found.engine.prefix else ""
        longest = found.engine.max_model_len or 0
        lines.append(f"{found.sequences:,} sequences of {longest:,} tokens{words} at once")
    return [*lines, *_guessed(found)]


def _guessed(found: Pool) -> list[str]:
    """What no formula says, and stands here by another's reading."""
    if found.engine.name == "sglang" or found.engine.non_torch is not None:
        return []
    size = text(found.ledger["other"].derived or 0)
    return [f"other: {size} outside PyTorch, the largest posted; --non-torch says your log's"]


def _as_json(found: Pool) -> str:
    engine = {name: getattr(found.engine, name) for name in Engine.__fields__}  # type: ignore[attr-defined]
    how = found.engine.loads(found.model)
    engine["quantization"] = None if how is None else how.told()
    return document(
        "estimate --engine",
        model=found.model.name,
        device=found.device,
        unit="bytes",
        rows={row.term: row.derived or 0 for row in found.ledger.rows},
        available=found.available,
        block_tokens=found.block,
        blocks=found.blocks,
        groups=found.groups,
        request_blocks=found.request,
        tokens=found.tokens,
        slots=found.slots,
        concurrency=found.concurrency,
        longest=found.longest,
        sequences=found.sequences,
        starts=found.starts,
        log=list(start_up(found)),
        engine=engine,
    )
