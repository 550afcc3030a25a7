"""Offloading: what stays on the device, what crosses the bus, and how long that takes at least.

S bytes of optimizer states · A of saved tensors · w of a layer's weights · L layers · P parameters
"""

from __future__ import annotations

from ..units import whole

# Billion transfers a second on each lane, one bit each. PCI Express Base Specification 3.0, 4.0 and
# 5.0; all three send 130 bits for 128.
TRANSFERS = {3: 8, 4: 16, 5: 32}


def pcie(generation: int, *, lanes: int = 16) -> int:
    """Bytes per second that a PCI Express link can carry, in each direction.

    Formula     lanes · transfers per second · 128/130 bits, 8 to a byte
    Unit        bytes per second, rounded down; 31,507,692,307 for generation 4 with 16 lanes
    Source      PCI Express Base Specification 4.0 (PCI-SIG 2017): 16 GT/s a lane, 128b/130b
    Leaves out  headers of packets and waiting: a real copy gets less
    Raises      ValueError for a generation that is not listed here, or no lanes
    """
    if generation not in TRANSFERS:
        known = ", ".join([str(each) for each in sorted(TRANSFERS)])
        raise ValueError(f"generation={generation!r} is not listed; known: {known}")
    if whole("lanes", lanes) == 0:
        raise ValueError("lanes=0; a link has at least one (a GPU's has 16)")
    return lanes * TRANSFERS[generation] * 10**9 * 128 // (130 * 8)


def microseconds(count: int, *, bandwidth: int) -> int:
    """How long `count` bytes take at least.

    Formula     bytes / bandwidth
    Unit        microseconds, a whole number, rounded up
    Leaves out  what each transfer costs whatever its size: see `least` in memlab.lab.offload
    Raises      TypeError or ValueError for a count below zero or no bandwidth
    """
    _rate("bandwidth", bandwidth)
    return -(-whole("count", count) * 10**6 // bandwidth)


def traffic(saved: int = 0, *, states: int = 0) -> int:
    """Bytes that cross the bus in one training step, both directions together.

    Formula     2 · A + 2 · S: each saved storage goes out in forward and comes back in backward;
                each state comes for its update and goes back
    Unit        bytes, a whole number
    Source      memlab.lab.offload, memlab.lab.offloaded_optimizer
    Raises      as `microseconds`
    """
    return 2 * whole("saved", saved) + 2 * whole("states", states)


def traffic_of_host_update(gradients: int, *, weights: int) -> int:
    """Bytes that cross the bus in one step if the host itself computes the update.

    Formula     G + W: gradients go out, new weights come in, states never move
    Unit        bytes, a whole number
    Source      Ren et al. 2021, ZeRO-Offload, arXiv:2101.06840, section 3; torchao's
                CPUOffloadOptimizer
    Raises      as `microseconds`
    """
    return whole("gradients", gradients) + whole("weights", weights)


def streamed(layers: int, *, layer: int, rest: int, ahead: int = 1) -> int:
    """Bytes of weights on the device, at most, while layers come from a host one by one.

    Formula     rest + (1 + ahead) · w, at most rest + L · w
    Shapes      layer: bytes of one layer's weights; rest: of embedding, head and norms, which stay;
                ahead: layers that are on their way while one is computed
    Unit        bytes, a whole number; over the bus go L · w in each pass
    Raises      as `microseconds`
    """
    there = min(1 + whole("ahead", ahead), whole("layers", layers))
    return whole("rest", rest) + there * whole("layer", layer)


def tokens_to_hide(
    count: int, *, parameters: int, bandwidth: int, flops: int, passes: int = 1
) -> int:
    """The fewest tokens for which computing takes as long as moving `count` bytes.

    Formula     bytes / bandwidth <= 2 · P · passes · tokens / FLOP per second: each parameter of a
                matrix is multiplied and added once for each token in forward, twice in backward
    Shapes      parameters: those computed with meanwhile; passes: 1 forward, 3 with backward
    Unit        tokens, a whole number; for the weights themselves it does not depend on P
    Source      Kaplan et al. 2020, arXiv:2001.08361, table 1: 2 · P in forward
    Leaves out  attention between tokens (more to compute), and that no device reaches its peak
    Raises      as `microseconds`; ValueError for nothing to compute
    """
    _rate("bandwidth", bandwidth)
    _rate("flops", flops)
    work = 2 * whole("parameters", parameters) * whole("passes", passes)
    if work == 0:
        raise ValueError(f"parameters={parameters}, passes={passes}: nothing hides a transfer")
    return -(-whole("count", count) * flops // (work * bandwidth))


def _rate(name: str, value: int) -> None:
    if whole(name, value) == 0:
        raise ValueError(f"{name}=0; a number per second is needed, such as pcie(4)")
