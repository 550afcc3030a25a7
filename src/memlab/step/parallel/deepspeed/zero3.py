"""DeepSpeed's ZeRO 3 in a simulated step: parts of flattened weights, whole while a module works.

The program     with deepspeed.zero.Init(config_dict_or_path=config): model = ...
                engine, *_ = deepspeed.initialize(model=model, config=config), and on as in
                zero12 beside this file; Trainer's `from_pretrained` has the same first line
Weights         of each the part of one rank, n / ranks values rounded up, all parts in one flat
                tensor; the optimizer updates an fp32 copy, also where the weights are fp32
Whole weights   gathered and let go around every single module, in the order of fetch_order
Linear          DeepSpeed's own function takes the place of torch.nn.functional.linear, since the
                transpose that torch keeps would hold a weight that was let go; it keeps the weight
                itself. Its input's gradient is made before the weight's
Torch's         memory_efficient_linear=False leaves torch's function, and then all weights of
                linear layers are whole from forward to backward. Before 0.19.4 (pull request 8189)
                that was so for each model that was made without zero.Init
Checkpoints     what is computed again keeps its weights' memory until it has been used, though the
                weights themselves are let go and gathered again
Gradients       one buffer of `reduce_bucket_size` values, and one for the parts of all gradients,
                are there all the time. A gradient that is complete is copied into the first and its
                own memory goes, unless it is too large for what is left of it. A full bucket is put
                in the order of ranks, in one copy, which is reduced and scattered in place; a
                single gradient that the ranks divide evenly is reduced where it lies
The step        all weights go; the norm of each part is taken in fp64, one after the other; for
                one sub-group after the other the parts' gradients are joined, cast to fp32, and the
                optimizer steps. Then the persistent weights are gathered
offload_optimizer   as in the stages before, with the parts of all gradients, narrow and in fp32,
                on the host: on CUDA each part comes back to be measured or added to, and there is
                no buffer of the largest weight
offload_param   each rank's part is the host's, and comes to the device for a gathering
Rank            all hold the same
Source          deepspeed, runtime/zero: stage3.py, parameter_offload.py, linear.py;
                runtime/comm/coalesced_collectives.py: reduce_scatter_coalesced
CPU             gloo's reduce-scatter is an all-reduce of a copy of the buffer; NCCL has no such
                copy. Derived from the source and counted on CPUs; not yet measured on a GPU
Leaves out      NVMe (ZeRO-Infinity), hpZ, quantized weights and gradients, leaf
                modules; fp16, which needs a scaler; buffers of the communication library; a model
                made without zero.Init: its buffers stay in fp32, and it is moved to the device
                whole
The module is long, because a module's beginning, its end, and its gradients stand in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.backward import GATHERED
from ...core.graph import Grads, Node, Parameter, Tensor
from ...core.storage_log import Record, Storage, count
from .fetch_order import ALL_GATHER, Buffer, Coordinator, Weight
from .zero12 import BUCKETS, WIDE, Zero, grouped

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

REDUCE_SCATTER = "reduce-scatter buffers"
NORM = "fp64"


class Zero3(Zero):
    """All operators, on weights that are whole only while a module works."""

    number = NORM
    chunk = 250_000_000  # _constant_buffered_norm2

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        told = self.devices.config
        self.ranks = self.devices.data
        self.weights: list[Weight] = []
        self.parts: list[Storage] = []
        self.parts_away = told.offload_param is not None
        self.coordinator = Coordinator(
            self.ranks,
            prefetch=told.prefetch_bucket_size,
            most=told.max_live_parameters,
            distance=told.max_reuse_distance,
            make=lambda values: self.new("all_gather", (values,), self.stored, ALL_GATHER),
            bring=self._brought if self.parts_away else None,
        )
        self.left: dict[str, int] = {}  # gradients that a module still waits for
        self.numbers: dict[int, Weight] = {}
        self.begun: dict[str, None] = {}  # modules whose backward began and has not ended
        self.bucket: Tensor | None = None

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Parameter:
        """The whole weight, which is empty until it is gathered; a part of it is stored."""
        shape = tuple(shape)
        values = count(shape)
        part = -(-values // self.ranks)
        record = Record(name, (part,), dtype, "weights", self.part)
        record.on_host = self.parts_away
        self.parts.append(Storage(self.log, record))
        empty = Buffer(self.log, Record(name, shape, dtype, GATHERED, self.part))
        whole = Parameter(shape, dtype, empty, self.current)
        whole.node = Node.of(whole)
        weight = Weight(len(self.weights), whole, values, part)
        weight.persists = values <= self.devices.config.param_persistence_threshold
        self.weights.append(weight)
        self.numbers[id(whole)] = weight
        self.parameters.append(whole)
        return whole

    def _brought(self, values: int) -> Tensor:
        """A part of a weight on the device, for as long as it is gathered."""
        return self.new("to", (values,), self.stored, ALL_GATHER)

    def share(self) -> None:
        """What is there between steps beside the parts: fp32 copies, gradients, the bucket."""
        self.subs: list[list[Weight]] = []  # sub-groups, none of which goes beyond its group
        for whole in grouped(self.parameters) if self.trainers else [self.parameters]:
            self.subs.append([])
            for weight in (self.numbers[id(p)] for p in whole):
                if sum(w.part for w in self.subs[-1]) >= self.devices.config.sub_group_size:
                    self.subs.append([])
                self.subs[-1].append(weight)
        self.flats: list[Parameter] = []
        for group in self.subs:
            size = sum(weight.part for weight in group)
            record = Record("master", (size,), WIDE, "master", "")
            record.on_host = self.away
            self.flats.append(Parameter((size,), WIDE, Storage(self.log, record), None))
        if self.devices.config.contiguous_gradients:
            self.bucket = self.new("ipg_bucket", (self.most,), self.stored, BUCKETS)
        values = sum(weight.part for weight in self.weights)
        self.on_host = self.away
        self.reduced = self.new("grad_partitions", (values,), self.stored, "gradients")
        self.tracker = self.new("inf_or_nan", (1,), "bool")
        if self.away:
            wide = (count(flat.shape) for flat in self.flats)
            self.there += [self.new("zeros", (size,), WIDE, "gradients") for size in wide]
        self.on_host = False

    # Modules

    def enter(self, module: str, x: Tensor | None = None, *own: Tensor | None) -> Any:
        """A module begins: its weights are gathered, and its end in backward is heard of at x."""
        known = self.coordinator.of
        if module not in known:
            known[module] = [self.numbers[id(w)] for w in own if w is not None]
        self.coordinator.fetch(module)
        self.left[module] = 0
        if x is None or x.node is None or not self.grad:
            return x
        self.left[module] += 1
        return self._passed(x, lambda: self._ended(module))

    def leave(self, module: str, out: Tensor) -> Tensor:
        """A module ends: its weights go, and its beginning in backward is heard of at `out`."""
        self.coordinator.release(module)
        return self._passed(out, lambda: self._begun(module))

    def _passed(self, x: Tensor, hook: Callable[[], None]) -> Tensor:
        out = Tensor(x.shape, x.dtype, x.storage)

        def run(grads: list[Any], saved: list[Any], needs: list[bool]) -> list[Any]:
            hook()
            return grads

        self.apply("hook", [x], [out], run)
        return out

    def _begun(self, module: str) -> None:
        self.begun[module] = None
        self.coordinator.fetch(module)

    def _ended(self, module: str) -> None:
        self.left[module] -= 1
        if self.left[module] == 0:
            self.coordinator.release(module)
            self.begun.pop(module, None)

    def embedding(self, table: Tensor, ids: Tensor) -> Tensor:
        module = f"embedding {self.numbers[id(table)].number}"
        self.enter(module, None, table)
        return self.leave(module, super().embedding(table, ids))

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        module = f"norm {self.numbers[id(weight)].number}"
        return self.leave(
            module, super().layer_norm(self.enter(module, x, weight, bias), weight, bias)
        )

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """LinearFunctionForZeroStage3, in a module of its own."""
        module = f"linear {self.numbers[id(weight)].number}"
        a = self.enter(module, x, weight, bias)
        if not self.devices.config.memory_efficient_linear:
            return self.leave(module, super().linear(a, weight, bias))
        out = self.new("mm", (*a.shape[:-1], weight.shape[0]), a.dtype)
        shapes = (a.shape, weight.shape)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            made = [self.new("mm", shapes[i], g.dtype) if needs[i] else None for i in (0, 1)]
            made.append(self.new("sum", (shapes[1][0],), g.dtype) if needs[2] else None)
            return made

        op = f"linear {weight.record.op}"
        self.apply(op, [a, weight, bias], [out], run, [("input", a), ("weight", weight)], late=True)
        return self.leave(module, out)

    def activation(self, x: Tensor, kind: str) -> Tensor:
        return self.leave("activation", super().activation(self.enter("activation", x), kind))

    def _keep(self, op: str, argument: str, tensor: Tensor) -> Any:
        """What a checkpoint computes again it keeps detached: the memory of a weight, not itself.

        A transpose, which torch's linear layers keep, is such memory as well.

        Source      torch/utils/checkpoint.py: _recomputation_hook
        """
        held = tensor.storage
        transposed = not self.devices.config.memory_efficient_linear and op.startswith("linear ")
        if isinstance(held, Buffer) and (transposed or self._checkpoints.again):
            assert held.memory is not None
            tensor = Tensor(tensor.shape, tensor.dtype, held.memory)
        return super()._keep(op, argument, tensor)

    # Gradients

    def _arrived(self, parameter: Parameter) -> None:
        size = count(parameter.shape)
        if self.inside and self.elements + size > self.most:
            self._reduce()
        if self.bucket is not None and self.elements + size <= self.most:
            parameter.grad = Tensor(parameter.shape, self.stored, self.bucket.storage)
        self.elements += size
        self.inside.append(parameter)

    def _reduce(self) -> None:
        """Reduce the bucket and scatter it; what is this rank's is added to its part."""
        values = [count(p.shape) for p in self.inside]
        whole = [-(-size // self.ranks) * self.ranks for size in values]
        pads = []
        flat = None
        if len(values) > 1 or values != whole:
            for size, padded in zip(values, whole, strict=True):
                chunk = padded // self.ranks
                for rank in range(self.ranks):
                    short = chunk - max(0, min(chunk, size - rank * chunk))
                    if short:
                        pads.append(self.new("empty", (short,), self.stored, REDUCE_SCATTER))
            flat = self.new("cat", (sum(whole),), self.stored, REDUCE_SCATTER)
        if self.inside and self.backend == "cpu":  # gloo's is an all-reduce of a copy
            copy = self.new("all_reduce", (sum(whole),), self.stored, REDUCE_SCATTER)
            del copy
        for p in self.inside:
            if self.away:
                self._sent(self.numbers[id(p)].part)
            p.grad = None
        self.inside.clear()
        self.elements = 0
        del flat, pads

    def _sent(self, values: int) -> None:
        """A part goes to the host and comes back, to be added to there or measured here."""
        back = self.new("to", (values,), self.stored, "gradients") if self.backend == "cuda" else 0
        if self.last_pass:
            self._normed(values)
        del back

    def after_backward(self) -> None:
        """What engine.backward does when autograd is done."""
        self._reduce()
        for module in list(self.begun):
            self.coordinator.release_begun(module)
        self.begun.clear()

    def stepping(self, update: Callable[..., None], loop: str) -> Callable[[], None]:
        """engine.step(): norms, then one sub-group after the other, then persistent weights."""

        inside = super().stepping(update, loop) if self.away else None

        def there() -> None:
            self.coordinator.release_all(self.weights)
            assert inside is not None
            inside()
            self.coordinator.keep(self.weights)

        if self.away:
            return there

        def step() -> None:
            self.coordinator.release_all(self.weights)
            norms = self._norms()
            norms.append(self.new("where", (), NORM))  # of all, which the loss scale divides
            self.norms = [self.new("div", (), NORM)]
            for group, flat in zip(self.subs, self.flats, strict=True):
                size = count(flat.shape)
                grad = self.reduced
                if len(group) > 1:
                    grad = self.new("cat", (size,), self.stored, "gradients")
                if self.stored != WIDE:
                    grad = self.new("to", (size,), WIDE, "gradients")
                flat.grad = grad
                del grad
                self.clip()
                update(self, lambda flat=flat: iter([flat]), loop)
                flat.grad = None
            del norms
            self.told = self.norms
            self.coordinator.keep(self.weights)

        return step

    def _norms(self) -> list[Tensor]:
        """Of each part's gradient, in fp64, one after the other; then of each sub-group."""
        made = []
        for group in self.subs:
            norms = []
            for weight in group:
                wide = self.new("to", (weight.part,), NORM)
                norms.append(self.new("norm", (), NORM))
                del wide
            made.append(self.new("where", (), NORM))
            norms.clear()
        return made
