"""The shape of a network: `Model`, its parameter tensors, its families, presets and config.json."""

from .model import Model as Model
from .model import presets as presets
