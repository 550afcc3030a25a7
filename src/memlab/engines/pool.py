"""The pool of an engine: its share of a card, by what takes it, and the blocks that are left."""

from __future__ import annotations

from ..base.frozen import dataclass, replace
from ..base.message import Listed, Message
from ..devices import Device, room
from ..families import record_of
from ..ledger import Ledger
from ..model import Model
from ..step.windows import windows
from ..terms import engine_pool as terms
from ..terms.context import CONTEXT
from ..terms.kv_cache import kv_cache, mla_cache
from ..units import GiB, MiB
from .engine import Engine
from .kept import kept_weights, rotary_table, shares
from .quantized import kernel_on

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# vLLM, config/cache.py: gpu_memory_utilization where it is not said, since 0.21, and before that
# (github.com/vllm-project/vllm/pull/38284).
USUAL, EARLIER = 0.92, 0.9
BLOCK, LATENT_BLOCK = 16, 64  # tokens; vLLM's latent attention wants the larger on Hopper
# vLLM, engine/arg_utils.py, get_batch_defaults of its server: a card of 70 GiB that is no A100.
LARGE_CARD, LARGE, SMALL = 70 * GiB, (8192, 1024), (2048, 256)
# PyTorch's cuBLAS workspace, which the first product of matrices takes
# (memlab.recording.subprocess_cases).
WORKSPACE, WIDE_WORKSPACE, WIDE = 8320 * 1024, 32 * MiB, ("H100", "H200", "B200", "RTX 50")
# "non-torch memory" of a rank, hundredths of GiB, as start-up logs posted it: beyond PyTorch's
# allocator, and taken after the context. There is no formula for it; give what your own log says.
NON_TORCH = (
    (1, "RTX 3090", 35, "https://github.com/vllm-project/vllm/issues/10517"),
    (1, "H100", 16, "https://github.com/kubernetes-sigs/gateway-api-inference-extension/pull/550"),
    (2, "L40S", 30, "https://github.com/vllm-project/vllm/issues/15815"),
    (4, "A100 40GB", 43, "https://github.com/vllm-project/vllm/issues/16570"),
)


@dataclass(frozen=True)
class Pool:
    """The answer: bytes on one rank, and what fits into them.

    ledger      the engine's share of the card, by what takes it; kv_cache is what is left
    available   bytes left for the cache; below 0 where weights and first step exceed the share
    blocks      of `block` tokens, over all groups; sglang: tokens
    block_bytes what one of them holds: those layers that share a block table
    groups      block tables that a model with windows has
    request     blocks that one request of max_model_len may need
    slots       tokens that each group's blocks have room for, if all get alike
    longest     tokens of the longest request that fits
    sequences   of max_model_len tokens at once, with the prefix shared; None: windows share none
    """

    engine: Engine
    model: Model
    device: str
    ledger: Ledger
    available: int
    block: int
    blocks: int
    block_bytes: int
    groups: int
    request: int
    slots: int
    longest: int
    sequences: int | None

    @property
    def concurrency(self) -> float:
        """Requests of max_model_len tokens that fit at once, as the log says it."""
        return self.blocks / self.request

    @property
    def tokens(self) -> int:
        """What the log calls the size of the cache; vLLM before 0.21 printed `slots`."""
        if self.engine.name == "sglang":
            return self.slots
        return int(self.concurrency * (self.engine.max_model_len or 0))

    @property
    def starts(self) -> bool:
        """Whether the engine starts: one request of max_model_len must fit."""
        return self.blocks >= self.request


def pool(model: Model, engine: Engine, *, on: str | int | Device) -> Pool:
    """What an engine makes of a card.

    Formula     available = share · total - weights - activations - non-torch memory - CUDA graphs
                sglang: (total - context) · share - weights, in tokens
    Unit        bytes of one rank
    Leaves out  what a kernel pads of packed weights, adapters, images, speculative drafts,
                pipelines
    Raises      ValueError for a model or settings that are not described, by name
    """
    if model.value_embeddings:
        pattern = "{engine} is not supported for {family}"
        raise ValueError(Message(pattern, engine=engine.name, family=model.family))
    total, device = room(on)
    if engine.max_model_len is None:
        engine = replace(engine, max_model_len=model.positions)
    longest = engine.max_model_len or 0
    if longest > model.positions:
        raise ValueError(
            f"max_model_len={longest} is above the model's {model.positions} positions"
        )
    if engine.name == "sglang":
        return _sglang(model, engine, total, device)
    large = total >= LARGE_CARD and "A100" not in device
    batched, seqs = LARGE if large else SMALL
    engine = replace(engine, batched=engine.batched or batched, seqs=engine.seqs or seqs)
    share = terms.budget(
        total, utilization=USUAL if engine.utilization is None else engine.utilization
    )
    figures = _taken(model, engine, device)
    available = share - sum(figures.values())
    near, full, windowed = _kinds(model)
    size, tables = terms.groups(full, windowed)
    block = engine.block_size or (LATENT_BLOCK if model.latent else BLOCK)
    page = _page(model, engine, block)
    count = terms.blocks(max(0, available), page=page, layers=size)

    def needs(tokens: int) -> int:
        """Blocks of one request, all its groups together."""
        kinds = terms.groups(full, 0)[1:] if not windowed else (-(-full // size) if full else 0,)
        whole_ones = kinds[0] * terms.request_blocks(tokens, block=block)
        chunk = engine.batched or 0
        near_ones = terms.request_blocks(tokens, block=block, window=near, chunk=chunk)
        return whole_ones + (-(-windowed // size)) * near_ones if windowed else whole_ones

    sequences = None
    if not windowed:
        sequences = terms.sequences(count, tokens=longest, prefix=engine.prefix, block=block)
    elif engine.prefix:
        raise ValueError(f"prefix={engine.prefix} is described without windows; {model.name} has")
    title = _title(model, engine, device)
    ledger = Ledger.of("derived", figures | {"kv_cache": max(0, available)}, title=title)
    reach = _longest(needs, count, longest)
    answer = (tables, needs(longest), count // tables * block, reach, sequences)
    return Pool(engine, model, device, ledger, available, block, count, page * size, *answer)


def _sglang(model: Model, engine: Engine, total: int, device: str) -> Pool:
    if _kinds(model)[2]:
        pattern = "SGLang is not supported for {family}, which has sliding windows; vLLM is"
        raise ValueError(Message(pattern, family=model.family))
    before = total - CONTEXT  # what it finds free before it loads anything
    share = terms.budget(before, utilization=engine.utilization or 0)
    weights = _weights(model, engine, device)
    figures = {"weights": weights, "other": engine.non_torch or 0}
    available = share - sum(figures.values())
    cell = _page(model, engine, 1)
    count = terms.blocks(max(0, available), page=cell, layers=model.layers)
    longest = engine.max_model_len or 0
    sequences = terms.sequences(count + 1, tokens=longest, prefix=engine.prefix, block=1)
    title = _title(model, engine, device)
    ledger = Ledger.of("derived", figures | {"kv_cache": max(0, available)}, title=title)
    answer = (1, longest, count, min(count, longest), sequences)
    held = cell * model.layers
    return Pool(engine, model, device, ledger, available, 1, count, held, *answer)


def _title(model: Model, engine: Engine, device: str) -> str:
    name = "vllm ≥ 0.21" if engine.name == "vllm" else engine.name
    said = Message("{engine} on {card}", engine=name, card=device)
    if engine.tensor > 1:
        one = Message("one of {ranks} ranks", ranks=engine.tensor)
        said = Message("{what}, {more}", what=said, more=one)
    if (how := engine.loads(model)) is not None and engine.weights is None:
        said = Message("{what}, {more}", what=said, more=how.told())
    return Listed(" · ", [model.name, said])


def _weights(model: Model, engine: Engine, device: str) -> int:
    if engine.weights is not None:
        return engine.weights
    how = engine.loads(model)
    kept = kept_weights(model, engine.tensor, engine.dtype, how, kernel_on(device))
    return kept + rotary_table(model, engine.dtype)


def _taken(model: Model, engine: Engine, device: str) -> dict[str, int]:
    """What the share goes to before the cache; the first step is the larger of its two moments."""
    tokens, rows = engine.batched or 0, min(engine.seqs or 0, engine.batched or 0)
    width = max(shares(model, engine.tensor))
    sizes: dict[str, Any] = {"d_model": model.d_model, "format": engine.dtype}
    forward = terms.forward_peak(tokens, wide=width, **sizes)
    hidden = terms.forward_peak(tokens + rows, wide=0, **sizes) // 3
    asked: dict[str, Any] = {
        "vocab": model.vocab,
        "sort": engine.sampler == "sort",
        "format": engine.dtype,
    }
    sampled = hidden + terms.sampler_peak(rows, **asked)
    wide_card = any([card in device for card in WIDE])
    highest = max(forward, sampled) + (WIDE_WORKSPACE if wide_card else WORKSPACE)
    ranks = [each[2] for each in NON_TORCH if each[0] == 1 or engine.tensor > 1]
    told = engine.non_torch
    figures = {
        "weights": _weights(model, engine, device),
        "activations": highest if engine.activations is None else engine.activations,
        "other": max(ranks) * GiB // 100 if told is None else told,
    }
    return figures | ({"CUDA graphs": engine.cuda_graphs} if engine.cuda_graphs else {})


def _page(model: Model, engine: Engine, block: int) -> int:
    """Bytes of one layer's part of a block; a latent is kept whole by every rank."""
    format = engine.dtype if engine.kv_dtype == "auto" else engine.kv_dtype
    format = {"fp8": "fp8_e4m3"}.get(format, format)
    sizes: dict[str, Any] = {"batch": 1, "tokens": block}
    if format.endswith("_per_token_head"):
        if model.latent:
            pattern = "kv_dtype={format} is per head; a latent has none"
            raise ValueError(Message(pattern, format=repr(engine.kv_dtype)))
        name = "int8" if format.startswith("int8") else "fp8_e4m3"
        format = f"{name}/{model.head_dim}:fp32"
    if model.latent:
        sizes |= {"latent": model.latent.kv_rank, "rope": model.latent.rope}
        return mla_cache(1, **sizes, format=format)
    heads = terms.rank_heads(model.kv_heads, ranks=engine.tensor)
    return kv_cache(1, kv_heads=heads, head_dim=model.head_dim, **sizes, format=format)


def _kinds(model: Model) -> tuple[int | None, int, int]:
    """A model's window, and how many layers keep all tokens and how many that window alone."""
    if record_of(model.family).windows == "chunks":
        raise ValueError("an engine is not supported for llama4_text, which has chunked attention")
    near, sliding = windows(model)
    if near is None:
        return None, model.layers, 0
    windowed = model.layers if sliding is None else sum(sliding)
    return near, model.layers - windowed, windowed


def _longest(needs: Callable[[int], int], count: int, most: int) -> int:
    """The longest request that `count` blocks hold: needs(tokens) grows with the tokens."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if needs(middle) <= count:
            low = middle
        else:
            high = middle - 1
    return low
