"""Loading: what a checkpoint and the model made from it take together, moment by moment.

C bytes of the checkpoint · M of the model in its target format · I of the model as it is built ·
S of the largest shard · t of the largest tensor

Sizes are given tensor by tensor, as lists of bytes in the order of the checkpoint, so that any
format can be on either side: `old` in the file, `new` in the model.
"""

from __future__ import annotations

from collections import namedtuple

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Three questions tell the ways apart. Is the model built first, with memory of its own, and the
# values copied in (else it is built on the meta device and takes the tensors themselves)? Is one
# shard read after another (else the whole checkpoint)? Are the files mapped (else read)?
WAYS = (
    ("copy", True, False, False),
    ("assign", False, False, False),
    ("mmap", False, False, True),
    ("shards", False, True, False),
    ("stream", False, True, True),
)

Moment = namedtuple("Moment", ("what", "checkpoint", "mapped", "model", "device"))
Peak = namedtuple("Peak", ("host", "mapped", "device"))


def shards(sizes: Sequence[int], *, limit: int) -> list[list[int]]:
    """Which tensors stand in which file of a checkpoint: lists of their positions in `sizes`.

    Formula     a file takes the next tensor unless it would pass the limit; a tensor that is
                larger than the limit gets a file of its own
    Shapes      sizes: bytes of each tensor, in order; limit: bytes of a file, without its header
    Source      huggingface_hub 2.4, serialization/_base.py, split_state_dict_into_shards_factory
    Leaves out  tensors that share memory (they stay together), the header of each file
    Raises      ValueError for a limit of 0 or a negative size
    """
    if whole("limit", limit) == 0:
        raise ValueError("limit=0; a shard holds at least one byte (5 GB is usual)")
    files: list[list[int]] = []
    current: list[int] = []
    filled = 0
    for i in range(len(sizes)):
        if whole("size", sizes[i]) > limit:
            files.append([i])
            continue
        if filled + sizes[i] > limit:
            files.append(current)
            current, filled = [], 0
        current.append(i)
        filled += sizes[i]
    return files + [current] if current else files


def moments(
    old: Sequence[int],
    *,
    new: Sequence[int],
    way: str,
    built: Sequence[int] | None = None,
    shard: int | None = None,
    cast: bool | None = None,
    device: bool = False,
    cast_on_device: bool = False,
) -> list[Moment]:
    """Every moment of loading: what happens, and the bytes that are there while it does.

    Formula     copy      I + C, then tensor by tensor from I to M
                assign    C, then tensor by tensor to M
                mmap      no more than M, and up to C of the file's pages
                shards    what is loaded so far and one shard, at most M + S
                stream    what is loaded so far, and up to S of a file's pages
    Shapes      old, new, built: bytes of each tensor in the file, in the model, and in a model as
                it is built (`copy` alone builds one; left out, it is built in the target format)
                shard: most bytes of one file; left out, a single file holds everything
                cast: whether formats differ; left out, they do where the sizes do
                returns a list of (what, checkpoint, mapped, model, device): bytes of the old
                copy in memory, of the file's pages in memory, of the model in host memory,
                of the model on the device
    Device      device=True moves each tensor on as it is made; it is cast before, on the host,
                or after, with cast_on_device=True (quantizers that run on the card)
    Unit        bytes
    Source      torch: Module.load_state_dict, Module.to (one tensor after another), and
                torch.load, which gives each tensor a part of one mapping; safetensors 0.8
    Leaves out  buffers that no checkpoint holds, the header of a file, whole pages (4 KiB), the
                page cache: what has been read stays in memory that anybody may take
    Raises      ValueError for an unknown way, a limit of 0, lists of different lengths
    """
    builds, one_by_one, mapped = _way(way)
    built = list(new) if built is None else built
    if not len(old) == len(new) == len(built):
        raise ValueError(
            f"{len(old)} tensors in the file, {len(new)} in the model, {len(built)} as built; "
            "one size for each tensor is needed in all of them"
        )
    for sizes in (old, new, built):
        for size in sizes:
            whole("size", size)
    files = [list(range(len(old)))] if shard is None else shards(old, limit=shard)
    now = _Now(mapped, device, cast, cast_on_device)
    if builds:
        now.model = sum(built)
        now.note("build")
    if not one_by_one:
        files = [list(range(len(old)))]
    for file in files:
        now.checkpoint = 0 if mapped else sum([old[i] for i in file])
        now.note("read")
        if builds:
            now.note("copy")
            now.checkpoint = 0
            now.note("drop")
        before = now.mapped
        kept = [now.hand_over(i, built if builds else old, new, builds) for i in file]
        if not any(kept):
            now.mapped = before  # a mapping goes with the last tensor that points into it
        now.note("close")
    if mapped and now.pointed:
        now.mapped += now.pointed
        now.note("use")
    return now.seen


def peak(moments: Sequence[Moment]) -> Peak:
    """The most that was held at once: in host memory, of mapped pages, on the device.

    Formula     each the largest of its column; host is checkpoint + model
    Unit        bytes; the three need not fall on the same moment
    Source      `moments`
    Leaves out  mapped pages from `host`: the system takes them back where memory is short
    Raises      ValueError for no moments
    """
    if not moments:
        raise ValueError("moments is empty; give what moments(...) returned")
    host = max([m.checkpoint + m.model for m in moments])
    return Peak(host, max([m.mapped for m in moments]), max([m.device for m in moments]))


class _Now:
    """What is held now, and a note of every moment so far."""

    def __init__(
        self, is_mapped: bool, device: bool, cast: bool | None, cast_on_device: bool
    ) -> None:
        self.is_mapped, self.to_device = is_mapped, device
        self.cast, self.cast_on_device = cast, cast_on_device
        self.checkpoint = self.mapped = self.model = self.device = 0
        self.pointed = 0  # bytes of tensors that stay in the mapping and are not touched yet
        self.seen: list[Moment] = []

    def note(self, what: str) -> None:
        self.seen.append(Moment(what, self.checkpoint, self.mapped, self.model, self.device))

    def hand_over(self, i: int, old: Sequence[int], new: Sequence[int], from_model: bool) -> bool:
        """One tensor becomes the model's; returns whether it still is where it was read."""
        was, becomes = old[i], new[i]
        casts = was != becomes if self.cast is None else self.cast
        if not casts and not self.to_device:
            if self.is_mapped:
                self.pointed += was
            elif not from_model:
                self.checkpoint -= was
                self.model += was
            return True
        if self.is_mapped:
            self.mapped += was  # read, hence touched; it stays until the mapping goes
        if self.to_device:
            self._send(was, becomes, casts)
        else:
            self.model += becomes
            self.note("cast")
        if from_model:
            self.model -= was
        elif not self.is_mapped:
            self.checkpoint -= was
        return False

    def _send(self, was: int, becomes: int, casts: bool) -> None:
        """To the device; a cast leaves one more copy of this tensor, here or there."""
        here = becomes if casts and not self.cast_on_device else 0
        there = was if casts and self.cast_on_device else 0
        self.device += becomes + there
        self.model += here
        self.note("move")
        self.device -= there
        self.model -= here


def _way(way: str) -> tuple[bool, bool, bool]:
    for name, builds, one_by_one, mapped in WAYS:
        if name == way:
            return builds, one_by_one, mapped
    raise ValueError(f"unknown way {way!r}; known: {', '.join([each[0] for each in WAYS])}")
