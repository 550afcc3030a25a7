"""Weights that come layer by layer: a model answers in a fraction of its bytes.

Both decoders of memlab.lab say `for layer in self.layers`. A `Stream` in that place brings each
layer's weights when its turn comes, and asks for the next layer's before this one computes.
"""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from .host import Host
from .models import TinyGPT, TinyLlama


class Stream(nn.Module):
    """Layers of one shape whose weights are on a host; iterating yields them, one at a time.

    layers      any iterable, a generator too: each is let go of once it has been sent, so a model
                that would not fit can be built and sent layer by layer
    ahead       ask for the next layer before this one computes. On the device are two then
    Formula     on the device 2 · w of L · w; over the bus L · w for each pass, long or short
    Source      Sheng et al. 2023, FlexGen, arXiv:2303.06865, and offloading in Hugging Face
                accelerate: a layer's weights come before it runs and go afterwards
    Leaves out  training: backward would have to bring them again
    Raises      ValueError for no layers, and for layers of several shapes
    """

    def __init__(
        self, layers: Iterable[nn.Module], host: Host, device: torch.device, *, ahead: bool = True
    ) -> None:
        super().__init__()
        self.host, self.device, self.ahead = host, device, ahead
        self.places, self.size, shell = [], 0, None
        for layer in layers:
            shapes = [(p.shape, p.dtype, p.nbytes) for p in layer.parameters()]
            if shell is not None and shapes != self.shapes:
                raise ValueError(f"layer {len(self.places)} has other shapes than the one before")
            self.shapes = shapes
            self.size, shell = sum(size for _, _, size in self.shapes), layer
            flat = torch.empty(self.size, dtype=torch.uint8, device=device)
            for part, parameter in zip(self._parts(flat), layer.parameters(), strict=True):
                part.copy_(parameter.detach())
            self.places.append(host.send(flat.untyped_storage()))
        if shell is None:
            raise ValueError("no layers to stream")
        self.shell = shell.requires_grad_(False)  # all weights pass through this one layer
        self._empty()

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[nn.Module]:
        coming = None
        for i in range(len(self)):
            memory, wait = coming or self._ask(i)
            wait()
            for part, parameter in zip(self._parts(memory), self.shell.parameters(), strict=True):
                parameter.data = part  # and the layer before goes
            del memory, part
            coming = self._ask(i + 1) if self.ahead and i + 1 < len(self) else None
            yield self.shell
            if coming is None:
                self._empty()

    def _ask(self, i: int) -> tuple[Tensor, Callable[[], None]]:
        return self.host.ask(self.places[i], self.size, self.device)

    def _parts(self, memory: Tensor) -> Iterator[Tensor]:
        """The parameters of a layer, one after the other, as parts of `memory`."""
        start = 0
        for shape, dtype, size in self.shapes:
            yield memory[start : start + size].view(dtype).view(shape)
            start += size

    def _empty(self) -> None:
        for parameter in self.shell.parameters():
            parameter.data = parameter.new_empty(0)


def stream(net: TinyLlama | TinyGPT, host: Host, *, ahead: bool = True) -> TinyLlama | TinyGPT:
    """Send the weights of a model's layers to a host, in place. Embedding, head and norms stay.

    Example     generate(stream(net, File()), ids, cache, tokens=20)
    """
    device = net.lm_head.weight.device
    net.layers = Stream(net.layers, host, device, ahead=ahead)  # type: ignore[assignment]
    return net
