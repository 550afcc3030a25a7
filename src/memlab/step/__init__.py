"""A training step, simulated: what it holds when, and its peak, from shapes alone."""

from ..adapters import Ia3 as Ia3
from ..adapters import Lora as Lora
from ..adapters import Prompt as Prompt
from ..adapters import Vera as Vera
from .simulate import Peak as Peak
from .simulate import Step as Step
from .simulate import simulate as simulate
