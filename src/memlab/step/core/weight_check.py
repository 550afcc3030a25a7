"""Whether a network that was built for a step has the weights of its model, adapters included."""

from __future__ import annotations

from ...families import record_of
from ...formats import storage
from ...model import Model
from ...model.tensors import Tensor
from ...run import Run
from ...sharding.adapter_rows import weight_bytes
from ...terms.optimizer import numel

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


def check_built(model: Model, built: int, dtype: str, run: Run) -> None:
    """The network has the parameters of the model, or a flag of the model means nothing to it."""
    cut = run.devices.tensor_parallel
    wanted = _stored(run.devices.tensors(model) if cut else model.tensors(), dtype, run)
    if (lora := run.lora) is not None:
        theirs = run.adapters_in(dtype)
        if run.devices.fsdp:
            wanted = weight_bytes(lora, model, dtype, theirs, run.devices)
            return _check_weights(model, built, wanted)
        wanted = lora.base_bytes(model, dtype) + storage(lora.parameter_count(model), theirs)
        wanted += storage(lora.saved_count(model), dtype)
        if lora.base is not None and run.implementation == "transformers":
            wanted += lora.codes_beside(model, dtype)
    if (other := run.adapter) is not None:
        wanted += storage(other.parameter_count(model), other.format(dtype, peft=True))
    _check_weights(model, built, wanted)


def check_weights(model: Model, built: int, dtype: str, run: Run, stage: int) -> None:
    """The same of one rank of a pipeline."""
    _check_weights(model, built, _stored(run.devices.tensors(model, stage), dtype, run))


def _stored(tensors: Sequence[Tensor], dtype: str, run: Run) -> int:
    shapes = [(run.devices.shape(tensor, "weights"), tensor.copies) for tensor in tensors]
    return storage(sum(numel(shape) * copies for shape, copies in shapes), dtype)


def _check_weights(model: Model, built: int, wanted: int) -> None:
    if built == wanted:
        return
    usual = {"embed_dim": model.d_model, **record_of(model.family).flags}
    own = [f"{k}={getattr(model, k)!r}" for k, v in usual.items() if getattr(model, k) != v]
    raise ValueError(
        f"the {model.family} network that is described has {built:,} bytes of weights, this model "
        f"{wanted:,}: not all of {', '.join(own)} is described; known: the family's own values"
    )
