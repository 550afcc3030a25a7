"""Going through parameters, and lists of temporaries, one for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..core.engine import Engine
from ..core.graph import Parameter, Tensor

Each = Callable[[], Iterator[Parameter]]
Made = tuple[str, Sequence[int], str]  # a state's or a temporary's name, shape and dtype


def in_order(
    engine: Engine, layers: int, only: Sequence[Parameter] | None = None
) -> Iterator[Parameter]:
    """Parameters in the order of registration, the layers between the simulated ones included.

    only        the parameters of one module among several; None: all that the engine has
    """
    known = engine.parameters if only is None else only
    inside = [p for p in known if p.layer is not None]
    start = known.index(inside[0])
    of: dict[int | None, list[Parameter]] = {}
    for parameter in inside:
        of.setdefault(parameter.layer, []).append(parameter)
    yield from known[:start]
    for layer in engine.each_layer(layers):
        yield from of.get(layer, ())
    yield from (p for p in known[start:] if p.layer is None)


def trained(engine: Engine, layers: int) -> Each:
    """Those that have a gradient, as often as they are asked for."""

    def each() -> Iterator[Parameter]:
        return (p for p in in_order(engine, layers) if p.node is not None)

    return each


def taken() -> None:
    """A step that was made in backward, one parameter after the other: nothing is left of it."""


def those(each: Each, wanted: Callable[[Parameter], bool]) -> Each:
    """Some of them."""

    def some() -> Iterator[Parameter]:
        return (p for p in each() if wanted(p))

    return some


def make_states(engine: Engine, each: Each, states: Callable[[Parameter], Sequence[Made]]) -> None:
    """The states that a parameter does not have yet."""
    for parameter in each():
        if not parameter.state:
            parameter.state = [
                engine.new(name, shape, dtype, "optimizer").storage
                for name, shape, dtype in states(parameter)
            ]


class Temporaries:
    """One tensor for each parameter, all of them alive until the list is dropped."""

    def __init__(self, engine: Engine, each: Each, make: Callable[[Parameter], Made]) -> None:
        self.log, self.first = engine.log, len(engine.log.events)
        self.made: list[Tensor] = [engine.new(*make(parameter)) for parameter in each()]
        self.last = len(engine.log.events)

    def drop(self) -> None:
        """Those of layers that are not simulated, too."""
        self.log.undo(self.first, self.last)
        self.made.clear()
