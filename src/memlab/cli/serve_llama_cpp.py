"""`memlab serve --engine llama.cpp`: the weights of a GGUF file and the cache of all its slots."""

from __future__ import annotations

from ..engines.apple import mac
from ..engines.llama_cpp import CACHES, FILES, PAD, LlamaCpp, Loaded, loaded
from ..units import MiB, text
from . import arguments
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import argparse

# What other engines have, and this one has not.
OTHERS = (
    *("precision", "tensor_parallel", "shared_prefix", "gpu_memory_utilization"),
    *("mem_fraction_static", "sampler", "block_size", "max_num_batched_tokens", "max_num_seqs"),
    *("loaded", "activation_peak", "non_torch", "cuda_graphs"),
)
COMPUTE = (
    "left out: the compute buffer, which ggml's planner lays out for the largest graph of your "
    "build, GPU and batch; the log says it, “compute buffer size”"
)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and its status: 1 where weights and cache do not fit.

    Raises      ValueError for a flag that llama.cpp does not have, and for what is not counted
    """
    for name in OTHERS:
        if (value := getattr(options, name)) is not None:
            raise ValueError(f"--{name.replace('_', '-')} {value} is not of llama.cpp")
    told = {"context": options.max_model_len}
    if options.parallel is not None:
        told["slots"] = options.parallel
    if options.quantization is not None:
        told["file"] = _known("--quantization", options.quantization.upper(), FILES)
    if options.kv_dtype not in (None, "auto"):
        told["cache"] = _known("--kv-dtype", options.kv_dtype, CACHES)
    model, card = arguments.model_of(options.model), arguments.card(options.on)
    found = loaded(model, LlamaCpp(**told), on=card)
    return _as_json(found) if options.json else "\n".join(_lines(found)), int(not found.starts)


def _known(flag: str, word: str, known: dict[str, str]) -> str:
    """A type, if llama.cpp has it."""
    if word not in known:
        raise ValueError(f"{flag} {word} is not of llama.cpp, which has {', '.join(known)}")
    return word


def _context(found: Loaded) -> int:
    return found.model.positions if found.engine.context is None else found.engine.context


def _log(found: Loaded) -> list[str]:
    """Lines of llama-server's log, in MiB as it prints them."""
    figures = {row.term: row.derived or 0 for row in found.ledger.rows}
    gpu = "Metal" if mac(found.device) else "CUDA0"
    return [
        f"{gpu} model buffer size = {figures['weights'] / MiB:.2f} MiB",
        f"CPU_Mapped model buffer size = {found.host / MiB:.2f} MiB",
        f"{gpu} KV buffer size = {figures['kv_cache'] / MiB:.2f} MiB",
    ]


def _lines(found: Loaded) -> list[str]:
    engine, each = found.engine, _context(found)
    lines = [str(found.ledger), "", "the start-up log:", *(f"  {line}" for line in _log(found))]
    held = (
        f"{found.most:,} slots of {each:,} tokens fit, {engine.cache} cache, {engine.file} weights"
    )
    if not found.starts:
        needed = text(engine.slots * found.slot)
        held = (
            f"it does not start: the cache of --parallel {engine.slots} needs {needed}, "
            f"{text(max(0, found.available))} are left beside weights and CUDA context; {held}"
        )
    return [*lines, held, f"{text(found.host)} of the file stay in the CPU's memory", COMPUTE]


def _as_json(found: Loaded) -> str:
    """The document of `serve`; a block stands for the 256 tokens to which a slot is padded."""
    request = -(-_context(found) // PAD)
    blocks = max(0, found.available) * request // found.slot
    engine = {name: getattr(found.engine, name) for name in LlamaCpp.__fields__}  # type: ignore[attr-defined]
    return document(
        "serve",
        model=found.model.name,
        device=found.device,
        unit="bytes",
        rows={row.term: row.derived or 0 for row in found.ledger.rows},
        available=found.available,
        block_tokens=PAD,
        blocks=blocks,
        groups=1,
        request_blocks=request,
        tokens=blocks * PAD,
        slots=blocks * PAD,
        concurrency=blocks / request,
        longest=min(blocks * PAD, found.model.positions),
        sequences=found.most,
        starts=found.starts,
        log=_log(found),
        engine=engine | {"name": "llama.cpp"},
    )
