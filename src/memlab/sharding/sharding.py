"""Sharding: how many devices share a run, what they divide, and what one of them holds of a tensor.

The arithmetic is memlab.terms.sharding's; here it meets the tensors of a model. What each scheme is
told beside its ranks is a value of its own, in fsdp.py, deepspeed.py, expert_parallel.py,
pipeline.py and tensor_parallel.py. The module is long, because what devices hold depends on all of
them.
"""

from __future__ import annotations

from ..base.frozen import dataclass, not_default
from ..model import Model
from ..model.tensors import Tensor
from ..terms import sharding as terms
from ..terms.optimizer import numel
from ..units import MANY, at_least_one
from . import deepspeed, expert_parallel, tensor_parallel
from . import pipeline as pipeline_schedule
from .deepspeed import DeepSpeed
from .expert_parallel import ExpertParallel
from .fsdp import FsdpPolicy
from .pipeline import Schedule
from .tensor_parallel import TensorPlan

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

COUNTS = ("data", "tensor", "pipeline", "context")
# The words of each scheme as flags and JSON have them, which know no value within a value.
FLAT: tuple[tuple[str, Any, dict[str, str]], ...] = (
    ("library", FsdpPolicy, {}),
    ("library", DeepSpeed, {}),
    ("schedule", Schedule, {"name": "schedule"}),
    ("plan", TensorPlan, {"whose": "plan"}),
    ("experts", ExpertParallel, {"ranks": "expert"}),
)
DEEPSPEED = "deepspeed"  # the word for its library
ALONE = "with data=1: 2 ranks or more divide with ZeRO"
FSDP2, ZERO = FsdpPolicy(), DeepSpeed()


@dataclass(frozen=True, kw_only=True)
class Sharding:
    """What is divided among the devices of a run; what is not is replicated.

    data        ranks that see different sequences, each with the whole network
    zero        0 to 3: what the data ranks divide; 3 is FSDP2, which cuts each tensor by rows (in
                the groups of a loop of one's own, or of accelerate's where the loop is Trainer's),
                unless library is a DeepSpeed. The step of 1 and 2 is DeepSpeed's
    library     whose ZeRO it is, and what it is told: a FsdpPolicy or a DeepSpeed; None: FSDP2's of
                stage 3, DeepSpeed's of 1 and 2, as each is without a word
    tensor      ranks that divide each matrix between them (whole heads, slices of F, words)
    plan        of tensor: a TensorPlan
    pipeline    ranks that divide the layers, with the micro-batches of a step one after the other
    schedule    of pipeline: a Schedule
    context     ranks that divide the tokens of a sequence; their weights are shared like data's.
                With zero=3 the step of torch's `context_parallel` is described, its ring of keys
                and values: memlab.step.parallel.context_parallel
    experts     which ranks of data divide the experts of a mixture: an ExpertParallel
    Raises      ValueError for a count below 1, an unknown stage of ZeRO, and for what a scheme is
                told without ranks that it divides; TypeError for a value of another class
    """

    data: int = 1
    zero: int = 0
    library: FsdpPolicy | DeepSpeed | None = None
    tensor: int = 1
    plan: TensorPlan = TensorPlan()
    pipeline: int = 1
    schedule: Schedule = Schedule()
    context: int = 1
    experts: ExpertParallel = ExpertParallel()

    def __post_init__(self) -> None:
        for field in COUNTS:
            at_least_one(field, getattr(self, field), MANY)
        terms.divided("weights", zero=self.zero)
        for field in ("library", "schedule", "plan", "experts"):
            kinds = tuple([kind for name, kind, _ in FLAT if name == field])
            value = getattr(self, field)
            if not isinstance(value, kinds) and not (value is None and field == "library"):
                names = " or ".join([kind.__name__ for kind in kinds])
                raise TypeError(f"{field}={value!r}; a value of {names} is needed")
        if self.library is not None:
            self.library.check(self)
        for field, value in self.told(Schedule).items():
            if self.pipeline == 1:
                raise ValueError(f"{field}={value!r} is a pipeline's, of 2 ranks or more")
        for field, value in self.told(TensorPlan).items():
            if self.tensor == 1:
                raise ValueError(f"{field}={value!r} is tensor parallelism's, of 2 ranks or more")
        self.experts.check(self)
        for field, value in self.told(FsdpPolicy).items():
            if self.data * self.context == 1:
                raise ValueError(f"{field}={value!r} {ALONE}")

    @classmethod
    def of(cls, **words: Any) -> Sharding:
        """The devices that flat words describe, as flags and JSON have them.

        words       fields of Sharding and of the values within it: param_dtype="bf16". schedule,
                    plan and expert stand for the name of the schedule, whose plan it is, and the
                    ranks of experts; library="deepspeed" for a DeepSpeed
        Raises      TypeError for a word that there is not; ValueError for words of a library whose
                    step it is not; what construction raises
        """
        theirs, zero = words.pop("library", None), words.get("zero", 0)
        if theirs not in (None, DEEPSPEED):
            raise ValueError(f"library={theirs!r} is not described; known: {DEEPSPEED}")
        made: dict[Any, Any] = {}
        for _, kind, names in FLAT:
            fields = {names.get(name, name): name for name in kind.__fields__}
            made[kind] = kind(**{fields[word]: words.pop(word) for word in fields if word in words})
        policy, config = made.pop(FsdpPolicy), made.pop(DeepSpeed)
        library: FsdpPolicy | DeepSpeed | None = config if theirs else None
        for field, value in not_default(policy).items():
            if theirs or zero != 3:
                without = f" without library={theirs!r}" if theirs else ""
                raise ValueError(f"{field}={value!r} is FSDP2's, which is zero=3{without}")
            library = policy
        for field, value in not_default(config).items():
            if not theirs and zero not in deepspeed.STAGES:
                deepspeed.check_stage(field, value)
                raise ValueError(
                    f"{field}={value!r} is DeepSpeed's: zero=1, zero=2, or zero=3 with "
                    "library='deepspeed'; without it the step of zero=3 is FSDP2's"
                )
            if not theirs and words.get("data", 1) * words.get("context", 1) == 1:
                raise ValueError(f"{field}={value!r} {ALONE}")
            library = config
        words |= {field: made[kind] for field, kind, _ in FLAT if kind in made}
        return cls(library=library, **words)

    def words(self) -> dict[str, Any]:
        """All of it as flat words: `of` reads them again."""
        made = {field: getattr(self, field) for field in COUNTS + ("zero",)}
        made["library"] = DEEPSPEED if isinstance(self.library, DeepSpeed) else None
        for value, (_, kind, names) in zip(self._values(), FLAT):  # noqa: B905  MicroPython has no strict
            made |= {names.get(name, name): getattr(value, name) for name in kind.__fields__}
        return made

    def changed(self, **words: Any) -> Sharding:
        """Other devices, which differ in these flat words."""
        return Sharding.of(**(self.words() | words))

    def told(self, of: Any = None) -> dict[str, Any]:
        """What does not stand at its default, of one scheme or of all, as flat words."""
        found: dict[str, Any] = {}
        for value, (_, kind, names) in zip(self._values(), FLAT):  # noqa: B905  MicroPython has no strict
            if of in (None, kind):
                found |= {names.get(name, name): v for name, v in not_default(value).items()}
        return found

    def _values(self) -> tuple[Any, ...]:
        return self.policy, self.config, self.schedule, self.plan, self.experts

    @property
    def policy(self) -> FsdpPolicy:
        """FSDP2's policy, which stands at its defaults where nothing is told."""
        return self.library if isinstance(self.library, FsdpPolicy) else FSDP2

    @property
    def config(self) -> DeepSpeed:
        """DeepSpeed's config, which stands at its defaults where nothing is told."""
        return self.library if isinstance(self.library, DeepSpeed) else ZERO

    @property
    def by_deepspeed(self) -> bool:
        """Whether DeepSpeed divides, in so many words."""
        return isinstance(self.library, DeepSpeed)

    @property
    def fsdp(self) -> bool:
        """Whether FSDP2 alone divides the run, texts aside: its step is described."""
        alone = 1 < self.data * self.context == self.ranks
        return self.zero == 3 and not self.by_deepspeed and alone

    @property
    def deepspeed(self) -> bool:
        """Whether DeepSpeed's ZeRO alone divides the run: its step is described."""
        theirs = self.zero in deepspeed.STAGES or self.by_deepspeed
        return theirs and (1 < self.data or self.by_deepspeed) and self.data == self.ranks

    @property
    def replicated(self) -> bool:
        """Whether each device has the whole model (torch's DDP): its step is described."""
        return not self.zero and 1 < self.data == self.ranks

    @property
    def pipelined(self) -> bool:
        """Whether a pipeline alone divides the run: its step is described, stage by stage."""
        return self.pipeline > 1 and self.pipeline == self.ranks

    @property
    def tensor_parallel(self) -> bool:
        """Whether each matrix is divided, and nothing else: the step of a rank is described."""
        return self.tensor > 1 and self.tensor == self.ranks

    @property
    def whole_beside_divided(self) -> bool:
        """Whether norms are plain weights beside matrices that are DTensors: not in sequence."""
        return self.tensor_parallel and not self.plan.sequence

    @property
    def ranks(self) -> int:
        """All devices."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def sharers(self) -> int:
        """The ranks among which ZeRO divides: all that hold the same part of the network.

        With replicas, those of one of them.
        """
        return self.data * self.context // self.policy.replicas

    def check(self, model: Model) -> None:
        """Refuse what cannot be cut.

        Raises      ValueError where `tensor` does not divide K, N or F, or `pipeline` exceeds L,
                    or `expert` does not divide X; for `tensor` of a mixture, but by transformers'
                    plan for some families
        """
        expert_parallel.check_model(self, model)
        tensor_parallel.check_mixture(self, model)
        terms.check_tensor(self.tensor, heads=model.heads, kv_heads=model.kv_heads, d_ff=model.d_ff)
        terms.stage_layers(
            model.layers, stages=self.pipeline * self.schedule.stages_per_rank, stage=0
        )

    def layers(self, count: int, stage: int = 0) -> list[range]:
        """The layers of a rank of the pipeline, of each of its stages: of `count` all together.

        Raises      ValueError for a stage that does not exist
        """
        terms.stage_layers(count, stages=self.pipeline, stage=stage)
        every = self.pipeline * self.schedule.stages_per_rank
        sizes = [terms.stage_layers(count, stages=every, stage=s) for s in range(every)]
        return [range(sum(sizes[:s]), sum(sizes[: s + 1])) for s in self.stages(stage)]

    def stages(self, rank: int) -> list[int]:
        """The stages of a rank of the pipeline, in their order: memlab.sharding.pipeline."""
        return pipeline_schedule.stages(self, rank)

    def tensors(self, model: Model, stage: int = 0) -> list[Tensor]:
        """The parameter tensors of one pipeline stage, each as tensor parallelism leaves it.

        Leaves out  padding of the vocabulary to a round number, which Megatron adds
        Raises      as `check`; ValueError for a stage that does not exist
        """
        self.check(model)
        layers = [layer for each in self.layers(model.layers, stage) for layer in each]
        last = self.pipeline * self.schedule.stages_per_rank - 1 in self.stages(stage)
        found = []
        for tensor in model.tensors():
            if self.pipeline == 1:
                copies = tensor.copies
            elif tensor.name.startswith("layers."):
                copies = pipeline_schedule.copies(tensor, model, layers)
            elif tensor.name in ("embedding", "positions", "project_in"):
                # A tied table is needed at both ends of the pipeline.
                tied_end = tensor.name == "embedding" and model.tied and last
                copies = tensor.copies if stage == 0 or tied_end else 0
            else:
                copies = tensor.copies if last else 0
            if copies:
                shape = terms.split(
                    tensor.shape, axis=tensor_parallel.axis(tensor, model), ranks=self.tensor
                )
                kind = (tensor.component, copies, tensor.linear)
                found.append(Tensor(tensor.name, shape, *kind))
        return found

    def shape(self, tensor: Tensor, copy: str) -> tuple[int, ...]:
        """The shape of rank 0's part of one copy (weights, gradients, …): the largest part.

        FSDP2 cuts by rows and keeps the shape; DeepSpeed's ZeRO cuts the flattened tensor.
        """
        if not terms.divided(copy, zero=self.zero):
            return tensor.shape
        if self.experts.ranks > 1 and ".experts_" in tensor.name:
            return expert_parallel.part(tensor.shape, devices=self)
        if self.zero == 3 and not self.by_deepspeed:
            return terms.row_shard(tensor.shape, ranks=self.sharers)
        flat = terms.flat_shard(numel(tensor.shape), ranks=self.sharers)
        return (flat,) if len(tensor.shape) == 1 else (flat, 1)  # still a matrix's, for Muon

    def __str__(self) -> str:
        said = [f"{f} {getattr(self, f)}" for f in COUNTS if getattr(self, f) > 1]
        said += [f"ZeRO {self.zero}"] * (self.zero > 0)
        said += ["library=deepspeed"] * (self.by_deepspeed and (self.zero == 3 or self.data == 1))
        said += [f"{name}={value}" for name, value in self.told().items()]
        return ", ".join(said) or "one device"
