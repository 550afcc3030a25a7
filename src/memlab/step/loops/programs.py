"""Whose program runs the steps: the models that it has, and the loss that it makes of a batch."""

from __future__ import annotations

from importlib import import_module

from ...adapters import Prompt, Vera
from ...base.frozen import replace
from ...recipe import Recipe
from ...run import Run
from ...run.loop_rules import keeps_output
from ...run.loops import LOOPS, TAUGHT, TRAINERS
from ..core.graph import Tensor
from ..core.setting import Setting
from ..kv_cache import Cache, cache_of
from ..networks import network
from ..ops import Ops
from .inputs import batch_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SFT = ("log_probs", "entropy", "is_top1")


def wanted(run: Run) -> tuple[str, ...]:
    """What TRL's head gives for each token in this loop; nothing: another head makes the loss."""
    if not run.fused_head:
        return ()
    own = made_by(run)
    return own.WANTED if own else SFT


def made_by(run: Run) -> Any:
    """The module that makes the loss of this loop, by its name; None: the model's own is taken."""
    loop = LOOPS[run.loop]
    if not (loop.judged or loop.taught or loop.rolls_out):
        return None
    return import_module(f"{__package__}.{run.loop}")  # only what is asked for


class Program:
    """The policy and what stands beside it: how a loop makes the loss of a batch, and holds it.

    plain           the loss is dropped after backward
    keeps-outputs   the model's output, the loss in it, lives until the next one is there, with
                    keys and values where its model has a cache (memlab.step.kv_cache)
    nanogpt         logits and loss live so; before backward the next X and Y are there, and the
                    graph alone holds the last X
    trainer, ...    what transformers' Trainer and those of TRL do
    Source          github.com/karpathy/nanoGPT, train.py; transformers, trainer.py:
                    training_step; accelerate, accelerator.py: backward

    policy      the network that is trained
    reference   a second one, which is not; or the policy itself, with its adapters turned off; or a
                teacher, memlab.step.loops.teacher
    """

    def __init__(self, f: Ops, s: Setting, recipe: Recipe, run: Run) -> None:
        self.recipe = recipe
        self.f, self.setting, self.run = f, s, run
        kind = "divided" if run.devices.tensor_parallel else run.implementation
        if run.devices.deepspeed and run.devices.zero == 3:
            kind = "zero3"
        self.kind = network(kind, s.model.family)
        if isinstance(run.adapter, Vera):
            from ..adapters.vera import shared

            f.shared = shared(f, run.adapter, s.model, run.adapter.format(s.dtype, peft=True))
        self.policy = self.kind(f, s)
        self.prompt: Any = None
        if isinstance(run.adapter, Prompt):
            from ..adapters.prompt import Prompted

            self.prompt = Prompted(f, s, self.policy)
        self.reference: Any = None
        self.beside: list[Tensor] = []  # what the loop has on the device
        self.divides_again = run.loop in TRAINERS  # accelerate, before backward
        self.divides = run.loop in (*TRAINERS, "nanogpt")  # by the micro-batches, even by one
        self.prefetches = run.loop == "nanogpt"
        self.holds_output = keeps_output(run) and run.loop != "nanogpt"  # the loss in it
        self.keeps_norm = run.loop in TRAINERS  # of the last step's gradients
        self.keys: Cache | None = None  # and values, in the output that is kept

    def add_reference(self) -> None:
        """A second model where the loop has one, built after the policy has been looked at."""
        if self.run.reference_model == "model":
            self.reference = _second(self.f, self.setting, self.kind)
        elif self.run.reference_model == "adapters off":
            self.reference = self.policy
        elif self.run.loop in TAUGHT:
            from .teacher import Judge  # only who distils needs it

            self.reference = Judge(self.f, self.setting, self.recipe, self.run)

    def batch(self) -> list[Tensor]:
        """What a loop has of the batch that is run next: the ids first."""
        s = self.setting
        if LOOPS[self.run.loop].rolls_out:
            return []  # prompts and completions, which are joined in each pass
        kinds = batch_of(self.run)
        if s.shared:
            tokens = self.run.tokens or 0
            cut = tokens + (s.B == 1)  # a row's labels are a part of one that is longer by one
            long = {"labels": (s.B, cut)}
            shapes = [long.get(kind, (s.B, tokens)) for kind in kinds]
            return [self.f.new(k, z, "int64", "inputs") for k, z in zip(kinds, shapes, strict=True)]
        tokens = s.T if self.prompt is None else self.prompt.tokens
        return [self.f.new(kind, (s.B, tokens), "int64", "inputs") for kind in kinds]

    def loss(self, batch: list[Tensor]) -> Tensor:
        """The loss of one micro-batch, a scalar with the graph behind it."""
        f, s = self.f, self.setting
        if own := made_by(self.run):
            return own.loss(self, batch)  # type: ignore[no-any-return]
        ids = self.ids(batch)
        if s.cached:
            self.policy.cache = cache_of(f, s, self.policy)
        if self.prompt is not None:
            return self.prompt.forward(ids)
        made = self.policy.forward(ids)
        if s.own_loss:
            from .losses import own_cross_entropy

            return own_cross_entropy(f, made, batch[-1])
        if s.fused_head:
            from .fused_head import sft_loss

            return sft_loss(f, made)
        return made

    def keep_keys(self) -> None:
        """Let go of the last output's keys and values, now that those of the next are there."""
        if self.setting.cached:
            if self.keys is not None:
                self.keys.forget()
            self.keys, self.policy.cache = self.policy.cache, None

    def ids(self, batch: list[Tensor]) -> Tensor:
        """The tokens of a batch: where they are a part of a longer row, a view of it."""
        f, s = self.f, self.setting
        if not s.shared:
            return batch[0]
        f.shifted = batch[-1]
        return f.view(batch[0], s.B, s.T)

    def forward(self, model: Any, ids: Tensor) -> Any:
        """One call of a model, an autocast block of its own as accelerate makes it."""
        made = model.forward(ids)
        self.f.end_autocast()
        return made

    def judged(self, ids: Tensor) -> Any:
        """The reference's output: what comes after the policy's head is still the loss."""
        f = self.f
        part, mark = f.part, f.log.marks["loss"]
        f.adapters = self.reference is not self.policy
        made = self.forward(self.reference, ids)
        f.adapters, f.part, f.log.marks["loss"] = True, part, mark
        return made


def _second(f: Ops, s: Setting, kind: Any) -> Any:
    """A second model in evaluation mode, none of whose weights the optimizer knows.

    They still ask for gradients, as TRL leaves them, so that autocast keeps their copies.
    """
    trained, frozen, doubled = len(f.parameters), f.frozen, f.doubled
    f.frozen = f.doubled = ()
    still: Any = {f"{part}_dropout": 0.0 for part in ("attention", "residual", "embedding")}
    alone = replace(s, lora=None, checkpoint=False, fused_head=("log_probs",), **still)
    made = kind(f, alone)
    for parameter in f.parameters[trained:]:
        parameter.record.category = "reference"
    del f.parameters[trained:]
    f.frozen, f.doubled = frozen, doubled
    return made
