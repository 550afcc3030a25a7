"""A training step, simulated: what it holds when, and its peak, from shapes alone."""

from ..terms.lora import Lora as Lora
from .simulate import Peak as Peak
from .simulate import Step as Step
from .simulate import simulate as simulate
