"""Engine pool: the blocks of KV cache that a serving engine lays out once, when it starts.

K key/value heads · R ranks of tensor parallelism · L layers · T tokens · W window · C chunk ·
S sequences · b bytes

Sources are vLLM's own files at the commits that SOURCES names; its log prints the results.
"""

from __future__ import annotations

from ..base.message import Message
from ..formats import storage
from ..units import at_least_one, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format

SOURCES = (
    "https://github.com/vllm-project/vllm, vllm/v1/worker/gpu_worker.py at 35d5cda",
    "https://github.com/vllm-project/vllm, vllm/v1/core/kv_cache_utils.py at 001cabc",
    "https://github.com/vllm-project/vllm, vllm/v1/kv_cache_interface.py at 001cabc",
    "https://github.com/sgl-project/sglang, model_runner.py, profile_max_num_token",
)
SORTED = 128  # rows from which torch.sort has a segment for each; below, it sorts all in one


def budget(total: int, *, utilization: float) -> int:
    """Bytes of a card that an engine takes for all it does, its pool of blocks included.

    Formula     floor(utilization · total): vLLM's gpu_memory_utilization
    Shapes      total: what torch.cuda.mem_get_info() says of the card, not what is free of it
    Unit        bytes, a whole number
    Source      vLLM, gpu_worker.py
    Leaves out  the CUDA context, which lies in the rest
    Raises      TypeError or ValueError for a share that is not above 0 and at most 1
    """
    if isinstance(utilization, bool) or not isinstance(utilization, (int, float)):
        kind = type(utilization).__name__
        raise TypeError(f"utilization={utilization!r} is a {kind}; a share such as 0.9 is needed")
    if not 0 < utilization <= 1:
        raise ValueError(f"utilization={utilization} is not above 0 and at most 1")
    return int(whole("total", total) * utilization)


def rank_heads(kv_heads: int, *, ranks: int) -> int:
    """Key/value heads that each rank keeps: where there are fewer than ranks, one is kept twice.

    Formula     K / R, and at least 1
    Unit        heads, a whole number
    Source      vLLM, llama.py, LlamaAttention
    Leaves out  latent attention, whose one latent every rank keeps whole
    Raises      ValueError where neither number is a multiple of the other
    """
    heads, parts = at_least_one("kv_heads", kv_heads), at_least_one("ranks", ranks)
    if max(heads, parts) % min(heads, parts):
        pattern = "R={ranks} ranks neither divide K={heads} heads nor are a multiple"
        raise ValueError(Message(pattern, ranks=ranks, heads=kv_heads))
    return max(1, heads // parts)


def forward_peak(tokens: int, *, d_model: int, wide: int, format: str | Format = "bf16") -> int:
    """Bytes beside the weights at the highest moment of the engine's first, empty step.

    Formula     T · (wide + 3 · D) · b
    Shapes      wide: what one layer has widest on a rank; gated: 3 · F / R (gate and up in one
                tensor, their product), attention: (2 · N + 2 · K) · H / R; experts: k · (max(2 · M
                / R, D) + M / R). 3 · D: residual, a layer's input, that of the layer
    Unit        bytes, a whole number
    Source      vLLM, llama.py, run eagerly; fused_moe.py
    Leaves out  torch.compile, which frees up to 2 · D of them; the workspace of cuBLAS
    Raises      as `kv_cache`
    """
    width = whole("wide", wide) + 3 * whole("d_model", d_model)
    return storage(whole("tokens", tokens) * width, format)


def sampler_peak(
    rows: int, *, vocab: int, sort: bool = False, format: str | Format = "bf16"
) -> int:
    """Bytes at which the first, empty step samples a token for S sequences at once.

    Formula     S · V · (b + 12): logits, in fp32 too, probabilities, noise
                sorted by torch: S · V · (b + 36), and b + 48 for S < 128
    Shapes      torch.sort: values in fp32 and positions in int64, the positions that it begins
                with, and a second buffer of either
    Unit        bytes, a whole number
    Source      vLLM, topk_topp_sampler.py; PyTorch, aten/src/ATen/native/cuda/SortStable.cu
    Leaves out  the hidden states of the step, which are still there
    Raises      as `kv_cache`
    """
    count = whole("rows", rows) * whole("vocab", vocab)
    more = 12 if not sort else 36 if rows >= SORTED else 48
    return storage(count, format) + more * count


def blocks(memory: int, *, page: int, layers: int) -> int:
    """Blocks that the bytes left for the cache hold; the log calls them GPU blocks.

    Formula     floor(memory / page / L)
    Shapes      page: one layer's part of a block, 2 · block · K · H · b; L: of one group
    Unit        blocks, a whole number; one is set aside as a null block
    Source      vLLM, kv_cache_utils.py, get_num_blocks
    Raises      ValueError for an empty page or no layer
    """
    return whole("memory", memory) // at_least_one("page", page) // at_least_one("layers", layers)


def groups(full: int, windowed: int) -> tuple[int, int]:
    """How many layers share one block table, and how many such groups a model has.

    Formula     size = min(full, windowed), or their max where that is below 1.5 · min;
                ceil(full / size) + ceil(windowed / size) groups
    Shapes      full, windowed: layers that keep all tokens, and those with a window
    Unit        layers of a group, groups
    Source      vLLM, kv_cache_utils.py, _get_kv_cache_groups_uniform_page_size
    Raises      ValueError for a model without layers
    """
    counts = [each for each in (whole("full", full), whole("windowed", windowed)) if each]
    if not counts:
        raise ValueError("full=0 and windowed=0; a model has at least one layer")
    few, most = min(counts), max(counts)
    size = most if 2 * most < 3 * few else few
    return size, sum([-(-each // size) for each in counts])


def request_blocks(
    tokens: int, *, block: int = 16, window: int | None = None, chunk: int = 0
) -> int:
    """Blocks of one group that one sequence of T tokens may need at most.

    Formula     ceil(T / block); with a window: ceil(min(W - 1 + C, T) / block) + 1
    Shapes      chunk: the tokens that one step reads at most, max_num_batched_tokens
    Unit        blocks, a whole number
    Source      vLLM, kv_cache_interface.py, max_memory_usage_bytes
    Raises      ValueError for a block or a window of 0 tokens
    """
    size, most = at_least_one("block", block), whole("tokens", tokens)
    if window is None:
        return -(-most // size)
    kept = min(at_least_one("window", window) - 1 + whole("chunk", chunk), most)
    return -(-kept // size) + 1


def sequences(count: int, *, tokens: int, prefix: int = 0, block: int = 16) -> int:
    """Sequences of T tokens that the pool holds at once when they begin with the same prefix.

    Formula     (count - 1 - p) / (ceil(T / block) - p), p = floor(prefix / block)
    Shapes      count: the pool's blocks, one of them the null block; only full blocks are shared
    Unit        sequences, a whole number
    Source      vLLM, block_pool.py and kv_cache_manager.py
    Raises      ValueError for a prefix that leaves no token for the sequence itself
    """
    if whole("prefix", prefix) >= at_least_one("tokens", tokens):
        raise ValueError(f"prefix={prefix} of tokens={tokens}; each needs one of its own")
    shared = prefix // at_least_one("block", block)
    own = request_blocks(tokens, block=block) - shared
    return max(0, whole("count", count) - 1 - shared) // own
