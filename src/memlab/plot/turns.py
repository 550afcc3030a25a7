"""A pipeline's schedule as a picture: which micro-batch each rank computes, turn by turn."""

from collections.abc import Mapping, Sequence

from ..base.message import Message
from ..base.messages import Localized
from .canvas import WIDTH, Canvas, Picture, heading, room_of
from .colours import COLOURS, GREY, PAPER, ink_on

HIGH, GAP, LEFT, NARROW, BROAD = 22, 6, 62, 12, 30
KINDS = {
    "F": ("forward", COLOURS["activations"]),
    "B": ("backward", COLOURS["gradients"]),
    "I": ("backward: gradient of the input", COLOURS["accumulator"]),
    "W": ("backward: gradients of the weights", COLOURS["optimizer"]),
}


def turns(made: Mapping[str, Sequence[tuple[str, int, int]]], title: str = "") -> Picture:
    """Draw each rank's turns in a row; nothing is drawn where a rank waits.

    Shapes      made: for each rank its turns (what, when, for how long): "F0" is the forward pass
                of micro-batch 0, drawn as 1; B a backward pass, I and W its halves
    Leaves out  the number of a turn that is too short for its digits
    Raises      ValueError for no turn, an unknown kind, and more time than there is room for
    """
    every = [turn for order in made.values() for turn in order]
    end = max((start + length for _, start, length in every), default=0)
    room = (WIDTH - LEFT) // NARROW
    if not 0 < end <= room:
        pattern = "{1} units of time; the picture has room for 1 to {2}"
        raise ValueError(Message(pattern, end, room))
    for said, _, _ in every:
        if said[0] not in KINDS:
            raise ValueError(f"turn {said!r}; known: {', '.join(KINDS)}")
    sheet = Canvas()
    y = heading(sheet, title) + HIGH / 2
    wide = min(BROAD, (WIDTH - LEFT) / end)
    for name, order in made.items():
        sheet.words(0, y, name)
        sheet.line(LEFT, y, LEFT + end * wide, y)
        for said, start, length in order:
            fill = KINDS[said[0]][1]
            x = LEFT + start * wide
            sheet.box(x, y - HIGH / 2, length * wide, HIGH, fill, edge=PAPER)
            number = Localized(str(int(said[1:]) + 1))
            if room_of(number) <= length * wide:
                sheet.words(x + length * wide / 2, y, number, "middle", colour=ink_on(fill))
        y += HIGH + GAP
    sheet.words(LEFT, y, "time", colour=GREY)
    y += HIGH
    used = {said[0] for said, _, _ in every}
    keys = [KINDS[kind] for kind in KINDS if kind in used]
    return sheet.picture(title or "A schedule", y + sheet.key(0, y, keys))
