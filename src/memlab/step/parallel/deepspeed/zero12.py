"""DeepSpeed's ZeRO 1 and 2 in a simulated step: whole weights, a part of all that belongs to them.

The program     engine, *_ = deepspeed.initialize(model=model, config=config)
                loss = engine(ids, labels=ids).loss; engine.backward(loss); engine.step(); or
                TrainingArguments(deepspeed=config), whose accelerate calls the same three
Weights         all of them in one flat tensor, aligned to two values a rank, of which each is a
                view; a rank updates an fp32 copy of its part, also where the weights are fp32.
                Trainer's optimizer has two groups of parameters, of which norms and biases do not
                decay: two flat tensors, of each of which a rank has its part
Buckets         as soon as the first gradient is there a buffer of `reduce_bucket_size` values is
                made, with `overlap_comm` two, whatever the size of the model; they go when the
                gradients have been reduced. A gradient that is complete is copied into the buffer,
                and its own memory goes; one that is larger than the buffer stays where it is
Reduction       a full bucket is reduced. Where it holds parts of several ranks it is copied for
                that, whole. Then what is this rank's is copied into a tensor for all weights that
                its part touches. Stage 2 drops the others and does so in every micro-batch; stage 1
                keeps all gradients to the last micro-batch, and reduces them after its backward
Without `contiguous_gradients`    there are no buffers: a bucket's gradients are joined in a copy
offload_optimizer   ZeRO-Offload: fp32 copies, their gradients and states are the host's, and so is
                a narrow copy of the part. The device has one buffer as large as the largest weight
                all the time. Of a gradient that is reduced a rank takes the norm of its part in
                fp64 and makes an fp32 copy, one after the other, which goes to the host; a gradient
                that no bucket holds is cloned first. Several micro-batches are added up on the
                host. The step is the host's
The step        the norm of each gradient is taken in fp64, one weight after the other. The part's
                gradients are joined, and cast to fp32; then the narrow ones go, and the optimizer
                steps: its own FusedAdam on CUDA, the program's AdamW on a CPU; of several groups
                one after the other. To clip takes scalars alone
Rank            the fullest of three: the last, whose gradients come first, the first, and the one
                whose part touches the largest weights
Source          deepspeed, deepspeed/runtime/zero/stage_1_and_2.py; runtime/engine.py;
                transformers, trainer.py: create_optimizer, get_decay_parameter_names
CPU             gloo adds up in place, as NCCL does
Leaves out      stage 3, which is memlab.step.parallel.deepspeed.zero3; NVMe; ZenFlow; fp16, which
                needs a scaler; expert parameters; buffers of the communication library; what
                allocations are rounded to and kept for streams
The module is long, because the life of a bucket stands in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....sharding import Sharding
from ...core.graph import Parameter, Tensor
from ...core.storage_log import Record, Storage, count
from ...ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

BUCKETS, WIDE = "reduce buckets", "fp32"
ALIGNED = 2  # values of each rank: nccl_start_alignment_factor


class Zero(Ops):
    """All operators, and DeepSpeed's hooks around backward.

    stored      the format of weights and gradients
    rank        whose part it is
    trainers    whether the optimizer is Trainer's, with two groups of parameters
    clips       whether gradient_clipping is said
    """

    deepspeed = True
    chunk = 10**18  # values of which a norm is taken at once: all
    number = WIDE  # the format of the norm, by which gradients are clipped

    def __init__(
        self,
        *arguments: Any,
        stored: str,
        devices: Sharding,
        rank: int,
        trainers: bool = False,
        clips: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.stored, self.devices = stored, devices
        self.rank, self.trainers, self.clips = rank, trainers, clips
        self.most = devices.config.reduce_bucket_size
        self.buffers: list[Tensor] = []
        self.turn = 0  # the buffer that is being filled
        self.inside: list[Parameter] = []  # whose gradients are in the bucket
        self.elements = 0
        self.large: Parameter | None = None  # the bucket's only one, which no buffer holds
        self.late: list[Parameter] = []  # reduced, and dropped with the next bucket
        self.kept: Tensor | None = None  # gradients of the part's weights, of this micro-batch
        self.summed: list[list[Tensor]] = []  # of all micro-batches, group by group
        self.norms: list[Tensor] = []  # of the last step, as DeepSpeed's optimizer has it
        self.told: list[Tensor] = []  # and its engine, which is told after the step
        self.paddings: list[Tensor | None] = []
        self.away = devices.config.offload_optimizer is not None
        self.contiguous = devices.config.contiguous_gradients or self.away
        self.on_host = False  # whether what is made now is the host's
        self.there: list[Tensor] = []  # what the host has all the time
        self.sent: list[Tensor] = []  # norms of gradients that were sent there
        self.earlier = 0  # micro-batches of this step that are over
        self.piled: set[int] = set()  # weights whose gradients the host adds up
        self.updates = self._arrived

    def share(self) -> None:
        """Flatten the weights: what of each is which rank's, and the fp32 copy of one's own."""
        self.groups = grouped(self.parameters) if self.trainers else [self.parameters]
        self.pieces: dict[int, dict[int, int]] = {}  # of each weight: rank -> values
        self.share_sizes = [self._cut(group) for group in self.groups]
        self.mine = [[p for p in g if self.rank in self._pieces(p)] for g in self.groups]
        self.flats = []
        for size in self.share_sizes:
            record = Record("master", (size,), WIDE, "master", "")
            record.on_host = self.away
            self.flats.append(Parameter((size,), WIDE, Storage(self.log, record), None))
        if self.away:
            largest = max(count(p.shape) for p in self.parameters)
            self.there += [self.new("offload", (largest,), self.stored, "gradients")]
            self.on_host = True
            self.there += [self.new("offload", (largest,), self.stored, "gradients")]
            for size in self.share_sizes:
                self.there += [self.new("zeros", (size,), WIDE, "gradients")]
                self.there += [self.new("full", (size,), self.stored, "weights")]
            self.on_host = False

    def new(self, op: str, shape: Sequence[int], dtype: str, category: str = "other") -> Tensor:
        made = super().new(op, shape, dtype, category)
        made.record.on_host = self.on_host
        return made

    def _cut(self, group: list[Parameter]) -> int:
        """Values of a rank's part of a group, flattened and aligned."""
        sizes = [count(p.shape) for p in group]
        unit = ALIGNED * self.devices.data
        aligned = -(-sum(sizes) // unit) * unit
        part = aligned // self.devices.data
        self.paddings.append(self._maybe("align", aligned - sum(sizes), "weights"))
        at = 0
        for p, size in zip(group, sizes, strict=True):
            edges = [at, *(e for e in range(0, aligned, part) if at < e < at + size), at + size]
            pairs = zip(edges, edges[1:], strict=False)
            self.pieces[id(p)] = {first // part: last - first for first, last in pairs}
            at += size
        return part

    def touched(self, rank: int) -> int:
        """Values of all weights of which a rank has a part."""
        return sum(count(p.shape) for p in self.parameters if rank in self._pieces(p))

    def _pieces(self, parameter: Parameter) -> dict[int, int]:
        return self.pieces[id(parameter)]

    def _maybe(self, op: str, values: int, category: str) -> Tensor | None:
        return self.new(op, (values,), self.stored, category) if values else None

    def _arrived(self, parameter: Parameter) -> None:
        """The hook of a gradient that is complete."""
        if not self.buffers and self.contiguous:
            self.turn = 0
            for _ in range(2 if self.devices.config.overlap_comm else 1):
                self.buffers.append(self.new("ipg_bucket", (self.most,), self.stored, BUCKETS))
        if self.devices.zero == 2 or self.devices.config.overlap_comm:
            self._fill(parameter)

    def _fill(self, parameter: Parameter) -> None:
        """One more gradient of the bucket, which is reduced first if it has no room for that."""
        size = count(parameter.shape)
        if self.elements + size > self.most:
            self._reduce()
            if self.contiguous and self.devices.config.overlap_comm:
                self.turn = 1 - self.turn
        if self.contiguous:
            if size > self.most:
                self.large = parameter
                if self.away:  # its own memory, whoever else has the gradient
                    parameter.grad = self.new("clone", parameter.shape, self.stored, "gradients")
            else:
                whole = self.buffers[self.turn].storage
                parameter.grad = Tensor(parameter.shape, self.stored, whole)
        self.elements += size
        self.inside.append(parameter)

    def _reduce(self) -> None:
        """Add the bucket up over the ranks, and keep what is this rank's of it."""
        contiguous, large = self.contiguous, self.large
        held = None if large is None else large.grad  # a view of it lives to the end
        if contiguous:
            self._average()
        elif self.inside:
            if self.devices.config.overlap_comm:
                self._drop_late()
            self._flattened(len(self.inside), self.elements)
        for p in self.inside:
            if self.rank in self._pieces(p):
                if contiguous:
                    self._keep_grad(p)
            elif self.devices.zero == 2:
                if self.devices.config.overlap_comm and not contiguous:
                    self.late.append(p)
                else:
                    p.grad = None
        self.inside.clear()
        self.elements, self.large = 0, None
        del held

    def _average(self) -> None:
        """Reduce the bucket rank by rank: neighbours of the same rank are one piece."""
        sizes: list[int] = []
        last = None
        for p in self.inside:
            for rank, size in self._pieces(p).items():
                if rank == last:
                    sizes[-1] += size
                else:
                    sizes.append(size)
                last = rank
        several = values = 0
        for size in sizes:
            several, values = several + 1, values + size
            if values > self.most:
                self._flattened(several, values)
                several = values = 0
        self._flattened(several, values)

    def _flattened(self, several: int, values: int) -> None:
        """What is reduced at once lies in one piece: a copy, if there are several."""
        if several > 1:
            copy = self.new("cat", (values,), self.stored, BUCKETS)
            del copy

    def _keep_grad(self, parameter: Parameter) -> None:
        if self.away:
            return self._send(parameter)
        if self.kept is None:
            values = self.touched(self.rank)
            self.kept = self.new("grads_in_partition", (values,), self.stored, "gradients")
        parameter.grad = Tensor(parameter.shape, self.stored, self.kept.storage)

    def _send(self, parameter: Parameter) -> None:
        """A gradient goes to the host: added up there, and in the last micro-batch wide."""
        if self.earlier or not self.last_pass:
            if id(parameter) not in self.piled:
                self.piled.add(id(parameter))
                self.on_host = True
                self.there += [self.new("zeros", parameter.shape, self.stored, "gradients")]
                self.on_host = False
        if self.last_pass:
            self._normed(self._pieces(parameter)[self.rank])
            parameter.grad = None

    def _normed(self, values: int) -> None:
        """The norm of what goes to the host, in fp64, and then its copy in fp32."""
        wide = self.new("to", (min(values, self.chunk),), "fp64")
        self.sent.append(self.new("norm", (), "fp64"))
        del wide
        if self.stored != WIDE:
            copy = self.new("to", (values,), WIDE, "gradients")
            del copy

    def _drop_late(self) -> None:
        for p in self.late:
            p.grad = None
        self.late.clear()

    def after_backward(self) -> None:
        """What engine.backward does when autograd is done."""
        self.earlier += 1
        if self.devices.zero == 1 and not self.last_pass:
            return
        if self.devices.zero == 1 and not self.devices.config.overlap_comm:
            for p in (p for group in self.groups for p in group):
                self._fill(p)
        self._reduce()
        self._drop_late()
        if self.away:
            pass  # what is this rank's has been sent
        elif not self.summed:  # else they are added to them in place
            self.summed += [[p.grad for p in mine if p.grad is not None] for mine in self.mine]
        if self.last_pass and not self.away:
            for grads, mine, size in zip(self.summed, self.mine, self.share_sizes, strict=True):
                own = sum(self._pieces(p)[self.rank] for p in mine)
                rest = self._maybe("zeros", size - own, "gradients")
                grads += [rest] if rest else []
        self.buffers.clear()
        self.kept = None
        for p in self.parameters:
            p.grad = None

    def stepping(self, update: Callable[..., None], loop: str) -> Callable[[], None]:
        """engine.step(): the norm, one fp32 gradient for the part, and the optimizer's update."""

        def there() -> None:
            self.on_host = True
            self.norms = [self.new("div", (), WIDE)]
            for flat in self.flats:
                flat.grad = self.new("view", (0,), WIDE)  # what it is stands in `there`
                self.clip()
                update(self, lambda flat=flat: iter([flat]), loop)
                flat.grad = None
            self.told = self.norms
            self.on_host = False
            self.sent.clear()
            self.earlier = 0

        if self.away:
            return there

        def step() -> None:
            self.earlier = 0
            scaled = self._take_norm()
            self.norms = [self.new("div", (), WIDE)]
            for flat, grads, size in zip(self.flats, self.summed, self.share_sizes, strict=True):
                grad = grads[0]
                if len(grads) > 1:
                    grad = self.new("cat", (size,), self.stored, "gradients")
                if self.stored != WIDE:
                    grad = self.new("to", (size,), WIDE, "gradients")
                flat.grad = grad
                grads.clear()
                del grad
                self.clip()
                update(self, lambda flat=flat: iter([flat]), loop)
                flat.grad = None
            self.summed.clear()
            del scaled
            self.told = self.norms

        return step

    def clip(self) -> None:
        """unscale_and_clip_grads: numbers beside a gradient that is scaled in place."""
        if not self.clips:
            return
        made = [self.new(op, (), self.number) for op in ("clamp", "mul", "reciprocal", "mul")]
        del made

    def _take_norm(self) -> Tensor:
        found = []
        for mine in self.mine:
            norms = []
            for p in mine:
                wide = self.new("to", (self._pieces(p)[self.rank],), "fp64")
                norms.append(self.new("vector_norm", (), "fp64"))
                del wide
            found.append(self.new("where", (), WIDE))
            norms.clear()
        return self.new("where", (), WIDE)


def grouped(parameters: list[Parameter]) -> list[list[Parameter]]:
    """Trainer's two groups: what decays (gpt_oss's sinks, too), and norms and biases."""
    names = [(p.record.op, len(p.shape)) for p in parameters]
    decays = [name == "sinks" or (of > 1 and not name.endswith(".bias")) for name, of in names]
    pairs = list(zip(parameters, decays, strict=True))
    return [[p for p, does in pairs if does == which] for which in (True, False)]
