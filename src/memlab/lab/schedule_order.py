"""In which order each rank of a pipeline computes: torch's schedules, put on a clock.

m micro-batches · S ranks, one stage each
"""

from types import SimpleNamespace
from typing import Any

from torch.distributed.pipelining.schedules import ScheduleInterleavedZeroBubble

Turn = tuple[str, int, int]  # what, when, for how long
LENGTHS = {"F": 1, "B": 2, "I": 1, "W": 1}
KINDS = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}
SCHEDULES = ("gpipe", "1f1b", "zero bubble")


def orders(schedule: str, *, ranks: int, micro_batches: int) -> list[list[str]]:
    """What each rank computes, in order: "F0" forward, "B0" backward, or its halves "I0" and "W0".

    I           the gradient of a stage's input, which the rank before it waits for
    W           the gradients of its weights, which no rank waits for
    Source      torch, torch/distributed/pipelining/schedules.py: the loops of ScheduleGPipe
                and Schedule1F1B; zero bubble: ScheduleInterleavedZeroBubble with one stage a rank,
                which is ZB1P of Qi et al. 2024, arXiv:2401.10241
    Raises      ValueError for an unknown schedule and fewer micro-batches than ranks
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule={schedule!r}; known: {', '.join(SCHEDULES)}")
    if micro_batches < ranks:
        raise ValueError(f"micro_batches={micro_batches}; at least R={ranks} are needed")
    if schedule == "zero bubble":
        told: Any = SimpleNamespace(_n_microbatches=micro_batches, n_local_stages=1)
        told.pp_group_size = ranks
        told.microbatches_per_round = micro_batches // max(1, micro_batches // ranks)
        ask = ScheduleInterleavedZeroBubble._calculate_single_rank_operations
        return [[_said(action) for action in ask(told, rank) if action] for rank in range(ranks)]
    first = [micro_batches if schedule == "gpipe" else ranks - rank for rank in range(ranks)]
    return [_in_turn(warm_up, micro_batches) for warm_up in first]


def _in_turn(warm_up: int, micro_batches: int) -> list[str]:
    """So many forward passes first, then one backward and one forward, then what is left."""
    order = [f"F{number}" for number in range(warm_up)]
    for number in range(micro_batches):
        order.append(f"B{number}")
        if warm_up + number < micro_batches:
            order.append(f"F{warm_up + number}")
    return order


def _said(action: Any) -> str:
    """A turn in this module's words."""
    return f"{KINDS[action.computation_type.name]}{action.microbatch_index}"


def timed(found: list[list[str]]) -> list[list[Turn]]:
    """Each turn as early as what it waits for allows: F takes 1 unit, B 2, its halves 1 each.

    Waits       a forward for that of the stage before, a backward (or I) for that of the stage
                after, everything for the rank's turn before
    Leaves out  sending
    Raises      ValueError for orders in which every rank waits for another
    """
    ends: dict[tuple[str, str, int], int] = {}
    clock, done = [0] * len(found), [0] * len(found)
    made: list[list[Turn]] = [[] for _ in found]
    while any(at < len(order) for at, order in zip(done, found, strict=True)):
        moved = False
        for rank, order in enumerate(found):
            while (
                done[rank] < len(order)
                and (start := _start(order[done[rank]], rank, len(found), ends)) is not None
            ):
                said = order[done[rank]]
                start = max(start, clock[rank])
                clock[rank] = start + LENGTHS[said[0]]
                kind = "F" if said[0] == "F" else "W" if said[0] == "W" else "B"
                ends[kind, said[1:], rank] = clock[rank]
                made[rank].append((said, start, LENGTHS[said[0]]))
                done[rank] += 1
                moved = True
        if not moved:
            raise ValueError(f"every rank waits for another after {done} turns")
    return made


def _start(said: str, rank: int, ranks: int, ends: dict[tuple[str, str, int], int]) -> int | None:
    """When the turn's inputs are there; None if they are not computed yet."""
    kind, number = said[0], said[1:]
    if kind == "F":
        return 0 if rank == 0 else ends.get(("F", number, rank - 1))
    if kind == "W":
        return ends.get(("B", number, rank))
    return ends.get(("F", number, rank) if rank == ranks - 1 else ("B", number, rank + 1))


def in_flight(order: list[str]) -> int:
    """Micro-batches between their forward pass and the end of their backward pass, at the most."""
    alive = most = 0
    for said in order:
        alive += {"F": 1, "B": -1, "W": -1, "I": 0}[said[0]]
        most = max(most, alive)
    return most


def idle(made: list[list[Turn]]) -> float:
    """The share of all ranks' time in which they wait."""
    end = max(turn[1] + turn[2] for order in made for turn in order)
    busy = sum(turn[2] for order in made for turn in order)
    return 1 - busy / (end * len(made))
