"""The order in which a rank of a pipeline computes, and what its loop's variables keep alive.

Works       what a sending operation returns. gloo's keep the tensor for as long as somebody has
            the work; NCCL's let go of it when it has been sent
Source      torch, torch/distributed/pipelining/schedules.py: ScheduleGPipe, Schedule1F1B,
            ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble,
            _PipelineScheduleRuntime; csrc/distributed/c10d/ProcessGroupGloo.hpp: SendWork
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.graph import Tensor
from .stage import Stage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

Ops = list[Tensor]  # what operations that send or receive refer to
FORWARD, BACKWARD, INPUT, WEIGHT = "forward", "backward", "input", "weight"


class Rank:
    """One rank's stages, and what it does with each micro-batch of each of them.

    forward     (stage, number) -> output, on the last stage the loss as well
    backward    (stage, number, half): BACKWARD is the whole, INPUT and WEIGHT are its halves
    """

    def __init__(
        self,
        stages: list[Stage],
        forward: Callable[[Stage, int], Tensor],
        backward: Callable[[Stage, int, str], None],
        *,
        rank: int,
        ranks: int,
        micro_batches: int,
        works_hold: bool,
    ) -> None:
        self.stages, self.forward, self.backward = stages, forward, backward
        self.rank, self.ranks, self.micro_batches = rank, ranks, micro_batches
        self.works_hold = works_hold

    def sent(self, ops: Ops) -> Ops:
        """The works of operations that send."""
        return list(ops) if self.works_hold else []


def one_by_one(rank: Rank) -> None:
    """A single micro-batch, whose schedule nobody asks: all stages forward, then all backward."""
    for stage in rank.stages:
        rank.forward(stage, 0)
        stage.fwd_sends(0)
    for stage in reversed(rank.stages):
        rank.backward(stage, 0, BACKWARD)
        stage.bwd_sends(0)


def gpipe(rank: Rank) -> None:
    """All micro-batches forward, then all backward; works are waited for at the end of each."""
    stage = rank.stages[0]
    fwd_sends_to_wait, bwd_sends_to_wait = [], []
    output: Any = None
    for number in range(rank.micro_batches):
        ops: Ops = []
        output = rank.forward(stage, number)
        ops = stage.fwd_sends(number)
        fwd_sends_to_wait.append(rank.sent(ops))
    for number in range(rank.micro_batches):
        ops = []
        rank.backward(stage, number, BACKWARD)
        ops = stage.bwd_sends(number)
        bwd_sends_to_wait.append(rank.sent(ops))
    del output


def one_f_one_b(rank: Rank) -> None:
    """min(m, S - stage) forward passes, then one backward and one forward by turns."""
    stage, count = rank.stages[0], rank.micro_batches
    warm_up = min(count, rank.ranks - rank.rank)
    send_work: Ops = []
    fwd_sends: Ops = []
    output: Any = None
    for number in range(warm_up):
        output = rank.forward(stage, number)
        fwd_sends = stage.fwd_sends(number)
        if number != warm_up - 1:
            send_work = rank.sent(fwd_sends)
    forward, backward = warm_up, 0
    while True:
        rank.backward(stage, backward, BACKWARD)
        bwd_sends = stage.bwd_sends(backward)
        backward += 1
        if forward == count:
            break
        output = rank.forward(stage, forward)
        fwd_sends = stage.fwd_sends(forward)
        forward += 1
    send_work = rank.sent(bwd_sends)
    while backward < count:
        rank.backward(stage, backward, BACKWARD)
        bwd_sends = stage.bwd_sends(backward)
        send_work = rank.sent(bwd_sends)
        backward += 1
    del output, send_work, fwd_sends


def interleaved(rank: Rank) -> None:
    """Several stages on each rank; works are kept until the step is over."""
    _in_turn(rank, actions(rank))


def zero_bubble(rank: Rank) -> None:
    """One stage or several on each rank, and backward in two halves."""
    _in_turn(rank, split_actions(rank))


def v_shaped(rank: Rank) -> None:
    """Two stages on each rank, the first and the last one on the same."""
    _in_turn(rank, v_actions(rank))


def _in_turn(rank: Rank, turns: list[tuple[str, int, int]]) -> None:
    """What goes to a stage of the same rank is not sent: it takes the place of the buffer there."""
    send_ops = []
    here = {stage.index: stage for stage in rank.stages}
    for what, local, number in turns:
        stage = rank.stages[local]
        ops: Ops = []
        if what == FORWARD:
            output = rank.forward(stage, number)
            if stage.index + 1 in here:
                here[stage.index + 1].received[number] = stage.f.detach(output)
            else:
                ops = stage.fwd_sends(number)
            del output
        else:
            rank.backward(stage, number, what)
            if what == WEIGHT:
                continue
            if stage.index - 1 in here:
                here[stage.index - 1].grads[number] = stage.bwd_cache.pop(number)
            else:
                ops = stage.bwd_sends(number)
        send_ops.append(rank.sent(ops))
        del ops
    send_ops.clear()


def actions(rank: Rank) -> list[tuple[str, int, int]]:
    """What a rank does of the interleaved schedule: a pass, one of its stages, a micro-batch.

    Source      _get_1f1b_rank_ops and _get_warmup_ops, without the pauses
    """
    return _turns(rank, hop=2, delay=None)


def split_actions(rank: Rank) -> list[tuple[str, int, int]]:
    """What a rank does of the zero-bubble schedule: the weights' half comes `rank` turns later.

    Source      ScheduleInterleavedZeroBubble and the same two, without the pauses
    """
    return _turns(rank, hop=1, delay=rank.rank)


def _turns(rank: Rank, *, hop: int, delay: int | None) -> list[tuple[str, int, int]]:
    """Both schedules.

    hop         forward passes that a rank begins with beside those of the rank behind it
    delay       backward turns from an input's half to its weights'; None: backward is whole
    """
    each, count = len(rank.stages), rank.micro_batches
    in_round = count // max(1, count // rank.ranks)
    warm_up = min((each - 1) * in_round + hop * (rank.ranks - 1 - rank.rank), count * each)
    numbers: dict[tuple[str, int], int] = {}
    found = []

    def do(what: str, local: int) -> None:
        number = numbers.get((what, local), 0)
        found.append((what, local, number))
        numbers[what, local] = number + 1

    def back(what: str, turn: int) -> None:
        do(what, each - 1 - turn // in_round % each)

    for step in range(warm_up + count * each):
        if step < count * each:
            do(FORWARD, step // in_round % each)
        if step >= warm_up:
            back(BACKWARD if delay is None else INPUT, step - warm_up)
            if delay is not None and step - warm_up >= delay:
                back(WEIGHT, step - warm_up - delay)
    for turn in range(max(0, count * each - (delay or 0)), count * each if delay else 0):
        back(WEIGHT, turn)
    return found


def v_actions(rank: Rank) -> list[tuple[str, int, int]]:
    """What a rank does of the V-shaped schedule.

    Source      ScheduleZBVZeroBubble, without the pauses
    """
    ahead, count = rank.ranks - rank.rank, max(2 * rank.ranks - 1, rank.micro_batches)
    numbers = {(what, local): 0 for what in (FORWARD, INPUT, WEIGHT) for local in (0, 1)}
    found = []

    def do(local: int, *turns: str) -> None:
        for what in turns:
            found.append((what, local, numbers[what, local]))
            numbers[what, local] += 1

    do(0, *[FORWARD] * (2 * ahead - 1))
    for _ in range(rank.rank):
        do(1, FORWARD)
        do(0, FORWARD)
    for _ in range(ahead):
        do(1, FORWARD, INPUT, WEIGHT)
    while numbers[FORWARD, 1] < numbers[FORWARD, 0] or numbers[FORWARD, 0] < count:
        do(0, *[FORWARD] * (numbers[FORWARD, 0] < count), INPUT, WEIGHT)
        do(1, FORWARD, INPUT, WEIGHT)
    for _ in range(rank.rank):
        do(0, INPUT)
        do(1, INPUT)
    for _ in range(ahead):
        do(0, INPUT, WEIGHT)
    for local in (1, 0):
        do(local, *[WEIGHT] * (numbers[INPUT, local] - numbers[WEIGHT, local]))
    return [turn for turn in found if turn[2] < rank.micro_batches]


SCHEDULES: dict[str, Callable[[Rank], None]] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved1f1b": interleaved,
    "interleavedzerobubble": zero_bubble,
    "zbvzerobubble": v_shaped,
}
