"""Sharding: how many devices share a run, what they divide, and what one of them holds of a tensor.

The arithmetic is memlab.terms.sharding's; here it meets the tensors of a model. What of it
contradicts itself is said where each word belongs: fsdp_policy, deepspeed_config, expert_parallel,
pipeline_schedule, tensor_plan. The module is long, because all that devices can be told stands in
one place.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..model import Model
from ..model.tensors import Tensor
from ..terms import sharding as terms
from ..terms.optimizer import numel
from ..units import whole
from . import deepspeed_config, expert_parallel, fsdp_policy, pipeline_schedule, tensor_plan

COUNTS = ("data", "tensor", "pipeline", "context")
POLICIES = fsdp_policy.POLICY + ("library",) + expert_parallel.EXPERTS
SHARED = fsdp_policy.POLICY + ("library",) + deepspeed_config.CONFIG  # what divides with ZeRO
TOLD = POLICIES + deepspeed_config.CONFIG + pipeline_schedule.PIPELINED + tensor_plan.DIVIDED


@dataclass(frozen=True, kw_only=True)
class Sharding:
    """What is divided among the devices of a run; what is not is replicated.

    data        ranks that see different sequences, each with the whole network
    zero        0 to 3: what the data ranks divide; 3 is FSDP2, which cuts each tensor by rows (in
                the groups of a loop of one's own, or of accelerate's where the loop is Trainer's),
                unless library says that it is DeepSpeed's. The step of 1 and 2 is DeepSpeed's
    library     whose ZeRO it is: "deepspeed", whose stage 3 cuts each flattened tensor, and which
                runs on one rank too; None: FSDP2's of stage 3, DeepSpeed's of 1 and 2
    tensor      ranks that divide each matrix between them (whole heads, slices of F, words)
    pipeline    ranks that divide the layers, with the micro-batches of a step one after the other
    context     ranks that divide the tokens of a sequence; their weights are shared like data's.
                With zero=3 the step of torch's `context_parallel` is described, its ring of keys
                and values: memlab.step.ringed
    param_dtype     FSDP2's MixedPrecisionPolicy: the format in which weights are gathered and
                computed with; None: as they are stored
    reduce_dtype    of the same: the format in which gradients are reduced; None: as they come
    reshard_after_forward   whether FSDP2 lets a layer go after its forward pass, to gather it again
                for backward; the root's group (embedding, last norm, head) always stays
    gradient_sync   every: gradients are reduced after each micro-batch; last: after the last one
                alone, until which they are kept whole (set_requires_gradient_sync(False)); shards:
                scattered after each, and added up over the replicas after the last one alone
                (set_requires_all_reduce(False))
    replicas    HSDP, a mesh of two dimensions: so many groups of data / replicas ranks, each of
                which divides the whole model and has the same parts as the others
    cpu_offload     FSDP2's CPUOffloadPolicy: parts of weights, their gradients and states stay on
                the host, "pinned" (its default) or "pageable" (pin_memory=False), and the
                optimizer steps there; None: on the device
    reduce_bucket_size  of DeepSpeed's config: values (not bytes) of the buffer that gradients are
                copied into before they are reduced
    overlap_comm    two such buffers, of which one is filled while the other is reduced; stage 3
                has one buffer all the same
    contiguous_gradients    whether there are such buffers
    prefetch_bucket_size    of its stage 3, with "stage3_" before it in the config, as the next
                three: values that are gathered ahead of their use each time a module begins
    param_persistence_threshold     weights of so many values or fewer stay whole
    max_live_parameters     values of whole weights above which nothing is gathered ahead
    max_reuse_distance      a weight stays whole if it is used again before so many values
    sub_group_size      values of a rank's part that the optimizer updates at once
    memory_efficient_linear     of its stage 3: whether its own linear layers take the place of
                torch's, which keep each whole weight that they were called with until backward
    offload_optimizer   of its config: "cpu": copies in fp32, their gradients and states are on the
                host, which updates them (ZeRO-Offload); None: on the device
    schedule    of torch.distributed.pipelining: gpipe: all micro-batches forward, then all
                backward; 1f1b: one forward, one backward; interleaved1f1b: the same with several
                stages on each rank; interleavedzerobubble: backward in two halves, of inputs and
                of weights, with one stage on each rank (ZB-H1) or several; zbvzerobubble: the
                same with two stages on each rank in the shape of a V
    stages_per_rank     of the interleaved ones: rank r of S has the stages r, r + S, ...; of
                zbvzerobubble 2: r and 2 S - 1 - r
    return_outputs      whether `schedule.step` gives back the outputs of all micro-batches, which
                is its default: the last stage keeps them, and joins them in a copy
    sequence    of tensor: the norms and the stream between them are divided too, by tokens
                (SequenceParallel)
    plan        of tensor: torch: parallelize_module, with embedding and head cut by words and the
                loss under loss_parallel; transformers: tp_plan="auto", which cuts the same and
                gathers all logits on every rank, and cuts each expert of a mixture in its width
    expert      of data: groups of so many ranks between which the experts of a mixture are divided,
                whole experts to each; tokens travel to them. Ranks that have the same experts
                divide those between them, and all of data the rest, as transformers'
                DistributedConfig(fsdp_size=data, ep_size=expert) does with zero=3
    routing     of expert, what a router would decide by values: even: each expert is chosen as
                often as the others; fullest: each token of each rank asks for as many experts of
                this rank as it can, which is as much as can arrive
    Raises      ValueError for a count below 1, an unknown stage of ZeRO, an unknown word, and for
                a policy of FSDP2 without zero=3, what one rank alone would divide so, a schedule
                without a pipeline, or sequence without tensor ranks
    """

    data: int = 1
    zero: int = 0
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    param_dtype: str | None = None
    reduce_dtype: str | None = None
    reshard_after_forward: bool = True
    gradient_sync: str = "every"
    replicas: int = 1
    cpu_offload: str | None = None
    reduce_bucket_size: int = 5 * 10**8
    overlap_comm: bool = False
    contiguous_gradients: bool = True
    library: str | None = None
    prefetch_bucket_size: int = 5 * 10**7
    param_persistence_threshold: int = 10**5
    max_live_parameters: int = 10**9
    max_reuse_distance: int = 10**9
    sub_group_size: int = 10**9
    memory_efficient_linear: bool = True
    offload_optimizer: str | None = None
    schedule: str = "1f1b"
    stages_per_rank: int = 1
    return_outputs: bool = True
    sequence: bool = False
    plan: str = "torch"
    expert: int = 1
    routing: str = "even"

    def __post_init__(self) -> None:
        for field in COUNTS:
            if whole(field, getattr(self, field)) == 0:
                raise ValueError(f"{field}=0; at least 1 is needed")
        terms.divided("weights", zero=self.zero)
        fsdp_policy.check(self)
        deepspeed_config.check(self)
        pipeline_schedule.check(self)
        tensor_plan.check(self)
        expert_parallel.check(self)
        for field, value in self._said(SHARED).items():
            if self.data * self.context == 1 and not self.library:  # which runs on one rank too
                raise ValueError(f"{field}={value!r} with data=1: 2 ranks or more divide with ZeRO")

    @property
    def fsdp(self) -> bool:
        """Whether FSDP2 alone divides the run, texts aside: its step is described."""
        alone = 1 < self.data * self.context == self.ranks
        return self.zero == 3 and not self.library and alone

    @property
    def deepspeed(self) -> bool:
        """Whether DeepSpeed's ZeRO alone divides the run: its step is described."""
        theirs = self.zero in deepspeed_config.STAGES or self.library == "deepspeed"
        return theirs and (1 < self.data or self.library is not None) and self.data == self.ranks

    @property
    def replicated(self) -> bool:
        """Whether each device has the whole model (torch's DDP): its step is described."""
        return not self.zero and 1 < self.data == self.ranks

    @property
    def pipelined(self) -> bool:
        """Whether a pipeline alone divides the run: its step is described, stage by stage."""
        return self.pipeline > 1 and self.pipeline == self.ranks

    @property
    def splits_backward(self) -> bool:
        """Whether its schedule computes gradients of inputs and of weights apart: zero bubble."""
        return self.schedule.endswith("zerobubble")

    @property
    def tensor_parallel(self) -> bool:
        """Whether each matrix is divided, and nothing else: the step of a rank is described."""
        return self.tensor > 1 and self.tensor == self.ranks

    @property
    def whole_beside_divided(self) -> bool:
        """Whether norms are plain weights beside matrices that are DTensors: not by `sequence`."""
        return self.tensor_parallel and not self.sequence

    @property
    def policy(self) -> dict[str, str | bool | None]:
        """What of `fully_shard`'s policy does not stand at its default."""
        return self._said(fsdp_policy.POLICY)

    @property
    def buckets(self) -> dict[str, str | bool | None]:
        """What of DeepSpeed's config does not stand at its default."""
        return self._said(deepspeed_config.CONFIG)

    def _said(self, names: tuple[str, ...]) -> dict[str, str | bool | None]:
        told = {name: getattr(self, name) for name in names}
        return {name: told[name] for name in told if told[name] != getattr(Sharding, name)}

    @property
    def ranks(self) -> int:
        """All devices."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def sharers(self) -> int:
        """The ranks among which ZeRO divides: all that hold the same part of the network.

        With replicas, those of one of them.
        """
        return self.data * self.context // self.replicas

    def check(self, model: Model) -> None:
        """Refuse what cannot be cut.

        Raises      ValueError where `tensor` does not divide K, N or F, or `pipeline` exceeds L,
                    or `expert` does not divide X; for `tensor` of a mixture, but by transformers'
                    plan for some families
        """
        expert_parallel.check_model(self, model)
        tensor_plan.check_mixture(self, model)
        terms.check_tensor(self.tensor, heads=model.heads, kv_heads=model.kv_heads, d_ff=model.d_ff)
        terms.stage_layers(model.layers, stages=self.pipeline * self.stages_per_rank, stage=0)

    def layers(self, count: int, stage: int = 0) -> list[range]:
        """The layers of a rank of the pipeline, of each of its stages: of `count` all together.

        Raises      ValueError for a stage that does not exist
        """
        terms.stage_layers(count, stages=self.pipeline, stage=stage)
        every = self.pipeline * self.stages_per_rank
        sizes = [terms.stage_layers(count, stages=every, stage=s) for s in range(every)]
        return [range(sum(sizes[:s]), sum(sizes[: s + 1])) for s in self.stages(stage)]

    def stages(self, rank: int) -> list[int]:
        """The stages of a rank of the pipeline, in their order: memlab.recipe.pipeline_schedule."""
        return pipeline_schedule.stages(self, rank)

    def tensors(self, model: Model, stage: int = 0) -> list[Tensor]:
        """The parameter tensors of one pipeline stage, each as tensor parallelism leaves it.

        Leaves out  padding of the vocabulary to a round number, which Megatron adds
        Raises      as `check`; ValueError for a stage that does not exist
        """
        self.check(model)
        layers = [layer for each in self.layers(model.layers, stage) for layer in each]
        last = self.pipeline * self.stages_per_rank - 1 in self.stages(stage)
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
                    tensor.shape, axis=tensor_plan.axis(tensor, model), ranks=self.tensor
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
        if self.expert > 1 and ".experts_" in tensor.name:
            return expert_parallel.part(tensor.shape, devices=self)
        if self.zero == 3 and not self.library:
            return terms.row_shard(tensor.shape, ranks=self.sharers)
        flat = terms.flat_shard(numel(tensor.shape), ranks=self.sharers)
        return (flat,) if len(tensor.shape) == 1 else (flat, 1)  # still a matrix's, for Muon

    def __str__(self) -> str:
        said = [f"{f} {getattr(self, f)}" for f in COUNTS if getattr(self, f) > 1]
        said += [f"ZeRO {self.zero}"] * (self.zero > 0)
        said += [f"{name}={value}" for name, value in self._said(TOLD).items()]
        return ", ".join(said) or "one device"
