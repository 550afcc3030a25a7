"""Which weights DeepSpeed's stage 3 gathers and lets go, module by module: its coordinator.

The first pass      every module gathers its own weights when it begins and lets them go when it
                    ends, in both directions; the order of modules is written down
From the second on  a module that begins also has others gathered ahead: those that are not there
                    of the next `prefetch_bucket_size` values in that order, unless
                    `max_live_parameters` values are whole. What is used again before
                    `max_reuse_distance` values have gone by stays, as do persistent weights
Buffers             one weight is gathered into one buffer, which it is then; several into a common
                    one, and copied out of it as soon as the first of them is needed. The common
                    buffer goes when each of them has been asked for
offload_param       a rank's parts come to the device for a gathering; one rank's is the weight
Source              deepspeed, runtime/zero: partitioned_param_coordinator.py:
                    fetch_sub_module, release_sub_module, reset_step; partition_parameters.py:
                    all_gather_coalesced, AllGatherCoalescedHandle
Leaves out          NVMe, quantized weights, secondary parts (hpZ), modules as leaves
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ...core.graph import Parameter, Tensor
from ...core.storage_log import Log, Record, Storage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

AWAY, COMING, HERE = range(3)
ALL_GATHER = "all-gather buffers"


class Buffer(Storage):
    """What stands for a whole weight's memory: another one each time that it is gathered.

    memory      the one of now, as large as it was gathered, or None
    """

    __slots__ = ("memory",)

    def __init__(self, log: Log, record: Record) -> None:
        self.log, self.record = log, record
        self.memory: Storage | None = None

    def take(self, values: int) -> None:
        of = self.record
        self.memory = Storage(self.log, Record(of.op, (values,), of.dtype, of.category, of.part))

    def empty(self) -> None:
        self.memory = None

    def __del__(self) -> None:
        """Nothing of its own goes with it."""


class Weight:
    """One weight: a rank's part of it, and the whole one while it is gathered.

    number      in the order of registration
    values      of the whole; `part`, of one rank
    users       modules that are at work with it
    """

    def __init__(self, number: int, whole: Parameter, values: int, part: int) -> None:
        self.number, self.whole, self.values, self.part = number, whole, values, part
        self.state, self.persists = AWAY, False
        self.users: set[str] = set()

    @property
    def buffer(self) -> Buffer:
        assert isinstance(self.whole.storage, Buffer)
        return self.whole.storage


class Handle:
    """A gathering: the weights that come with it, and their common buffer."""

    def __init__(self, weights: Sequence[Weight], common: Tensor | None) -> None:
        self.weights, self.common, self.done = weights, common, False

    def wait(self) -> None:
        """Copy each weight out of the common buffer, once."""
        if self.done:
            return
        self.done = True
        for weight in self.weights:
            if self.common is not None:
                weight.buffer.take(weight.values)
            weight.state = HERE


class Coordinator:
    """Gathers and lets go, as modules begin and end.

    ranks       among which each weight is divided
    prefetch, most, distance    values: see the module's docstring
    make, bring a fresh buffer of so many values; a part of so many that comes from the host
    """

    def __init__(
        self,
        ranks: int,
        *,
        prefetch: int,
        most: int,
        distance: int,
        make: Callable[[int], Tensor],
        bring: Callable[[int], Tensor] | None = None,
    ) -> None:
        self.ranks, self.make, self.bring = ranks, make, bring if ranks > 1 else None
        self.whole = ranks if ranks > 1 or bring else 0  # parts of a gathered one; 0: a view of it
        self.prefetch, self.most, self.distance = prefetch, most, distance
        self.of: dict[str, list[Weight]] = {}  # the weights of each module
        self.order: list[str] = []  # modules as they begin, forward and backward
        self.records = self.complete = False
        self._stays: dict[tuple[str, int], set[int]] = {}
        self._start()

    def _start(self) -> None:
        self.coming: dict[int, Handle] = {}
        self.queue: deque[tuple[Weight, int]] = deque()
        self.latest: dict[int, int] = {}
        self.step = self.available = 0

    def begin(self) -> None:
        """Before each forward pass."""
        for handle in self.coming.values():
            handle.wait()
            for weight in handle.weights:
                self._let_go(weight)
        self.complete = self.complete or self.records
        self.records = not self.complete
        self._start()
        if self.complete:
            for step, module in enumerate(self.order):
                self.queue += ((weight, step) for weight in self.of[module])

    def fetch(self, module: str) -> None:
        """A module begins, forward or backward."""
        own = self.of[module]
        if self.records:
            self.order.append(module)
        self._gather([weight for weight in own if weight.state == AWAY])
        for weight in own:
            weight.users.add(module)
            if weight.number in self.coming:
                self.coming.pop(weight.number).wait()
        if self.complete:
            self._pass_by(own)
            if self.prefetch:
                self._ahead()
        self.step += 1

    def _pass_by(self, own: list[Weight]) -> None:
        """Take those that are needed now off the queue of those to come."""
        wanted = {w.number for w in own if self.latest.get(w.number, -1) < self.step}
        seen: set[int] = set()
        while self.queue and len(seen) < len(wanted):
            weight, step = self.queue.popleft()
            self.latest[weight.number] = step
            seen.add(weight.number)

    def _ahead(self) -> None:
        room, taken = min(self.most - self.available, self.prefetch), 0
        chosen: dict[int, Weight] = {}
        while self.queue and taken < room:
            weight, step = self.queue.popleft()
            self.latest[weight.number] = max(self.latest.get(weight.number, -1), step)
            if weight.state == AWAY and weight.number not in chosen:
                chosen[weight.number] = weight
                taken += weight.values
        self._gather(list(chosen.values()))

    def _gather(self, weights: list[Weight]) -> None:
        if not weights:
            return
        weights.sort(key=lambda weight: weight.number)
        common = None
        if len(weights) == 1 or self.ranks == 1:
            for weight in weights:
                weight.buffer.take(self.whole * weight.part)
        else:
            common = self.make(self.whole * sum(weight.part for weight in weights))
        self._brought(weights)
        handle = Handle(weights, common)
        for weight in weights:
            self.available += weight.values
            weight.state = COMING
            self.coming[weight.number] = handle

    def _brought(self, weights: list[Weight]) -> list[Tensor]:
        """The parts of these weights on the device, where they are the host's."""
        return [self.bring(weight.part) for weight in weights] if self.bring else []

    def release(self, module: str) -> None:
        """A module ends, forward or backward."""
        leaving = self._leaving(module)
        for weight in self.of[module]:
            weight.users.discard(module)
            if weight.number in leaving:
                self._let_go(weight)

    def _leaving(self, module: str) -> set[int]:
        own = self.of[module]
        if not self.complete:
            return {weight.number for weight in own}
        key = (module, self.step)
        if key not in self._stays:  # the answer of the first time is kept
            leaving = {weight.number for weight in own if not weight.persists}
            leaving -= {w.number for w in own if self.latest.get(w.number, -1) > self.step}
            passed = 0
            for other in self.order[self.step :]:
                if passed >= self.distance:
                    break
                for weight in self.of[other]:
                    leaving.discard(weight.number)
                    passed += weight.values
            self._stays[key] = leaving
        return self._stays[key]

    def _let_go(self, weight: Weight) -> None:
        if weight.state == HERE and not weight.users:
            weight.buffer.empty()
            weight.state = AWAY
            self.available -= weight.values

    def release_begun(self, module: str) -> None:
        """After backward: a module whose end nobody heard of, as its input asks for no gradient."""
        for weight in self.of[module]:
            weight.users.discard(module)
            if not weight.persists:
                self._let_go(weight)

    def release_all(self, weights: Sequence[Weight]) -> None:
        """Before the optimizer's step: persistent ones too."""
        for weight in weights:
            if weight.number in self.coming:
                self.coming.pop(weight.number).wait()
            weight.users.clear()
            self._let_go(weight)

    def keep(self, weights: Sequence[Weight]) -> None:
        """After the step: gather those that persist, each into a buffer of its own."""
        whole = [weight for weight in weights if weight.persists]
        _parts = self._brought(whole)  # until all are there
        for weight in whole:
            weight.buffer.take(self.whole * weight.part)
            weight.state = HERE
