"""The terms alone: weights, keys and values, loading, matrices in block formats, optimizers."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..formats import storage
from ..lab.generate import Cache, GrowingCache
from ..lab.models import TinyGPT, TinyLlama
from ..lab.optim import optimizer
from ..lab.quantize import quantize
from ..model import Model
from ..terms.kv_cache import growth, kv_cache
from ..terms.optimizer import STEP_BYTES, learning_rates, state
from ..terms.weights import weights
from .case import Case, Predicted
from .meter import Meter

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
LLAMA, GPT = Model.preset("tiny-llama"), Model.preset("tiny-gpt")
TOKENS = 40
ROWS, COLUMNS = 384, 1024
# Quantized at all from 4,096 values on; one matrix inside the network, one outside, one vector.
PARAMETERS = {"layers.0.attention.q": (128, 96), "embedding": (160, 64), "norm": (128,)}
SMALL = ("sgd", "momentum", "adamw", "amsgrad", "adafactor", "lion", "muon", "galore/8")
TORCHAO = ("adamw8bit", "adamw4bit", "adamw_fp8")


def build(model: Model, format: str, meter: Meter) -> nn.Module:
    with torch.device(meter.device):
        made = TinyGPT(model) if model.family == "gpt2" else TinyLlama(model)
    return made.to(DTYPES[format])


def weighed(model: Model, format: str, meter: Meter) -> None:
    module = build(model, format, meter)
    meter.note("held")
    del module


def weight_cases() -> list[Case]:
    found = []
    for tied in (True, False):
        model = GPT.replace(tied=tied)
        for format in DTYPES:
            size = weights(model.parameter_count, format=format)
            name = f"weights/{'tied' if tied else 'untied'}/{format}"
            words = f"a tiny GPT-2 in {format}, its head {'tied' if tied else 'of its own'}"
            found.append(_held(name, words, "weights", size, partial(weighed, model, format)))
    return found


def filled(format: str, growing: bool, meter: Meter) -> None:
    """A cache that takes in a prompt and then one token, as attention hands them over."""
    how: dict[str, Any] = {"dtype": DTYPES[format], "device": meter.device}
    cache = GrowingCache(LLAMA, 2, **how) if growing else Cache(LLAMA, 2, TOKENS, **how)
    for tokens in (TOKENS - 1, 1):
        shape = (2, LLAMA.kv_heads, tokens, LLAMA.head_dim)
        new = torch.ones(shape, **how)
        meter.reset_peak()
        for layer in range(LLAMA.layers):
            cache.append(layer, new, new)
        meter.note_peak()
        del new
    meter.note("held")


def cache_cases() -> list[Case]:
    found = []
    shape = {"kv_heads": LLAMA.kv_heads, "head_dim": LLAMA.head_dim, "batch": 2}
    for format in DTYPES:
        size = kv_cache(LLAMA.layers, **shape, tokens=TOKENS, format=format)
        one = kv_cache(1, **shape, tokens=1, format=format) // 2  # the new token's, as it comes
        more = growth(**shape, tokens=TOKENS, new=1, format=format)
        for kind, peak in (("static", size + one), ("growing", size + one + more)):
            words = f"a {kind} cache of {TOKENS} tokens for a tiny Llama in {format}"
            found.append(
                Case(
                    f"kv-cache/{kind}/{format}",
                    words,
                    {"held": "kv-cache", "peak": "kv-cache"},
                    partial(_said, {"held": size, "peak": peak}),
                    partial(filled, format, kind == "growing"),
                    scratch=(),
                )
            )
    return found


def loaded(assign: bool, meter: Meter) -> None:
    """A checkpoint that was read onto the device, given to a model there."""
    with torch.device("meta"):
        shapes = TinyGPT(GPT).state_dict()
    if assign:
        with torch.device("meta"):
            module = TinyGPT(GPT)
    else:
        module = build(GPT, "fp32", meter)  # type: ignore[assignment]
    meter.reset_peak()
    state = {name: torch.ones(t.shape, device=meter.device) for name, t in shapes.items()}
    tied = {name: state[_first(shapes, name)] for name in state} if GPT.tied else state
    del state
    module.load_state_dict(tied, assign=assign)
    meter.note_peak()
    del tied
    meter.note("held")


def _first(shapes: dict[str, Tensor], name: str) -> str:
    return "embedding.weight" if name == "lm_head.weight" else name


def loading_cases() -> list[Case]:
    size = weights(GPT.parameter_count, format="fp32")
    table = weights(GPT.vocab * GPT.d_model, format="fp32") if GPT.tied else 0
    found = []
    for name, assign, copies in (("copy", False, 2), ("assign", True, 1)):
        words = f"a checkpoint read onto the device; load_state_dict(assign={assign})"
        found.append(
            Case(
                f"loading/{name}",
                words,
                {"peak": "loading", "held": "loading"},
                # The tied table is read under both of its names before one of them is dropped.
                partial(_said, {"peak": copies * size + table, "held": size}),
                partial(loaded, assign),
                scratch=(),
            )
        )
    return found


def narrowed(format: str, meter: Meter) -> None:
    wide = torch.ones(ROWS, COLUMNS, dtype=torch.bfloat16, device=meter.device)
    kept = quantize(wide, format)
    del wide
    meter.note("held")
    del kept


def block_cases() -> list[Case]:
    found = []
    for format in ("int8/128", "nf4", "mxfp8", "mxfp4", "nvfp4"):
        size = storage(ROWS * COLUMNS, format, row=COLUMNS)
        words = f"a matrix of {ROWS} x {COLUMNS} in {format}, codes and scales"
        name, term = f"quantization/{format}", "quantization"
        found.append(_held(name, words, term, size, partial(narrowed, format)))
    return found


def updated(name: str, states: tuple[str, ...] | None, meter: Meter) -> None:
    """Parameters, their gradients and what one step of the optimizer leaves behind."""
    parameters = {}
    for key, shape in PARAMETERS.items():
        name_ = key if "." not in key else f"model.{key}."
        parameters[name_] = nn.Parameter(torch.ones(shape, device=meter.device))
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    made = optimizer(name, parameters, states=states)
    # torchao compiles its step, which takes a minute and changes nothing that stays.
    eager = torch._dynamo.config.patch(disable=True)  # type: ignore[no-untyped-call]
    with torch.no_grad(), eager:
        made.step()
    meter.note("held")


def kept(name: str, states: tuple[str, ...] | None, backend: str) -> dict[str, Predicted]:
    """Weights, gradients and states; on CUDA without what stays on the host."""
    total = 0
    for key, shape in PARAMETERS.items():
        hidden = len(shape) == 2 and "layers" in key
        own = name in ("muon", "galore/8") and hidden
        size = state(name, shape=shape, hidden=hidden, formats=states if own else None)
        count = 1
        for length in shape:
            count *= length
        total += 2 * 4 * count + size
        counts = not (own or name in ("sgd", "momentum", "lion"))
        total -= STEP_BYTES if backend == "cuda" and counts else 0
    rates = learning_rates(name) if name in TORCHAO else 0
    return {"held": Predicted(derived=total + (rates if backend == "cpu" else 0))}


def optimizer_cases() -> list[Case]:
    found = []
    several: list[tuple[str, str, tuple[str, ...] | None]] = [(n, n, None) for n in SMALL]
    several += [("muon, int8/128", "muon", ("int8/128",)), *((n, n, None) for n in TORCHAO)]
    for label, name, states in several:
        words = f"three parameters, their gradients, and what {label} keeps of them"
        found.append(
            Case(
                f"small-optimizers/{label.replace(', ', '-').replace('/', '-')}",
                words,
                {"held": "small-optimizers"},
                partial(kept, name, states),
                partial(updated, name, states),
            )
        )
    return found


def cases() -> list[Case]:
    return [
        *weight_cases(),
        *cache_cases(),
        *loading_cases(),
        *block_cases(),
        *optimizer_cases(),
    ]


def _held(name: str, what: str, term: str, size: int, run: Any) -> Case:
    return Case(name, what, {"held": term}, partial(_said, {"held": size}), run)


def _said(sizes: dict[str, int], backend: str) -> dict[str, Predicted]:
    """Formulas that are the same on every device."""
    return {moment: Predicted(derived=size) for moment, size in sizes.items()}
