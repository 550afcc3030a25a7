"""`memlab serve CONFIG --on CARD`: the pool that a serving engine lays out when it starts."""

from __future__ import annotations

import argparse

from ..engines import Engine, Pool, Quantized, pool, start_up
from ..engines.engine import ENGINES, KV_DTYPES, SAMPLERS
from ..engines.llama_cpp import CACHES, FILES
from ..engines.llama_cpp import NAME as LLAMA_CPP
from ..files import quantization_config
from ..model import Model
from ..recipe import Recipe
from ..terms.packed import FORMATS
from ..units import text
from . import arguments
from .brought import count
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
)
SIZES = (
    ("loaded", "weights", "the weights of a rank (default: derived)"),
    ("activation-peak", "activations", "the first step beside the weights (default: derived)"),
    ("non-torch", "non_torch", "outside PyTorch's allocator (default: the largest posted)"),
    ("cuda-graphs", "cuda_graphs", "of the share, as vLLM takes it since 0.21 (default 0)"),
)
PRECISIONS = ("bf16", "fp16", "fp32")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, and the flags of a serving engine."""
    arguments.add_model(parser, "--on DEVICE ")
    words = "a card, or a size: 'H100 80GB', '24 GB'; llama.cpp: 'Apple 64GB' too"
    parser.add_argument("--on", required=True, metavar="DEVICE", help=words)
    known = (*ENGINES, LLAMA_CPP)
    words = f"whose pool: {' or '.join(known)} (default {ENGINES[0]})"
    parser.add_argument("--engine", choices=known, default=ENGINES[0], help=words)
    words = "devices that divide each matrix (default 1)"
    flags = ("--tensor-parallel", "--tensor")
    parser.add_argument(*flags, type=count, metavar="N", help=words)
    words = "what is computed, and cached if --kv-dtype says nothing else (default bf16)"
    parser.add_argument("--precision", choices=PRECISIONS, help=words)
    add_options(parser)
    words = "tokens that all sequences begin with (default 0)"
    parser.add_argument("--shared-prefix", type=count, metavar="N", help=words)
    words = "llama.cpp: slots, each of --max-model-len tokens (default 1)"
    parser.add_argument("--parallel", type=count, metavar="N", help=words)


def add_options(parser: Any) -> None:
    """The flags that no other command has under the same name."""
    words = "vllm: the share of the card that it takes (default 0.92; before vLLM 0.21 it was 0.9)"
    parser.add_argument("--gpu-memory-utilization", type=float, metavar="P", help=words)
    words = "sglang: the share of weights and pool; its log prints it"
    parser.add_argument("--mem-fraction-static", type=float, metavar="P", help=words)
    words = f"format of the cache: {', '.join(KV_DTYPES)} (default auto: that of the weights); "
    words += f"llama.cpp: {', '.join(CACHES)} (default f16)"
    caches = (*KV_DTYPES, *CACHES)
    parser.add_argument("--kv-dtype", choices=caches, metavar="FORMAT", help=words)
    words = "how the checkpoint packs its matrices: " + ", ".join(FORMATS)
    words += "; none: not at all (default: as its config says, else as it is published); "
    words += f"llama.cpp: {', '.join(FILES)} (default Q4_K_M)"
    parser.add_argument("--quantization", metavar="FORMAT", help=words)
    words = "sort: torch.sort, as vLLM had it before its own kernel (default fused)"
    parser.add_argument("--sampler", choices=SAMPLERS, help=words)
    for flag, _, words in NUMBERS:
        parser.add_argument(f"--{flag}", type=count, metavar="N", help=words)
    for flag, _, words in SIZES:
        parser.add_argument(f"--{flag}", metavar="SIZE", help=f"{words}, by your own log")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and its status: 1 where the engine would not start.

    Raises      ValueError for what is not described
    """
    if options.engine == LLAMA_CPP:
        from .serve_llama_cpp import run as of_llama_cpp  # which few ask about

        return of_llama_cpp(options)
    if options.parallel is not None:
        raise ValueError(f"--parallel {options.parallel} is of --engine llama.cpp")
    model, said = asked(options)
    said["dtype"] = options.precision or PRECISIONS[0]
    if options.shared_prefix is not None:
        said["prefix"] = options.shared_prefix
    found = pool(model, Engine(**said), on=arguments.card(options.on))
    words = _as_json(found) if options.json else "\n".join(_lines(found))
    return words, 0 if found.starts else 1


def asked(options: argparse.Namespace) -> tuple[Model, dict[str, Any]]:
    """The model, and those fields of Engine that its flags and its config say.

    Raises      ValueError for what is not described
    """
    model, packed = _loaded(options)
    for line in arguments.left_out(options.model, model, Recipe()):
        raise ValueError(f"{options.engine} loads every part of a model; {line}")
    return model, _told(options, packed)


def _loaded(options: argparse.Namespace) -> tuple[Model, Quantized | str | None]:
    """The model, and how its checkpoint packs it.

    Raises      ValueError where a flag says another thing than the config
    """
    asked = options.quantization
    config = quantization_config.beside(options.model)
    if config is None:
        return arguments.model_of(options.model), asked
    model, how = config
    if asked is not None:
        raise ValueError(f"--quantization {asked}: the config says it already: {how.told()}")
    return model, how


def _told(options: argparse.Namespace, packed: Quantized | str | None) -> dict[str, Any]:
    shares = {"vllm": "gpu_memory_utilization", "sglang": "mem_fraction_static"}
    mine = shares.pop(options.engine)
    for other in shares.values():
        if (value := getattr(options, other)) is not None:
            flags = f"--{other.replace('_', '-')} {value}", f"--{mine.replace('_', '-')}"
            raise ValueError(f"{flags[0]} is of the other engine; {options.engine} has {flags[1]}")
    told: dict[str, Any] = {"name": options.engine, "utilization": getattr(options, mine)}
    told |= {name: getattr(options, name) for name in ("kv_dtype", "sampler")}
    told |= {field: getattr(options, flag.replace("-", "_")) for flag, field, _ in NUMBERS}
    told |= {"tensor": options.tensor_parallel, "quantization": packed}
    for flag, field, _ in SIZES:
        size = getattr(options, flag.replace("-", "_"))
        told[field] = None if size is None else arguments.logged(size)
    return {name: value for name, value in told.items() if value is not None}


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
    lines: list[str] = []
    if found.engine.name == "sglang":
        return lines
    if found.engine.non_torch is None:
        size = text(found.ledger["other"].derived or 0)
        lines.append(
            f"other: {size} outside PyTorch, the largest posted; --non-torch says your log's"
        )
    if found.engine.cuda_graphs is None:
        lines.append(
            "CUDA graphs: not derived; --cuda-graphs takes what your log estimates (since 0.21)"
        )
    return lines


def _as_json(found: Pool) -> str:
    engine = {name: getattr(found.engine, name) for name in Engine.__fields__}  # type: ignore[attr-defined]
    how = found.engine.loads(found.model)
    engine["quantization"] = None if how is None else how.told()
    return document(
        "serve",
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
