"""Run: how a step is executed. Model + Recipe + Run say all that a prediction needs.

A model says which tensors there are, a recipe what each costs, and a run what the program does with
them: how many tokens, whose code, which kernels, which loop of the optimizer. Its defaults are what
somebody with a GPU gets by doing nothing, and they stand here alone: no function that takes a Run
has defaults of its own. What a field may hold is in fields.py, what contradicts another in
rules.py. The module is long because each field of a run is told here.
"""

from __future__ import annotations

from ..adapters import Ia3, Lora, Prompt, Vera
from ..base.frozen import dataclass, replace
from ..sharding import Sharding
from . import adapters, fields, loop_rules, program_defaults, rules

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .teacher import Teacher


class CacheAlone(ValueError):
    """The peak of this call is not described, while the cache that it leaves is."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a step is executed: a training step, the reading of a prompt, or one more token.

    phase       train: forward, loss, backward, optimizer; prefill: a prompt of `tokens` is read;
                decode: one token more is read after `tokens` that are in the cache
    batch       sequences of one micro-batch
    tokens      in each sequence; None: no step, only what stays from one step to the next
    micro_batches   forward and backward passes before one step of the optimizer, each of the loss
                divided by their number
    implementation  whose code runs the model: transformers, or memlab (memlab.lab.models)
    backend     cuda: the graph that CUDA's kernels give; cpu: that of this machine
    attention   eager: written out; sdpa: torch's scaled_dot_product_attention; flash: the same,
                refused where another kernel would be taken. None: what the config says, else sdpa
    kernel      of SDPA on CUDA: "auto" is torch's own choice
    dropout     the probability of every dropout that the family has; None: what the config says,
                else what the family's configuration class says
    window      positions that a token sees, itself included, in a family with sliding windows; 0:
                no window; None: what the config says, else the class
    compile     the backend of torch.compile(model), which memlab.measure.trace alone asks: inductor
                (torch's default), or the partitioner's two graphs run operator by operator
    checkpoint  block: each layer's activations are computed again in backward; none: they are
                saved; None: as the program does by itself (memlab.run.program_defaults)
    teacher     memlab.run.teacher.Teacher, of distillation and gkd: another model; None: one of the
                student's own shape
    loss        plain: the model's own, with all logits at once, in fp32; cross_entropy: that of a
                loop of one's own, torch's function of the logits that the model returns and of
                labels that the loader has shifted, in the format of the logits (in fp32 under
                autocast, which casts them); chunked: from the head's input,
                in chunks of rows, as memlab.lab.loss does; fused_head: TRL's, which SFTTrainer
                takes by itself; linear_cross_entropy: torch's own, with
                options=LinearCrossEntropyOptions(); liger: Liger Kernel's, on CUDA
    loss_chunks     of loss="chunked": into how many chunks the rows are cut, 8 unless said
    loop        whose program runs the steps, and so what it holds beside them. plain: the loss
                alone; keeps-outputs: `out = model(...)`, whose logits, and the keys and values that
                a model of transformers gives too, live until the next forward pass has its own (no
                keys and values where layers are checkpointed or the config says use_cache=False);
                nanogpt: nanoGPT's, logits alone, with labels of their own, and the next batch
                before backward; trainer: transformers.Trainer, with labels of their own,
                all micro-batches of a step at once and a few numbers; sft: trl.SFTTrainer, the same
                with an attention mask, and loss="fused_head" unless it says another; dpo:
                trl.DPOTrainer on `batch` pairs, each a chosen and a rejected sequence of `tokens`;
                grpo: trl.GRPOTrainer's step on `batch` completions, after the rollout;
                distillation: trl.DistillationTrainer's step on `batch` completions that it has
                generated, beside a teacher, in tiles of both models' logits; gkd:
                trl.experimental.gkd.GKDTrainer's, with all logits of both
    texts       full: each row is one text; padded: shorter ones are padded to `tokens`, with an
                attention mask that says so, and their labels are not the ids; packed: the texts of
                a micro-batch, two or more, lie in one row of batch · tokens tokens, whose positions
                begin again with each (DataCollatorWithFlattening, and TRL's packing)
    eval_batch  sequences of one batch of an evaluation between steps, as Trainer has it at
                eval_steps (per_device_eval_batch_size, 8 unless said); None: no evaluation
    eval_logits     batches of an evaluation whose logits wait on the device for compute_metrics:
                all, or as many as eval_accumulation_steps; 0: losses alone, as without
                compute_metrics
    completion  tokens of each sequence that a loop of TRL learns, the prompt's left out; None: all
                but the first
    reference   model: a second one, never trained; precomputed: its log-probabilities come with the
                batch. None: what the trainer does by itself: dpo has a second model, or with
                adapters the same one with its adapters turned off, and grpo has none (beta=0)
    optimizer_impl  the optimizer's loop: forloop, foreach, fused (torch's), compiled (torchao's);
                None: what the optimizer takes by itself: torch's foreach on CUDA and forloop on a
                CPU, torchao's compiled; Trainer and those made from it take fused AdamW,
                and so does nanogpt on CUDA. Of ranks that divide matrices it is forloop, which has
                to be said (foreach=False): torch's other loops refuse DTensors beside plain weights
    step_in_backward    each weight is updated as soon as its gradient is complete
    clip        whether the gradients' norm is taken and bounded before the optimizer's step; None:
                as the loop does by itself: plain and keeps-outputs do not
    lora        adapters, which alone are trained
    adapter     those of another kind: memlab.adapters.others, Ia3, Vera or Prompt
    frozen      components (memlab.model.tensors.COMPONENTS) whose weights are not trained
    offload     what waits on a host: "saved" tensors, the optimizer's "states", the "optimizer"
                itself, which steps there (torchao's CPUOffloadOptimizer), and "gradients" for it
    holds       what the program's loop keeps beside the step, each as often as it stands here:
                the model's "output" during backward, a fp32 copy of the logits ("wide_logits"), the
                "gradients" of the last step, the "graph" of a loss, the "logits" of a step before,
                the ids of another "batch", the checkpoint's "state_dict", a second "model"
                (averaged weights, a reference), whose buffers are there twice as well, weights
                averaged in fp32 ("fp32_model")
    logits      prefill: of all tokens, or of the last one as generate() asks
    inference_mode  a call under torch.inference_mode() instead of torch.no_grad()
    devices     how many there are, and what they divide; batch is that of one rank. A step is
                described on one device, on one rank of FSDP2 (zero=3 over data, and over context,
                whose ranks share the `tokens` of each text; with
                loop="trainer" Trainer's own, whose bf16=True is param_dtype="bf16" of fp32
                weights; with expert transformers' own, between whose ranks experts are divided) or
                of DeepSpeed (zero=1 and 2), on each rank of a pipeline alone, and on one of those
                that divide each matrix (tensor alone)
    Source      torch, torch/optim/optimizer.py: _default_to_fused_or_foreach;
                transformers 5.23, from_pretrained without further arguments
    Raises      ValueError and TypeError that name the field, its value and what would be right
    """

    phase: str = "train"
    batch: int = 1
    tokens: int | None = None
    micro_batches: int = 1
    implementation: str = "transformers"
    backend: str = "cuda"
    attention: str | None = None
    kernel: str = "auto"
    dropout: float | None = None
    window: int | None = None
    compile: str | None = None
    checkpoint: str | None = None
    loop: str = "plain"
    texts: str = "full"
    eval_batch: int | None = None
    eval_logits: int = 0
    completion: int | None = None
    reference: str | None = None
    teacher: Teacher | None = None
    loss: str = "plain"
    loss_chunks: int | None = None
    optimizer_impl: str | None = None
    step_in_backward: bool = False
    clip: bool | None = None
    lora: Lora | None = None
    adapter: Ia3 | Vera | Prompt | None = None
    frozen: tuple[str, ...] = ()
    offload: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    logits: str = "all"
    inference_mode: bool = False
    devices: Sharding = Sharding()

    def __post_init__(self) -> None:
        fields.check(self)
        rules.check(self)

    @classmethod
    def cpu(cls, **said: Any) -> Run:
        """The same on this machine's processor, for a column of what was measured here."""
        return cls(**({"backend": "cpu"} | said))

    def replace(self, **changes: Any) -> Run:
        """A copy with some fields changed, checked like any new one."""
        return replace(self, **changes)

    @property
    def optimizer_loop(self) -> str:
        """AdamW's loop: the one that was asked for, Trainer's, or torch's own on this backend."""
        together = self.steps_on == "cuda" and not self.devices.whole_beside_divided
        own = "foreach" if together else "forloop"
        if self.tokens is not None and self.devices.deepspeed and self.backend == "cuda":
            own = "fused"  # DeepSpeed's FusedAdam
        return self.optimizer_impl or (program_defaults.adamw(self) or own)

    @property
    def steps_on(self) -> str:
        """Whose kernels the optimizer's step takes: the host's, where FSDP2 keeps weights there."""
        return "cpu" if self.devices.policy.cpu_offload else self.backend

    @property
    def clips(self) -> bool:
        """Whether the gradients are clipped: as it was said, or as the loop does by itself."""
        return program_defaults.of(self).clip if self.clip is None else self.clip

    @property
    def checkpointing(self) -> str:
        """What is computed again in backward: as it was said, or as the program does by itself."""
        return self.checkpoint or program_defaults.of(self).checkpoint

    @property
    def chunks(self) -> int:
        """Into how many chunks the rows of the loss are cut; 0: not at all."""
        return self.loss_chunks or fields.CHUNKS if self.loss == "chunked" else 0

    @property
    def library_loss(self) -> str:
        """The chunked loss of a library, made from the head's input; "": another."""
        return self.loss if self.loss in ("linear_cross_entropy", "liger") else ""

    @property
    def in_chunks(self) -> bool:
        """Whether the loss is made from the head's input, memlab's way or a library's."""
        return bool(self.chunks or self.library_loss)

    @property
    def fused_head(self) -> bool:
        """Whether the loss is TRL's."""
        own = program_defaults.of(self).loss
        return (own if self.loss == "plain" else self.loss) == "fused_head"

    @property
    def adapters(self) -> Any:
        """What is trained beside a frozen model, of whichever kind; None: the model itself."""
        return self.lora or self.adapter

    def adapters_in(self, weights: str) -> str:
        """The format of the adapters beside weights of this one: their own, or the program's.

        Raises      ValueError for a format that such code does not make beside these weights
        """
        peft = self.implementation == "transformers"
        if self.lora is None:
            return self.adapter.format(weights, peft=peft)  # type: ignore[union-attr]
        own = program_defaults.of(self).adapters if self.lora.base else None
        return self.lora.format(weights, peft=peft, own=own)

    @property
    def reference_model(self) -> str:
        """What judges beside the policy: "model", "adapters off", or nothing that is called."""
        return loop_rules.reference_model(self)

    @property
    def sequences(self) -> int:
        """Rows of one micro-batch: a pair is two, and packed texts lie in one."""
        if self.texts == "packed":
            return 1
        return 2 * self.batch if self.loop == "dpo" else self.batch

    @property
    def length(self) -> int:
        """Tokens of one row. 0 without tokens."""
        return (self.batch if self.texts == "packed" else 1) * (self.tokens or 0)

    @property
    def rows(self) -> int:
        """Tokens of one micro-batch: B · T. 0 without tokens."""
        return self.sequences * self.length

    def said(self) -> dict[str, Any]:
        """The fields that do not stand at their defaults."""
        usual = Run()
        names = [f for f in FIELDS if getattr(self, f) != getattr(usual, f)]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON has it, the defaults too; `from_dict` reads it again."""
        made = {name: getattr(self, name) for name in FIELDS}
        for name in ("frozen", "offload", "holds"):
            made[name] = list(made[name])
        if self.lora is not None:
            made["lora"] = adapters.fields_of(self.lora)
        if self.adapter is not None:
            made["adapter"] = adapters.as_dict(self.adapter)
        if self.teacher is not None:
            from .teacher import as_dict

            made["teacher"] = as_dict(self.teacher)
        made["devices"] = self.devices.words()
        return made

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Run:
        """The run that `to_dict` wrote; what it does not name stands at its default.

        Raises      ValueError for a field that does not exist; what construction raises
        """
        if not isinstance(given, dict):
            raise TypeError(f"run={given!r} is a {type(given).__name__}; an object is needed")
        made = dict(given)
        _fields("run", made, FIELDS)
        for name in ("frozen", "offload", "holds"):
            if isinstance(made.get(name), list):
                made[name] = tuple(made[name])
        if isinstance(made.get("adapter"), dict):
            made["adapter"] = adapters.from_dict(made["adapter"])
        if isinstance(made.get("teacher"), dict):
            from .teacher import from_dict

            made["teacher"] = from_dict(made["teacher"])
        for name, make, known in (("lora", Lora, LORA), ("devices", Sharding.of, DEVICES)):
            inner = made.get(name)
            if isinstance(inner, dict):
                _fields(name, inner, known)
                made[name] = make(**inner)
        return cls(**made)

    def to_json(self) -> str:
        """`to_dict` as text."""
        import json

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, words: str) -> Run:
        """The run of a text that `to_json` wrote.

        Raises      ValueError for text that is no JSON; what `from_dict` raises
        """
        import json

        return cls.from_dict(json.loads(words))


def _fields(what: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{what} has no field {name!r}; known: {', '.join(known)}")


FIELDS: tuple[str, ...] = Run.__fields__  # type: ignore[attr-defined]
LORA: tuple[str, ...] = Lora.__fields__  # type: ignore[attr-defined]
DEVICES = tuple(Sharding().words())
