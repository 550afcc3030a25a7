"""vLLM's start-up logs: the line about its weights. Its own profile run is its own program."""

from memlab import Model, Recipe, Run
from memlab.recipe.parallelism import Sharding

from .described import Described, Refused


def describe(reading):
    """Weights in bf16, divided by tensor parallelism.

    Raises      Refused
    """
    if "vision" in reading.id:
        raise Refused("a model that reads pictures")
    if "weights" not in reading.counter:
        raise Refused("vLLM's profile run, whose limits are not stated")
    devices = Sharding(tensor=reading.what["tp"])
    recipe = Recipe.named("bf16")
    return Described(Model.preset("llama-3-8b"), recipe, Run(devices=devices), "weights")
