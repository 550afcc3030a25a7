"""What a state about serving asks for, in values of the core: an engine, its pool, how it packs."""

from __future__ import annotations

from ..engines.engine import Engine
from ..engines.llama_cpp import LlamaCpp
from ..engines.pool import Pool, pool
from ..engines.quantized import Quantized, published
from ..model import Model
from ..units import MiB
from .question import card_of
from .serve_command import computing, packs, quantization
from .serve_controls import LLAMA_CPP, NO_ENGINE, PUBLISHED

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .question import State


def pool_of(state: State, model: Model) -> Pool:
    """What the engine of a state makes of its card.

    Raises      ValueError as memlab.engines.pool
    """
    return pool(model, engine_of(state), on=card_of(state))


def gpus_of(state: State) -> int:
    """How many GPUs share the model: those of vLLM or SGLang."""
    return 1 if state["engine"] in (NO_ENGINE, LLAMA_CPP) else int(state["cards"])


def conversations(there: Pool) -> int:
    """How many conversations of the full length a pool holds at once, as `memlab serve` says it."""
    return there.blocks // there.request if there.sequences is None else there.sequences


def engine_of(state: State) -> Engine:
    """How the engine of a state is started."""
    loaded = state["loaded"] * MiB
    return Engine(
        name=state["engine"],
        utilization=state["share"] / 100,
        max_model_len=state["context"],
        kv_dtype=state["kv"],
        dtype=computing(state),
        quantization=quantization(state),
        tensor=state["cards"],
        weights=loaded or None,
    )


def llama_cpp_of(state: State) -> LlamaCpp:
    """How llama-server is started: a slot for each conversation."""
    kept = {"file": state["gguf"], "cache": state["gguf_kv"]}
    return LlamaCpp(context=state["context"], slots=state["users"], **kept)


def packing(state: State, model: Model) -> Quantized | None:
    """How the matrices of what is loaded are packed; None: not at all."""
    if not packs(state):
        return None
    if state["dtype"] == PUBLISHED:
        return published(model)
    return Quantized(format=str(state["dtype"]))
