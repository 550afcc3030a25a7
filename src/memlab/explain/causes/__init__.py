"""What can make a run need more than was predicted, or less: each cause as a switch to be turned.

No cause has bytes of its own. It turns a run (or a recipe) into another one, and what it costs is
the peak after, less the peak before; or it says that a counter read another moment than the peak.
Each table has what goes one way, `MORE`, and what goes the other, `LESS`.
"""

from . import of_counter, of_devices, of_formats, of_loop, of_program, of_step, of_training, of_work
from .cause import CONTEXTS as CONTEXTS
from .cause import EMPTY as EMPTY
from .cause import GRADES as GRADES
from .cause import OFTEN as OFTEN
from .cause import SELDOM as SELDOM
from .cause import SOMETIMES as SOMETIMES
from .cause import Cause as Cause

# Of two that fit as well the one that stands first here is told first.
CAUSES: tuple[Cause, ...] = (
    *(*of_formats.MORE, *of_step.MORE, *of_loop.MORE, *of_work.MORE, *of_devices.MORE),
    *of_program.MORE,
)
LESS: tuple[Cause, ...] = (
    *(*of_step.LESS, *of_formats.LESS, *of_training.LESS, *of_work.LESS, *of_counter.LESS),
    *of_devices.LESS,
)
