"""The least that the peak of a run can be, whatever else the run holds.

A figure that somebody posted for a whole training step and that lies below it cannot be what it
says: another optimizer ran, another precision, or none of its states was there yet.
"""

from __future__ import annotations

from ..formats import storage
from ..model import Model
from ..recipe.recipe import Recipe
from ..recipe.resident import fullest, resident, tensor_bytes
from ..sharding.adapter_rows import part_count
from .recipe_choice import tied_as
from .run import Run


def least(model: Model, recipe: Recipe, run: Run, stage: int | None = None) -> dict[str, int]:
    """Bytes by term that stand together when the optimizer begins, of any implementation.

    Formula     weights + gradients + states + master + accumulator of what is trained, and weights
                alone of what is not and of a call; without what waits on a host, and without
                gradients where each goes as soon as it is complete
    Unit        bytes; of several ranks, one of the fullest pipeline stage or of `stage`
    Leaves out  all that is made on the way: activations, logits, copies
    Raises      ValueError where the devices do not divide the model
    """
    shaped = tied_as(model, recipe)
    if run.phase != "train":
        return {"weights": resident(shaped, recipe, run.devices, stage or 0)["weights"]}
    if run.adapters is not None:
        return _adapted(shaped, recipe, run)
    if run.frozen:
        found: dict[str, int] = {}
        for tensor in shaped.tensors():
            for term, size in tensor_bytes(tensor, recipe, run.devices).items():
                if term == "weights" or tensor.component not in run.frozen:
                    found[term] = found.get(term, 0) + size * tensor.copies
    elif stage is None:
        found = dict(fullest(shaped, recipe, run.devices)[1])
    else:
        found = resident(shaped, recipe, run.devices, stage)
    return _there(found, run)


def _adapted(model: Model, recipe: Recipe, run: Run) -> dict[str, int]:
    """A frozen base, and adapters whose values are those of the format that they are stored in."""
    theirs = run.adapters_in(recipe.weights)
    trained = storage(run.adapters.parameter_count(model), theirs)
    if run.lora is not None and run.devices.fsdp:
        trained = storage(part_count(run.lora, model, run.devices), theirs)
    base = resident(model, recipe, run.devices)["weights"]
    if run.lora is not None and run.lora.base is not None:
        base = run.lora.base_bytes(model, recipe.weights)
        if run.implementation == "transformers":
            base += run.lora.codes_beside(model, recipe.weights)
    found = {"weights": base + trained, "gradients": trained}
    found["optimizer"] = 2 * trained if recipe.optimizer == "adamw" else 0
    return _there(found, run)


def _there(found: dict[str, int], run: Run) -> dict[str, int]:
    if run.devices.policy.cpu_offload:
        return {}
    gone = {"optimizer"} if {"states", "optimizer"} & set(run.offload) else set()
    if run.step_in_backward or "gradients" in run.offload:
        gone.add("gradients")
    return {term: size for term, size in found.items() if term not in gone}
