"""What an out-of-memory message, or a table of counters, says by itself and beside a derived step.

The message has most of an answer in it: what was asked for, who holds the card, and whether a block
of the cache or the whole was too small. A step that is derived adds which tensor that was.
"""

from __future__ import annotations

from ..base.message import Listed, Message
from ..devices import devices
from ..step.core.result import term
from ..step.loops.loop import step_of
from ..terms.allocator import LARGE_SEGMENT, segment_for
from ..units import GiB, KiB, MiB, text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..files.seen import Seen
    from ..model import Model
    from ..recipe import Recipe
    from ..run import Run

TRIED = "The request that failed asked for {1}. {2} were allocated, so the run needs {3} or more."
ASKED = "The request that failed asked for {1}. The message does not say what was allocated."
HOST = "The host ran out of memory, and no card: {1} were asked for."
SEVERAL = "The text has {1} such messages. This is the first; ranks that have one: {2}."
AGAIN = "The text has {1} such messages. This is the first."
PRIVATE = (
    "{1} of what was allocated lie in private pools, such as those of CUDA graphs, which serve no "
    "other request."
)
LARGER = "The request is larger than the card, which has {1}: no setting of the allocator helps."
CACHE = (
    "Fragmentation: the cache has {1} that no tensor uses, as much as was asked for, but no free "
    "block was so large. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True frees {1} at most, which "
    "may be enough."
)
TOGETHER = (
    "Fragmentation has a part in it: {1} were free, and the cache has {2} that no tensor uses, "
    "together as much as was asked for. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True frees {2} "
    "at most, which may be enough."
)
WHOLE = (
    "The whole is too large: {1} were free, the cache has {2} that no tensor uses, and {3} are "
    "missing for the request. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True frees {2} at most, "
    "which is not enough."
)
LIMITED = (
    "More was free, {1}, than was asked for: the process has a limit of its own, or another one "
    "held it at that moment."
)
ALLOWED = "The process may have {1} of the card (torch.cuda.set_per_process_memory_fraction)."
OTHERS = "Other processes on the card hold {1}; nvidia-smi lists them."
INSTEAD = "Other processes on the card hold {1}: without them the request would have succeeded."
OUTSIDE = (
    "{1} of the process lie outside PyTorch's allocator: the CUDA context, cuBLAS, NCCL and other "
    "libraries."
)
REST = (
    "{1} of the card are neither free nor PyTorch's: the CUDA context, NCCL and other libraries, "
    "and other processes."
)
LENT = (
    "More was allocated than the card has, {1}: the driver of Windows lends memory of the host, "
    "which is slow."
)
IN_USE = "{1}: {2} of the card's {3} are in use."
MOST = "{1}: {2} at most."
UNUSED = "{1} were reserved; {2} of them no tensor used at that moment."
MORE = "For causes, say the model and how it runs: {1}"
SAME_SIZE = "The request that failed is as large as {1}."
SMALL = (
    "A request of {1} is the segment that the allocator takes for any tensor of 1 to 10 MiB, so it "
    "does not say which tensor failed."
)
NO_TENSOR = "No tensor that this step makes is as large as the request that failed."
TENSOR = "{term}: {op} {shape} in {dtype}"
AS_DERIVED = (
    "The derived peak, {1}, is more than the {2} that this card had for tensors: it runs out of "
    "memory as derived."
)
WITHIN = "The derived peak, {1}, is less than the {2} that this card had for tensors."
NO_STEP = (
    "No length of a sequence was given, so the prediction is what stays between two steps, and "
    "what was seen may be a peak: say --batch and --tokens."
)
SENTENCES = (
    *(TRIED, ASKED, HOST, SEVERAL, AGAIN, PRIVATE, LARGER, CACHE, TOGETHER, WHOLE, LIMITED),
    *(ALLOWED, OTHERS, INSTEAD, OUTSIDE, REST, LENT, IN_USE, MOST, UNUSED, MORE, SAME_SIZE, SMALL),
    *(NO_TENSOR, TENSOR, AS_DERIVED, WITHIN, NO_STEP),
)
SHOWN = 4  # tensors of one size
NEAR = 6 * MiB  # half of a capacity's last digit, and a little: a card is known by it


def said(found: Seen) -> list[str]:
    """What was read, a sentence each; none of a plain size, a timeline or a snapshot."""
    if found.asked is None:
        return _counted(found)
    asked = text(found.asked)
    if found.level == "process":
        return [Message(HOST, asked)]
    lines: list[str] = []
    if len(found.ranks) > 1:
        ranks = sorted({rank for rank in found.ranks if rank is not None})
        named = Listed(", ", [str(rank) for rank in ranks])
        lines += [Message(SEVERAL if ranks else AGAIN, len(found.ranks), named)]
    if found.allocated is None:
        lines += [Message(ASKED, asked)]
    else:
        lines += [Message(TRIED, asked, text(found.allocated), text(int(found.amount)))]
    if found.private:
        lines += [Message(PRIVATE, text(found.private))]
    return [*lines, *_cause(found), *_beside(found)]


def _cause(found: Seen) -> list[str]:
    """Whether a block of the cache, the card, or a limit was too small."""
    asked, free, cached = found.asked or 0, found.free, found.cached or 0
    if found.capacity and asked > found.capacity:
        return [Message(LARGER, text(found.capacity))]
    allowed = found.allowed is not None and found.allowed < (found.capacity or found.allowed + 1)
    lines: list[str] = [Message(ALLOWED, text(found.allowed or 0))] if allowed else []
    if cached >= asked:
        return [*lines, Message(CACHE, text(cached))]
    if free is None or (found.cached is None and free < asked):
        return lines
    if free >= asked:
        return [*lines, *([] if allowed else [Message(LIMITED, text(free))])]
    if free + cached >= asked:
        return [*lines, Message(TOGETHER, text(free), text(cached))]
    return [*lines, Message(WHOLE, text(free), text(cached), text(asked - free - cached))]


def _beside(found: Seen) -> list[str]:
    """Who else holds the card."""
    lines: list[str] = []
    capacity, reserved = found.capacity, found.reserved
    if capacity and (found.allocated or 0) > capacity:
        return [Message(LENT, text(capacity))]
    if others := others_of(found):
        room = (found.free or 0) + (found.cached or 0)
        kind = INSTEAD if room < (found.asked or 0) <= room + others else OTHERS
        lines += [Message(kind, text(others))]
    if reserved is None:
        return lines
    if found.process is not None and found.process > reserved:
        lines += [Message(OUTSIDE, text(found.process - reserved))]
    elif found.process is None and capacity and found.free is not None:
        if (rest := capacity - found.free - reserved - others) > 0:
            lines += [Message(REST, text(rest))]
    return lines


def others_of(found: Seen) -> int:
    """Bytes of other processes: as they are said, or what of the card is not said otherwise."""
    if found.capacity and found.free is not None and found.process is not None:
        left = found.capacity - found.free - found.process
        return left if left > GiB // 4 else 0  # of two decimals, and of what the driver keeps
    return found.others or 0


def _counted(found: Seen) -> list[str]:
    """Of tables and logs of counters: the figure itself, and what of it no tensor uses."""
    if isinstance(found.amount, str):
        return []
    lines: list[str] = []
    if found.level == "device" and found.capacity:
        lines += [Message(IN_USE, found.kind, text(found.amount), text(found.capacity))]
    else:
        lines += [Message(MOST, found.kind, text(found.amount))]
    if found.cached:
        lines += [Message(UNUSED, text(found.reserved or 0), text(found.cached))]
    if found.others and found.others > GiB // 4:
        lines += [Message(OTHERS, text(found.others))]
    return lines


def more(found: Seen, file: str) -> str:
    """Which options an answer with causes needs, as a command."""
    near = [one.name for one in devices() if abs(one.limit - (found.capacity or 0)) < NEAR]
    card = f" --on '{near[0]}'" if len(near) == 1 else ""
    if found.capacity and not card:
        card = f" --on '{text(found.capacity)}'"
    command = f"memlab explain CONFIG {file} --precision bf16 --batch 1 --tokens 2048{card}"
    return Message(MORE, command)


def room(found: Seen) -> int | None:
    """Bytes that the card had for PyTorch's tensors: in use, in the cache, and free."""
    if found.allocated is None or found.free is None or found.asked is None:
        return None
    held = found.allocated + (found.cached or 0) + found.free
    return held if found.allowed is None else min(held, found.allowed)


def beside_peak(found: Seen, peak: int) -> list[str]:
    """Whether the derived peak has room on the card of the message."""
    left = room(found)
    if left is None:
        return []
    return [Message(AS_DERIVED if peak > left else WITHIN, text(peak), text(left))]


def rows_of(found: Seen, model: Model, recipe: Recipe, run: Run) -> list[dict[str, Any]]:
    """The tensors of a derived step that ask for as many bytes as the request that failed.

    Compared    with what the allocator asks the driver for, as far as the message's digits go
    Order       first what is made where the step holds as much as the message says is allocated
    Raises      ValueError for a step that is not described
    """
    if found.asked is None or run.tokens is None or found.level == "process":
        return []
    half, held = max(1, _digit(found.asked) // 2 + 1), found.allocated or 0
    rows: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
    for record, change, total in step_of(model, recipe, run).log.events:
        if record is None or change <= 0 or abs(segment_for(change) - found.asked) > half:
            continue
        row: dict[str, Any] = {"term": term(record), "op": record.op, "dtype": record.dtype}
        key, far = tuple(row.values()), abs(total - change - held)
        if key not in rows or far < rows[key][0]:
            rows[key] = far, row | {"shape": [*map(int, record.shape)], "bytes": change}
    return [row for _, row in sorted(rows.values(), key=lambda pair: pair[0])]


def _digit(size: int) -> int:
    """Bytes of the last digit with which PyTorch prints a size."""
    unit = next((unit for unit in (GiB, MiB, KiB) if size > unit), 100)
    return unit // 100


def request(found: Seen, rows: list[dict[str, Any]], run: Run) -> list[str]:
    """Which tensor failed, in a sentence."""
    if found.asked is None or run.tokens is None or found.level == "process":
        return []
    if found.asked <= LARGE_SEGMENT and rows:
        return [Message(SMALL, text(found.asked))]
    if not rows:
        return [NO_TENSOR]
    named = [
        Message(TENSOR, **{name: row[name] for name in ("term", "op", "shape", "dtype")})
        for row in rows[:SHOWN]
    ]
    return [Message(SAME_SIZE, Listed(", ", named))]
