"""The fields of a run, as data: what each may hold, when it counts, and what a shell calls it.

From this table come a run's own checks, the flags of every command, the schema of --json, what a
shell completes, and the table of the reference. Types and defaults stand in `Run`, whose docstring
tells each field in full; what contradicts what is in rules.py.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..units import MOST, whole
from .loops import LOOPS, REFERENCES, TEXTS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .run import Run

WORD, WORDS, COUNT, NUMBER, FLAG, VALUE = "word", "words", "count", "number", "flag", "value"
TRAIN, CALL = "train", "call"
CHUNKS = 8  # of a chunked loss, if nothing is said
MOST_PARTS = 4096  # micro-batches, chunks, graphs: each of them may be simulated by itself


@dataclass(frozen=True)
class Field:
    """One field of a run.

    kind        a word, or words, of `known`; a count or a number; a flag; a value of its own class
    what        what it is, as its flag says; `unset`: what stands for it where nothing is said
    known       the words that it may hold; of `words` empty: any
    least, most of a count
    only        train or call, where it has no meaning in the other
    between     whether it leaves what stays from step to step as it is, whatever it says: how the
                step between is cut, computed and counted
    traced      whether a trace of a step by the model's own code follows it
    flag        whether it has a flag of its own name; other values have flags that make them
    """

    name: str
    kind: str
    what: str = ""
    unset: str = ""
    known: tuple[str, ...] = ()
    least: int = 1
    most: int | None = None
    only: str = ""
    between: bool = False
    traced: bool = False
    flag: bool = True


_LOSSES = ("plain", "cross_entropy", "chunked", "fused_head", "linear_cross_entropy", "liger")
_HOLDS: tuple[str, ...] = ("output", "wide_logits", "gradients", "graph", "logits", "batch")
_HOLDS += ("state_dict", "model", "fp32_model")
# One row a field, in the order of Run.
# fmt: off
TABLE = (
    Field("phase", WORD, "a training step, the reading of a prompt, or one more token", "train",
          known=("train", "prefill", "decode")),
    Field("batch", COUNT, "sequences in one micro-batch", "1", most=MOST, between=True,
          traced=True),
    Field("tokens", COUNT, "in each sequence; without it, no step", most=MOST, between=True,
          traced=True),
    Field("micro_batches", COUNT, "before one step of the optimizer", "1", most=MOST_PARTS,
          only=TRAIN),
    Field("implementation", WORD, "whose code runs the model", "transformers",
          known=("transformers", "memlab"), traced=True),
    Field("backend", WORD, "whose kernels run it", "cuda", known=("cuda", "cpu"), between=True,
          traced=True),
    Field("attention", WORD, "the implementation of attention",
          "what the config says, else sdpa", known=("sdpa", "eager", "flash", "flash_attention_2"),
          between=True, traced=True),
    Field("kernel", WORD, "of SDPA on CUDA", "torch's choice",
          known=("auto", "flash", "efficient", "math"), between=True, traced=True),
    Field("dropout", NUMBER, "the probability of every dropout",
          "what the config or its class says", only=TRAIN, traced=True),
    Field("window", COUNT, "positions that a token sees in a sliding window, 0 for none",
          "the config's", least=0, most=MOST, traced=True),
    Field("compile", WORD, "torch.compile's backend, for `memlab trace` (without one: inductor)",
          known=("inductor", "aot_eager_decomp_partition"), only=TRAIN, between=True, traced=True),
    Field("checkpoint", WORD, "compute each layer's activations again in backward", "as the loop",
          known=("none", "block"), only=TRAIN, between=True, traced=True),
    Field("loop", WORD, "whose program runs the steps, and what it holds beside them", "plain",
          known=tuple(LOOPS), only=TRAIN),
    Field("texts", WORD, "rows that are full, padded, or several texts packed into one", "full",
          known=TEXTS, only=TRAIN, between=True, traced=True),
    Field("eval_batch", COUNT, "sequences of a batch in an evaluation between steps", "none",
          most=MOST, only=TRAIN),
    Field("eval_logits", COUNT, "batches of it whose logits wait on the device", "0", least=0,
          most=MOST_PARTS, only=TRAIN),
    Field("completion", COUNT, "tokens of each sequence that TRL's loops learn",
          "all but the first", most=MOST, only=TRAIN),
    Field("reference", WORD, "of dpo and grpo: a second model, or its numbers alone",
          "as the trainer", known=REFERENCES, only=TRAIN),
    Field("teacher", VALUE, "of distillation and gkd: another model", "of the student's shape",
          only=TRAIN, flag=False),
    Field("loss", WORD, "all at once, in chunks of rows, or made by TRL, torch or Liger", "plain",
          known=_LOSSES, only=TRAIN, between=True, traced=True),
    Field("loss_chunks", COUNT, "chunks of rows in a chunked loss", f"{CHUNKS}", most=MOST_PARTS,
          only=TRAIN, between=True, traced=True),
    Field("optimizer_impl", WORD, "the optimizer's loop",
          "as the program; torch's: foreach on cuda, forloop on cpu",
          known=("forloop", "foreach", "fused", "compiled"), only=TRAIN, between=True, traced=True),
    Field("step_in_backward", FLAG, "update each weight as soon as its gradient is complete",
          only=TRAIN),
    Field("clip", FLAG, "clip the gradients' norm before the optimizer's step", "as the loop does",
          only=TRAIN),
    Field("lora", VALUE, "LoRA beside a frozen model", "none", only=TRAIN, traced=True, flag=False),
    Field("adapter", VALUE, "(IA)³, VeRA or a prompt beside a frozen model", "none", only=TRAIN,
          traced=True, flag=False),
    Field("frozen", WORDS, "components whose weights are not trained: embedding, attention, ...",
          only=TRAIN),
    Field("offload", WORDS, "what waits on a host",
          known=("saved", "states", "optimizer", "gradients"), only=TRAIN),
    Field("holds", WORDS, "what the loop keeps beside the step", known=_HOLDS, only=TRAIN),
    Field("logits", WORD, "prefill: of all tokens, or of the last one as generate() asks", "all",
          known=("all", "last"), only=CALL),
    Field("inference_mode", FLAG, "under torch.inference_mode() instead of torch.no_grad()",
          only=CALL),
    Field("devices", VALUE, "how many there are, and what they divide", "one", flag=False),
)
# fmt: on
KNOWN = {field.name: field.known for field in TABLE if field.kind == WORD}


def named(**asked: Any) -> tuple[str, ...]:
    """The names of the fields that say this of themselves: named(only="train", between=True)."""
    return tuple(
        field.name
        for field in TABLE
        if all(getattr(field, which) == value for which, value in asked.items())
    )


OF_TRAINING = named(only=TRAIN)
OF_CALLS = named(only=CALL)
BETWEEN = named(between=True)


def check(run: Run) -> None:
    """Refuse a value that its field cannot hold, whatever the others hold.

    Raises      ValueError and TypeError that name the field, its value and what would be right
    """
    for kind, checked in _CHECKS.items():
        for field in TABLE:
            value = getattr(run, field.name)
            nothing = value is None and getattr(type(run), field.name) is None
            if field.kind == kind and not nothing:
                checked(run, field, value)


def _word(run: Run, field: Field, value: Any) -> None:
    if not isinstance(value, str) or value not in field.known:
        known = ", ".join(field.known)
        raise ValueError(f"{field.name}={value!r} is not described; known: {known}")


def _words(run: Run, field: Field, value: Any) -> None:
    """Names, of which there may be none; a list becomes a tuple, which can be a key."""
    if isinstance(value, str) or not isinstance(value, (tuple, list)):
        raise TypeError(f"{field.name}={value!r}; a tuple of names is needed")
    object.__setattr__(run, field.name, tuple(value))
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{field.name}={value!r}; a tuple of names is needed")
        if field.known:
            _word(run, field, name)
    if len(value) > MOST_PARTS:
        raise ValueError(f"{field.name} has {len(value):,} names; at most {MOST_PARTS:,} are taken")


def _flag(run: Run, field: Field, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{field.name}={value!r}; True or False is needed")


def _count(run: Run, field: Field, value: Any) -> None:
    if whole(field.name, value) < field.least:
        pair = field.name == "tokens" and run.phase == "train"
        raise ValueError(f"{field.name}=0; at least {'2 are' if pair else '1 is'} needed")
    if field.most is not None and value > field.most:
        raise ValueError(f"{field.name}={value:,}; at most {field.most:,} are taken")


def _probability(run: Run, field: Field, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{field.name}={value!r} is a {type(value).__name__}; a number is needed")
    if not 0 <= value < 1:
        raise ValueError(f"{field.name}={value} is not a probability from 0 to below 1")


_CHECKS = {WORD: _word, WORDS: _words, FLAG: _flag, COUNT: _count, NUMBER: _probability}
