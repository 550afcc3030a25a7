"""The lines about memory that an engine's log prints when it starts, in its own words and units."""

from __future__ import annotations

from ..units import GiB
from .pool import Pool

# Sources: vLLM 0.21 and later, gpu_model_runner.py, gpu_worker.py, kv_cache_utils.py; SGLang,
# memory_pool.py.
SGLANG = "KV Cache is allocated. #tokens: {tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB"
LATENT = "KV Cache is allocated. #tokens: {tokens}, KV size: {whole:.2f} GB"


def start_up(found: Pool) -> tuple[str, ...]:
    """What the log will say, line by line; the last ones where the engine stops instead.

    Unit        GiB, as the log has it: SGLang prints GiB and calls them GB
    Leaves out  times, and lines that hold no figure about memory
    """
    longest, weights = found.engine.max_model_len or 0, found.ledger["weights"].derived or 0
    if found.engine.name == "sglang":
        kept = max(0, found.available) / GiB
        form = LATENT if found.model.latent else SGLANG
        lines = [form.format(tokens=found.tokens, half=kept / 2, whole=kept)]
        if found.blocks:
            return (*lines, f"max_total_num_tokens={found.tokens}")
        return ("Not enough memory. Please try to increase --mem-fraction-static.",)
    lines = [
        f"Model loading took {weights / GiB:.4f} GiB",
        f"Available KV cache memory: {found.available / GiB:.2f} GiB",
    ]
    if not found.blocks:
        return (*lines, "ValueError: No available memory for the cache blocks.")
    if not found.starts:
        return (
            *lines,
            f"ValueError: one request of {longest:,} tokens needs {found.request:,} of "
            f"{found.blocks:,} blocks; the estimated maximum model length is {found.longest:,}",
        )
    return (
        *lines,
        f"GPU KV cache size: {found.tokens:,} tokens",
        f"Maximum concurrency for {longest:,} tokens per request: {found.concurrency:.2f}x",
    )
