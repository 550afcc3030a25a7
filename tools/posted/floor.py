"""The least that a posted figure can be, by the recipe that its own row states."""

from memlab.recipe.least import least

PEAKS = ("peak", "allocated", "reserved", "step")


def floor(said):
    """Bytes that a peak of this run cannot lie below; 0 of a figure that is no peak of a step."""
    if said.figure not in PEAKS:
        return 0
    return sum(least(said.model, said.recipe, said.run).values())
