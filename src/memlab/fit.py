"""The inverse of an estimate: the largest batch, the longest sequence that fits a device.

Every answer comes from simulating the step (memlab.step), so it is as exact as that, and the bytes
that a simulation leaves out must be left free: the CUDA context, kernels' scratch memory, rounding
and fragmentation. `spare` says how many; its default, SPARE, is a habit and no measurement.
"""

from __future__ import annotations

from .devices import Device, device
from .frozen import dataclass
from .model import Model
from .recipe import Recipe
from .step import simulate
from .units import GiB, parse, text, whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# https://github.com/stas00/ml-engineering reports CUDA contexts of 0.47 to 1.78 GiB, by version of
# torch and by lazy loading; nothing was measured here. Give what your own machine shows.
SPARE = GiB

# What a program that says nothing gets on a GPU: CUDA's kernels, and AdamW's foreach loop.
ON_A_GPU = {"backend": "cuda", "optimizer_impl": "foreach"}


@dataclass(frozen=True)
class Fit:
    """The largest number that fits, and the peaks that decided it.

    value       a batch or a number of tokens; 0: not even the smallest fits
    peak        bytes of the step with `value` (of the smallest one where value is 0)
    limit       bytes that the step may take: the device's, less what is spared
    """

    what: str
    value: int
    peak: int
    limit: int
    device: str

    def __str__(self) -> str:
        if not self.value:
            over = text(self.peak - self.limit)
            return f"no {self.what} fits {self.device}: the smallest step is {over} too large"
        return (
            f"largest {self.what} on {self.device}: {self.value:,} "
            f"(peak {text(self.peak)} of {text(self.limit)})"
        )


def largest_batch(
    model: Model,
    recipe: Recipe | str = "fp32",
    *,
    on: str | int | Device,
    tokens: int,
    spare: int = SPARE,
    most: int = 4096,
    **choices: Any,
) -> Fit:
    """The largest batch whose training step fits.

    Unit        sequences of `tokens` tokens
    Shapes      on: a device's name, or bytes; choices: those of memlab.step.simulate, where the
                backend is "cuda" and AdamW's loop "foreach" unless they say otherwise
    Leaves out  what `spare` bytes are left free for
    Raises      ValueError for an unknown device and for what `simulate` does not describe
    """
    return _search(
        "batch",
        lambda n: peak_of(model, recipe, batch=n, tokens=tokens, **choices),
        on,
        spare,
        1,
        most,
    )


def longest_sequence(
    model: Model,
    recipe: Recipe | str = "fp32",
    *,
    on: str | int | Device,
    batch: int = 1,
    spare: int = SPARE,
    **choices: Any,
) -> Fit:
    """The most tokens in a sequence whose training step fits, up to the model's positions.

    Unit        tokens
    Shapes      on: a device's name, or bytes; choices: those of memlab.step.simulate, where the
                backend is "cuda" and AdamW's loop "foreach" unless they say otherwise
    Leaves out  what `spare` bytes are left free for
    Raises      ValueError for an unknown device and for what `simulate` does not describe
    """

    def peak(n: int) -> int:
        return peak_of(model, recipe, batch=batch, tokens=n, **choices)

    return _search("sequence", peak, on, spare, 2, model.positions)


def _search(what: str, peak: Any, on: Any, spare: int, least: int, most: int) -> Fit:
    """The largest n in least … most with peak(n) <= limit; the peak grows with n."""
    limit, name = limit_of(on, spare)
    low, at_low = least - 1, peak(least)
    if at_low > limit:
        return Fit(what, 0, at_low, limit, name)
    high = most + 1
    step = least
    while low + step < high:  # double until it is too large, so that few large steps are simulated
        if peak(low + step) > limit:
            high = low + step
            break
        low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if peak(middle) > limit:
            high = middle
        else:
            low = middle
    return Fit(what, low, peak(low), limit, name)


def limit_of(on: str | int | Device, spare: int) -> tuple[int, str]:
    """Bytes that a step may take, and the device's name.

    Raises      ValueError for an unknown device or a size that is none
    """
    whole("spare", spare)
    if isinstance(on, int):
        return max(0, whole("on", on) - spare), text(on)
    if isinstance(on, str) and on[:1].isdigit():
        return max(0, parse(on) - spare), on
    found = device(on)
    return max(0, found.limit - spare), found.name


def peak_of(model: Model, recipe: Recipe | str, **setting: Any) -> int:
    """The peak of a step as a program that says nothing gets it on a GPU; `setting` says more."""
    if "loss_chunks" in setting:  # a search begins with fewer rows than anybody would cut
        rows = setting["batch"] * setting["tokens"]
        setting["loss_chunks"] = min(setting["loss_chunks"], rows)
    return simulate(model, recipe, **(ON_A_GPU | setting)).peak.bytes
