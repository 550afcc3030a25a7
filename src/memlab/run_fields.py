"""What each field of a run may hold by itself: its words, its names, its sizes."""

from __future__ import annotations

from . import programs
from .units import whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .run import Run

# The words that a field may hold.
KNOWN = {
    "phase": ("train", "prefill", "decode"),
    "implementation": ("transformers", "memlab"),
    "backend": ("cuda", "cpu"),
    "attention": ("sdpa", "eager", "flash", "flash_attention_2"),
    "kernel": ("auto", "flash", "efficient", "math"),
    "optimizer_impl": ("forloop", "foreach", "fused", "compiled"),
    "compile": ("inductor", "aot_eager_decomp_partition"),
    "checkpoint": ("none", "block"),
    "loss": ("plain", "cross_entropy", "chunked", "fused_head", "linear_cross_entropy", "liger"),
    "loop": programs.LOOPS,
    "texts": programs.TEXTS,
    "reference": programs.REFERENCES,
    "logits": ("all", "last"),
}
OFFLOAD = ("saved", "states", "optimizer", "gradients")
HOLDS: tuple[str, ...] = ("output", "wide_logits", "gradients", "graph", "logits", "batch")
HOLDS += ("state_dict", "model", "fp32_model")
CHUNKS = 8  # of a chunked loss, if nothing is said
MOST = 10**9  # sequences, tokens
MOST_PARTS = 4096  # micro-batches, chunks, graphs: each of them may be simulated by itself


def check(run: Run) -> None:
    """Refuse a value that its field cannot hold, whatever the others hold.

    Raises      ValueError and TypeError that name the field, its value and what would be right
    """
    for field, known in KNOWN.items():
        value = getattr(run, field)
        if value is None and getattr(type(run), field) is None:
            continue
        _one_of(field, value, known)
    for field, names in (("frozen", None), ("offload", OFFLOAD), ("holds", HOLDS)):
        _listed(run, field, names)
    for field in ("step_in_backward", "inference_mode", "clip"):
        if field == "clip" and run.clip is None:
            continue
        if not isinstance(getattr(run, field), bool):
            raise TypeError(f"{field}={getattr(run, field)!r}; True or False is needed")
    _sizes(run)
    p = run.dropout
    if p is not None and (isinstance(p, bool) or not isinstance(p, (int, float))):
        raise TypeError(f"dropout={p!r} is a {type(p).__name__}; a number is needed")
    if p is not None and not 0 <= p < 1:
        raise ValueError(f"dropout={p} is not a probability from 0 to below 1")


def _sizes(run: Run) -> None:
    sizes = [("batch", MOST), ("micro_batches", MOST_PARTS)]
    sizes += [("tokens", MOST)] * (run.tokens is not None)
    sizes += [("loss_chunks", MOST_PARTS)] * (run.loss_chunks is not None)
    sizes += [("completion", MOST)] * (run.completion is not None)
    sizes += [("eval_batch", MOST)] * (run.eval_batch is not None)
    for field, most in sizes:
        value = getattr(run, field)
        if whole(field, value) == 0:
            pair = field == "tokens" and run.phase == "train"
            raise ValueError(f"{field}=0; at least {'2 are' if pair else '1 is'} needed")
        if value > most:
            raise ValueError(f"{field}={value:,}; at most {most:,} are taken")
    if run.window is not None:
        whole("window", run.window)
    if whole("eval_logits", run.eval_logits) > MOST_PARTS:
        raise ValueError(f"eval_logits={run.eval_logits:,}; at most {MOST_PARTS:,} are taken")


def _listed(run: Run, field: str, known: tuple[str, ...] | None) -> None:
    """Names, of which there may be none; a list becomes a tuple, which can be a key."""
    value = getattr(run, field)
    if isinstance(value, str) or not isinstance(value, (tuple, list)):
        raise TypeError(f"{field}={value!r}; a tuple of names is needed")
    object.__setattr__(run, field, tuple(value))
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{field}={value!r}; a tuple of names is needed")
        if known is not None:
            _one_of(field, name, known)
    if len(value) > MOST_PARTS:
        raise ValueError(f"{field} has {len(value):,} names; at most {MOST_PARTS:,} are taken")


def _one_of(field: str, value: Any, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{field}={value!r} is not described; known: {', '.join(known)}")
