"""What can make a run need more than was predicted: each cause as a switch that can be turned.

No cause has bytes of its own. It turns a run (or a recipe) into another one, and what it costs is
the peak after, less the peak before.
"""

from .cause import CONTEXTS as CONTEXTS
from .cause import EMPTY as EMPTY
from .cause import GRADES as GRADES
from .cause import OFTEN as OFTEN
from .cause import SELDOM as SELDOM
from .cause import SOMETIMES as SOMETIMES
from .cause import Cause as Cause
from .of_devices import DEVICES
from .of_formats import FORMATS
from .of_loop import LOOP
from .of_program import PROGRAM
from .of_step import STEP
from .of_work import WORK

# Of two that fit as well the one that stands first here is told first.
CAUSES: tuple[Cause, ...] = (*FORMATS, *STEP, *LOOP, *WORK, *DEVICES, *PROGRAM)
