"""What can make a run need less than was predicted: each cause as a switch, as of those of more.

A cause turns a run (or a recipe) into one that is cheaper, and what it saves is the peak before,
less the peak after; or it says that a counter read another moment than the peak.
"""

from ..causes import Cause
from .of_counter import COUNTER
from .of_devices import DEVICES
from .of_formats import FORMATS
from .of_step import STEP
from .of_training import TRAINED
from .of_work import WORK

# Of two that fit as well the one that stands first here is told first.
LESS: tuple[Cause, ...] = (*STEP, *FORMATS, *TRAINED, *WORK, *COUNTER, *DEVICES)
