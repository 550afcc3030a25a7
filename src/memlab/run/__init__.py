"""Run: how a step is executed; what each field may hold, and whose program runs it."""

from .run import CacheAlone as CacheAlone
from .run import Run as Run
