"""Batches come in one process; what shapes they had is kept, and the longest may come each time.

Source      PyTorch 2.13: torch.utils.data.DataLoader
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import wraps
from inspect import signature
from typing import Any

from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ..measure.fake_cuda.assumed import Assumed
from ..measure.fake_cuda.undo import Changes

OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
UNSORTED = "the longest examples: not of a loader whose {what} gives no order"


class LoaderPatches:
    """What loaders do.

    longest     whether every batch is that of the longest examples: the first one alone would meet
                an optimizer without states
    batches     shape of the largest tensor -> batches
    rows        most rows of a loader's batch; 0 where there was none
    """

    def __init__(self, longest: bool, assumed: Assumed) -> None:
        self.longest, self.assumed = longest, assumed
        self.batches: Counter[tuple[int, ...]] = Counter()
        self.rows = 0
        self._orders: dict[int, tuple[Any, list[int]]] = {}  # with its data, whose id stays so

    def change(self, changes: Changes) -> None:
        """Let a loader work in this process, whose tensors another one could not see."""
        made, following = DataLoader.__init__, _BaseDataLoaderIter.__next__
        known = signature(made)

        @wraps(made)
        def make(*args: Any, **kwargs: Any) -> None:
            said = known.bind(*args, **kwargs)
            for name in OF_WORKERS:
                said.arguments.pop(name, None)
            said.arguments.update(num_workers=0, pin_memory=False)
            if self.longest:
                self._sort(said.arguments)
            made(*said.args, **said.kwargs)

        @wraps(following)
        def following_seen(batches: Any) -> Any:
            batch = following(batches)
            self._see(batch)
            return batch

        changes.replace(DataLoader, "__init__", make)
        changes.replace(_BaseDataLoaderIter, "__next__", following_seen)

    def _see(self, batch: Any) -> None:
        shape = max((tuple(each.shape) for each in tensors(batch)), key=len_of, default=())
        if shape:
            self.batches[shape] += 1
            self.rows = max(self.rows, shape[0])

    def _sort(self, said: dict[str, Any]) -> None:
        """Arguments of a loader that gives the longest examples again and again."""
        data, batches = said["dataset"], said.pop("batch_sampler", None)
        if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
            self.assumed.skip(UNSORTED, what=type(data).__name__)
            return self._put(said, batches)
        if batches is not None and not hasattr(batches, "batch_size"):
            self.assumed.skip(UNSORTED, what=type(batches).__name__)
            return self._put(said, batches)
        rows = said.get("batch_size", 1) if batches is None else batches.batch_size
        order = self._order(data)
        order = [order[place % (rows or 1)] for place in range(len(order))]
        said.pop("shuffle", None)
        said.pop("sampler", None)
        if batches is None:
            said["sampler"] = order
        else:  # of rows that belong together, and no other argument says how many
            said["batch_sampler"] = BatchSampler(order, batches.batch_size, batches.drop_last)

    def _put(self, said: dict[str, Any], batches: Any) -> None:
        if batches is not None:
            said["batch_sampler"] = batches

    def _order(self, data: Any) -> list[int]:
        if id(data) not in self._orders:
            lengths = [length(data[place]) for place in range(len(data))]
            order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
            self._orders[id(data)] = data, order
        return self._orders[id(data)][1]


def tensors(thing: Any) -> Iterator[Tensor]:
    """Those of a batch, whatever it is made of."""
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, Mapping):
        for each in thing.values():
            yield from tensors(each)
    elif isinstance(thing, (list, tuple)):
        for each in thing:
            yield from tensors(each)


def len_of(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def length(example: Any) -> int:
    """Of an example, the most numbers or letters that any part of it has."""
    if isinstance(example, Tensor):
        return example.numel()
    if isinstance(example, Mapping):
        return max((length(each) for each in example.values()), default=0)
    if isinstance(example, str):
        return len(example)
    if isinstance(example, (list, tuple)):
        inside = [each for each in example if isinstance(each, (Tensor, Mapping, str, list, tuple))]
        return max((length(each) for each in inside), default=0) if inside else len(example)
    return len(example) if hasattr(example, "__len__") else 1
