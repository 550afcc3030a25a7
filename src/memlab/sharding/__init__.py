"""Sharding: how many devices share a run and what they divide, each scheme in a file of its own."""

from .deepspeed import DeepSpeed as DeepSpeed
from .expert_parallel import ExpertParallel as ExpertParallel
from .fsdp import FsdpPolicy as FsdpPolicy
from .pipeline import Schedule as Schedule
from .sharding import Sharding as Sharding
from .tensor_parallel import TensorPlan as TensorPlan
