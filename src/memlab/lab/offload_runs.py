"""Two programs that are run in a process of their own, to see what the system says they hold.

`where` is "here", as everybody does it, or "file". Each calls `mark` at its moments, as those of
memlab.lab.loading do for memlab.measure.process.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from ..model import Model
from .generate import Cache, generate
from .host import File
from .models import TinyLlama
from .models.llama import LlamaLayer
from .offload import Offload
from .offloaded_optimizer import OffloadedStates
from .streaming import Stream
from .train import one_thread

Mark = Callable[[str], None]

# The first optimizer makes torch load hundreds of modules. Here it happens once, before a process
# of its own is forked for each run.
torch.optim.AdamW([torch.zeros(1, requires_grad=True)])


def shape(layers: int, width: int) -> Model:
    """A Llama over bytes, with layers large enough to stand out in a process."""
    model = Model.preset("tiny-llama")
    return model.replace(layers=layers, d_model=width, d_ff=3 * width, head_dim=width // 4)


def train(where: str, layers: int, width: int, mark: Mark) -> None:
    """Two steps; marks what is held between forward and backward, and after the step."""
    net, ids = TinyLlama(shape(layers, width)), torch.zeros(4, 64, dtype=torch.long)
    saved, states = File(), File()
    opt: Optimizer = torch.optim.AdamW(net.parameters())
    if where == "file":
        opt = OffloadedStates(net.parameters(), torch.optim.AdamW, states)
    with one_thread():
        for number in ("first", "second"):
            if where == "file":
                with Offload(saved, keep=[net, ids]):
                    loss = net(ids, ids)
            else:
                loss = net(ids, ids)
            mark(f"{number} forward")
            loss.backward()
            del loss
            opt.step()
            opt.zero_grad()
            mark(f"{number} step")


@torch.no_grad()
def answer(where: str, layers: int, width: int, mark: Mark) -> None:
    """Read a prompt and say one token; marks each layer after its weights were used."""
    model, host = shape(layers, width), File()
    net = TinyLlama(model.replace(layers=1))
    made = (LlamaLayer(model) for _ in range(layers))  # one at a time, where they are sent away
    if where == "file":
        net.layers = Stream(made, host, torch.device("cpu"))  # type: ignore[assignment]
        watched: list[Any] = [net.layers.shell]
    else:
        net.layers = torch.nn.ModuleList(made)
        watched = list(net.layers)

    def after(*_: object) -> None:
        host.settle()  # so that what is on its way has come
        mark("layer")

    for layer in watched:
        layer.feed_forward.register_forward_hook(after)
    with one_thread():
        generate(net, torch.zeros(1, 8, dtype=torch.long), Cache(model, 1, 16), tokens=1)
