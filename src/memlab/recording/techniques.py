"""FP8 layers and their product, and what is sent to a host: things that only some devices do."""

from functools import partial

import torch
from torch import nn

from ..lab.fp8 import E4M3, FP8Recipe, autocast, cast, product
from ..lab.host import File, Host
from ..lab.models import TinyLlama
from ..lab.offload import Offload
from ..model import Model
from ..run import Run
from ..step import simulate
from ..terms import fp8
from .case import Case, Predicted
from .meter import Meter

ROWS, INPUTS, OUTPUTS = 128, 256, 384
LLAMA = Model.preset("tiny-llama")


def linear(keep: str, meter: Meter) -> None:
    """One layer in FP8: its weight, its result, and what it keeps for backward."""
    weight = nn.Parameter(torch.ones(OUTPUTS, INPUTS, dtype=torch.bfloat16, device=meter.device))
    x = torch.ones(ROWS, INPUTS, dtype=torch.bfloat16, device=meter.device, requires_grad=True)
    read = x * 1  # a layer's input is another's result, which nobody else keeps
    with autocast(FP8Recipe(keep=keep)):
        y = nn.functional.linear(read, weight)
    del read
    meter.note("held")
    del y


def linear_keeps(keep: str, backend: str) -> dict[str, Predicted]:
    kept = fp8.linear(ROWS, inputs=INPUTS, outputs=OUTPUTS, keep=keep)
    wide = 2 * (OUTPUTS * INPUTS + ROWS * INPUTS + ROWS * OUTPUTS)
    return {"held": Predicted(derived=wide + kept)}


def multiplied(meter: Meter) -> None:
    """torch._scaled_mm itself: two factors in eight bits, a result in sixteen."""
    a = cast(torch.ones(ROWS, INPUTS, device=meter.device))
    b = cast(torch.ones(OUTPUTS, INPUTS, device=meter.device))
    y = product(a, (b[0].t(), b[1]), torch.bfloat16)
    meter.note("held")
    del y


def factors(backend: str) -> dict[str, Predicted]:
    copies = ROWS * INPUTS + OUTPUTS * INPUTS + 2 * fp8.SCALE_BYTES
    return {"held": Predicted(derived=copies + 2 * ROWS * OUTPUTS)}


def no_scaled_mm(device: str) -> str:
    """Source      aten/src/ATen/native/cuda/Blas.cpp, _scaled_mm: compute capability 8.9 or more"""
    if device == "cuda" and torch.cuda.get_device_capability() < (8, 9):
        return "torch._scaled_mm needs compute capability 8.9"
    return ""


def host_for(device: str) -> Host:
    if device == "cpu":
        return File()
    from ..lab.pinned import Pinned

    return Pinned()


def sent(meter: Meter) -> None:
    """Two steps of a tiny Llama whose saved tensors live elsewhere until backward."""
    host = host_for(meter.device)
    net = TinyLlama(LLAMA).to(meter.device)
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    ids = torch.zeros(8, 64, dtype=torch.long, device=meter.device)
    for _ in range(2):
        with Offload(host, keep=[net, ids]):
            loss = net(ids, ids)
        if meter.device == "cuda":
            torch.cuda.synchronize()  # what is on its way to the host is still on the device
            # The allocator looks for blocks that another stream has done with when it is asked.
            torch.empty(1, device="cuda")
        meter.note("after_forward")
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if isinstance(host, File):
        host.settle()


def stays(backend: str) -> dict[str, Predicted]:
    step = simulate(
        LLAMA,
        "fp32",
        Run(
            batch=8,
            tokens=64,
            implementation="memlab",
            backend=backend,
            optimizer_impl="fused",
            offload=("saved",),
        ),
    )
    return {"after_forward": Predicted(derived=step.held["after_forward"])}


def cases() -> list[Case]:
    found = []
    for keep in fp8.KEEP:
        words = f"one linear layer in FP8 that keeps: {keep}"
        name = f"fp8/linear/{keep.replace('+', '-and-')}"
        how = partial(linear_keeps, keep), partial(linear, keep)
        found.append(Case(name, words, {"held": "fp8"}, *how))
    words = f"torch._scaled_mm of {E4M3}: both factors, both scales, the result in bf16"
    terms = {"held": "fp8"}
    found.append(Case("fp8/scaled_mm", words, terms, factors, multiplied, lacks=no_scaled_mm))
    words = "a step of a tiny Llama in fp32, saved tensors on a host, AdamW fused"
    terms = {"after_forward": "offloading"}
    found.append(Case("offloading/saved", words, terms, stays, sent))
    return found
