"""What can make a run need more than was predicted: each cause as a switch that can be turned.

No cause has bytes of its own. A `Case` is a model, a recipe and the arguments of a step; a cause
turns one of them over, and what it costs is the peak after, less the peak before.
"""

from __future__ import annotations

from .estimate import estimate, tensor_bytes
from .formats import bytes_per_value, storage
from .frozen import dataclass, replace
from .model import Model
from .moments import hills
from .recipe import Recipe
from .step import described, simulate
from .terms import loading, logits

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# How often a cause is the one, among runs that need too much: our judgement, from the issues of
# PyTorch, transformers and vLLM and from the field notes of this book. No statistics exist.
OFTEN, SOMETIMES, SELDOM = 0.3, 0.1, 0.03
GRADES = {OFTEN: "often", SOMETIMES: "sometimes", SELDOM: "seldom"}


@dataclass(frozen=True)
class Case:
    """A run to derive the peak of.

    setting     arguments of memlab.step.simulate: batch, tokens, attention …; without tokens the
                resident bytes are the peak
    stored      format of the checkpoint that it is loaded from
    more        bytes that are alive all the time beside what the step itself holds
    in_loss     bytes more while the loss is computed, forward and backward
    waiting     gradients of the last step are still there in the next one
    loads       the step's peak, or that of loading the checkpoint, whichever is higher
    reserves    what the allocator reserves, not what tensors hold
    derived     steps derived so far, shared by all cases that come from one another
    """

    model: Model
    recipe: Recipe
    setting: dict[str, Any]
    derived: dict[Any, Any]
    stored: str = "bf16"
    more: int = 0
    in_loss: int = 0
    waiting: bool = False
    loads: bool = False
    reserves: bool = False

    def contents(self) -> dict[str, int]:
        """Bytes by term at the peak; they add to `peak()`.

        Source      memlab.estimate and memlab.step.simulate. A recipe whose step is not described
                    has its own resident bytes, and during a step the temporaries of the nearest
                    one that is: fp32, bf16, or autocast
        Raises      ValueError for a combination that is not described
        """
        found = self._hills()
        if self.loads:
            found["loading"] = {"weights": self._loading()}
        for name, held in found.items():
            if self.more:
                held["other"] = held.get("other", 0) + self.more
            if self.in_loss and name == "loss":
                held["logits"] = held.get("logits", 0) + self.in_loss
        top = max(found.values(), key=lambda held: sum(held.values()))
        if self.reserves:
            top["allocator"] = self._reserved()
        return {term: size for term, size in top.items() if size}

    def peak(self) -> int:
        """The most bytes at once."""
        return sum(self.contents().values())

    def with_setting(self, **changes: Any) -> Case:
        return replace(self, setting=self.setting | changes)

    def resident(self) -> dict[str, int]:
        """What stays from step to step, by term, gradients included."""
        key = ("resident", self.model, self.recipe)
        if key not in self.derived:
            self.derived[key] = _figures(estimate(self.model, self.recipe))
        return dict(self.derived[key])

    def step(self) -> Any:
        """The simulated step, of the nearest recipe that is described."""
        return self._once("step", lambda: simulate(self.model, self._nearest(), **self.setting))

    def _once(self, what: str, derive: Callable[[], Any]) -> Any:
        said = tuple(sorted((name, repr(value)) for name, value in self.setting.items()))
        key = (what, self.model, self._nearest(), said)
        if key not in self.derived:
            self.derived[key] = derive()
        return self.derived[key]

    def _hills(self) -> dict[str, dict[str, int]]:
        if "tokens" not in self.setting:
            return {"resident": self.resident()}
        step = self.step()
        tops = self._once("hills", lambda: hills(step))
        every = {name: _figures(ledger) for name, ledger in tops.items()}
        if self._nearest() != self.recipe:
            own = self.resident()
            whole = step.rows["gradients"]
            for held in every.values():
                share = held.pop("gradients", 0)
                held |= {k: v for k, v in own.items() if k not in ("gradients", "accumulator")}
                held["gradients"] = own.get("gradients", 0) * share // whole if whole else 0
                held["accumulator"] = own.get("accumulator", 0)
        if self.waiting:
            most = max(held.get("gradients", 0) for held in every.values())
            for held in every.values():
                held["gradients"] = most
        return every

    def _nearest(self) -> Recipe:
        """The recipe itself, or the nearest one whose step is described."""
        try:
            described.dtype_of(self.recipe)
            return self.recipe
        except ValueError:
            if self.setting.get("lora") is not None or self.recipe.sharding is not None:
                raise
        if self.recipe.autocast:
            return Recipe.named("autocast")
        return Recipe.named("bf16" if bytes_per_value(self.recipe.weights) <= 2 else "fp32")

    def _loading(self) -> int:
        tensors = [t for t in self.model.tensors() for _ in range(t.copies)]
        old = [storage(_count(tensor.shape), self.stored) for tensor in tensors]
        new = [tensor_bytes(tensor, self.recipe)["weights"] for tensor in tensors]
        return loading.peak(loading.moments(old, new, "copy")).host

    def _reserved(self) -> int:
        def replayed() -> int:
            step = simulate(self.model, self._nearest(), **self.setting, every_layer=True)
            done = step.replay()
            return done.peak_reserved - done.peak_requested

        return self._once("reserved", replayed)


@dataclass(frozen=True)
class Cause:
    """Something that a program does, and nobody put into the prediction.

    prior       OFTEN, SOMETIMES or SELDOM
    group       causes of one group exclude each other: a tensor has one format
    turn        the case with this cause in it; None where it is so already or cannot be
    look        the experiment that confirms it or rules it out
    level       the narrowest count that shows it: "tensors", "reserved" or "device"
    counted     it comes in pieces, and `turn` adds one of them
    """

    name: str
    prior: float
    group: str
    turn: Callable[[Case], Case | None]
    look: str
    level: str = "tensors"
    counted: bool = False


def _figures(ledger: Any) -> dict[str, int]:
    return {row.term: row.derived or 0 for row in ledger.rows}


def _fp32(case: Case) -> Case | None:
    told = (case.recipe.weights, case.recipe.gradients, case.recipe.updated)
    if set(told) == {"fp32"}:
        return None
    return replace(case, recipe=replace(Recipe.named("fp32"), accumulate=case.recipe.accumulate))


def _states(case: Case) -> Case | None:
    recipe = case.recipe
    if recipe.optimizer == "adamw" and set(recipe.states or [recipe.updated]) == {"fp32"}:
        return None
    name = f"{recipe.name}, AdamW in fp32"
    return replace(
        case, recipe=replace(recipe, name=name, optimizer="adamw", states=("fp32", "fp32"))
    )


def _master(case: Case) -> Case | None:
    if case.recipe.master == "fp32" or case.recipe.weights == "fp32":
        return None
    return replace(case, recipe=replace(case.recipe, name="fp32 master", master="fp32"))


def _gradients(case: Case) -> Case | None:
    if case.recipe.gradients in (None, "fp32") or case.setting.get("lora") is not None:
        return None
    return replace(case, recipe=replace(case.recipe, name="fp32 gradients", gradients="fp32"))


def _autocast(case: Case) -> Case | None:
    return replace(case, recipe=Recipe.named("fp32")) if case.recipe.autocast else None


def _set(name: str, value: Any, *usual: Any) -> Callable[[Case], Case | None]:
    """A switch of the step: turned to `value` where it stands on another one."""

    def turn(case: Case) -> Case | None:
        now = case.setting.get(name, usual[0] if usual else value)
        if "tokens" not in case.setting or now == value:
            return None
        return case.with_setting(**{name: value})

    return turn


def _together(case: Case) -> Case | None:
    parts = case.setting.get("micro_batches") or case.recipe.accumulate
    if "tokens" not in case.setting or parts == 1:
        return None
    whole = case.with_setting(micro_batches=1, batch=case.setting["batch"] * parts)
    return replace(whole, recipe=replace(case.recipe, name=case.recipe.name, accumulate=1))


def _longer(case: Case) -> Case | None:
    tokens = case.setting.get("tokens")
    if tokens is None or 2 * tokens > case.model.positions:
        return None
    return case.with_setting(tokens=2 * tokens)


def _graph(case: Case) -> Case | None:
    """One more forward pass whose saved tensors nobody frees."""
    if "tokens" not in case.setting:
        return None
    return replace(case, more=case.more + graph(case))


def graph(case: Case) -> int:
    """Bytes that one forward pass leaves behind as long as somebody holds its loss.

    Formula     what is held after the forward pass, less what is held between two steps; and the
                ids, which a graph keeps and the next step has its own of
    Unit        bytes
    """
    step = case.step()
    return step.held["after_forward"] - step.held["between_steps"] + _ids(step)


def _ids(step: Any) -> int:
    return step.held_contents["between_steps"].get("inputs", 0)


def _output(case: Case) -> Case | None:
    if "tokens" not in case.setting or case.setting.get("loss", "plain") != "plain":
        return None
    rows = case.setting["batch"] * case.setting["tokens"]
    kind = case._nearest()
    told = (rows, case.model.vocab, kind.autocast or kind.weights)
    held, gone = (logits.peak(*told, kept=kept) for kept in (True, False))
    return replace(case, in_loss=case.in_loss + held - gone)


def _upcast(case: Case) -> Case | None:
    if case.setting.get("implementation") != "memlab" or _output(case) is None:
        return None  # transformers casts by itself, and the step has it
    kind = case._nearest()
    if kind.autocast or kind.weights == "fp32":
        return None
    rows = case.setting["batch"] * case.setting["tokens"]
    wide, narrow = (
        logits.peak(rows, case.model.vocab, kind.weights, upcast=cast) for cast in (True, False)
    )
    return replace(case, in_loss=case.in_loss + wide - narrow)


def _copy(case: Case) -> Case | None:
    return replace(case, more=case.more + storage(case.model.parameter_count, case.stored))


def _loads(case: Case) -> Case | None:
    return replace(case, loads=True)


def _waits(case: Case) -> Case | None:
    return replace(case, waiting=True) if "tokens" in case.setting else None


def _reserves(case: Case) -> Case | None:
    return replace(case, reserves=True) if "tokens" in case.setting else None


def _context(case: Case) -> Case | None:
    from .contexts import READINGS

    return replace(case, more=case.more + READINGS[0].context)


DTYPES = "print({p.dtype for p in model.parameters()})"
STATES = "print({v.dtype for s in optimizer.state.values() for v in s.values()})"
LINES = "with memlab.explain() as live: two or three steps; print(live)"
EMPTY = 'memlab watch -- python -c "import torch; torch.ones(1)"'
CAUSES = (
    Cause("everything in fp32", OFTEN, "formats", _fp32, DTYPES),
    Cause("AdamW's states in fp32", OFTEN, "states", _states, STATES),
    Cause("an fp32 master copy, updated in fp32", SOMETIMES, "formats", _master, LINES),
    Cause(
        "gradients in fp32",
        SOMETIMES,
        "gradients",
        _gradients,
        "print({p.grad.dtype for p in model.parameters()}) after backward",
    ),
    Cause("no autocast", SOMETIMES, "formats", _autocast, "print(logits.dtype) after forward"),
    Cause(
        "no checkpointing",
        OFTEN,
        "checkpoint",
        _set("checkpoint", "none", "none"),
        "print(model.is_gradient_checkpointing), model.training, and look at the command's flags",
    ),
    Cause(
        "eager attention",
        OFTEN,
        "attention",
        _set("attention", "eager", "sdpa"),
        "print(model.config._attn_implementation); or halve T: does the gap fall to a quarter?",
    ),
    Cause(
        "the loss not in chunks",
        SOMETIMES,
        "loss",
        _set("loss", "plain", "plain"),
        "halve B: does the gap halve? look for [B, T, V] among the live tensors",
    ),
    Cause(
        "the logits cast to fp32",
        SOMETIMES,
        "loss",
        _upcast,
        "look for .float() before the loss; print(logits.dtype)",
    ),
    Cause(
        "the logits held during backward",
        SOMETIMES,
        "output",
        _output,
        "del the model's output before backward: does the peak fall?",
    ),
    Cause(
        "AdamW's foreach temporaries",
        SOMETIMES,
        "foreach",
        _set("optimizer_impl", "foreach", "forloop"),
        "AdamW(..., foreach=False): does the peak fall?",
    ),
    Cause(
        "the gradients of the last step still there",
        SOMETIMES,
        "gradients kept",
        _waits,
        "call zero_grad(set_to_none=True) before the forward pass",
    ),
    Cause(
        "losses kept with their graphs",
        OFTEN,
        "graphs",
        _graph,
        "does memory grow with every step? loss.item(), or torch.no_grad()",
        counted=True,
    ),
    Cause(
        "micro-batches taken at once",
        SOMETIMES,
        "batch",
        _together,
        "print(ids.shape) in the forward pass",
    ),
    Cause(
        "no adapters: all weights trained",
        SOMETIMES,
        "lora",
        _set("lora", None, None),
        "print(sum(p.numel() for p in model.parameters() if p.requires_grad))",
    ),
    Cause("nothing offloaded", SOMETIMES, "offload", _set("offload", (), ()), LINES),
    Cause("sequences of twice the length", SELDOM, "batch", _longer, "print(ids.shape)"),
    Cause(
        "old and new copies while loading",
        SOMETIMES,
        "loading",
        _loads,
        "read max_memory_allocated before the first step",
    ),
    Cause(
        "the checkpoint's state dict kept",
        SOMETIMES,
        "copy",
        _copy,
        "del the state dict after load_state_dict: does the peak fall?",
    ),
    Cause(
        "a second model (averaged weights, a reference)",
        SELDOM,
        "copy",
        _copy,
        LINES,
    ),
    Cause(
        "fragmentation and rounding",
        OFTEN,
        "allocator",
        _reserves,
        "max_memory_reserved − max_memory_allocated; PYTORCH_ALLOC_CONF=expandable_segments:True",
        level="reserved",
    ),
    Cause(
        "the CUDA context",
        OFTEN,
        "context",
        _context,
        "nvidia-smi beside memory_reserved, with one small tensor",
        level="device",
    ),
)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
