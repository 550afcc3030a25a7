"""A training step, simulated: what it holds when, and its peak, from shapes alone."""

from ..terms.adapters import Ia3 as Ia3
from ..terms.adapters import Prompt as Prompt
from ..terms.adapters import Vera as Vera
from ..terms.lora import Lora as Lora
from .simulate import Peak as Peak
from .simulate import Step as Step
from .simulate import simulate as simulate
