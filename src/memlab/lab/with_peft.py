"""Adapters as peft makes them, on a model of transformers."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..adapters import Ia3, Prompt, Vera
from ..adapters.lora import WRAPPED
from ..model import Model
from ..model.module_names import end_names, module_names
from ..run import Run
from .quiet import quiet

# The name of a linear layer in the LLaMA family, where it is not the one of Model.tensors().
THEIRS = {"out": "o"}


def with_peft(module: nn.Module, model: Model, run: Run) -> nn.Module:
    """The model of transformers itself, with the run's adapters inside and all else frozen.

    Returns     what peft.get_peft_model wraps, which is changed in place; with a prompt its wrapper
    Raises      ValueError where peft is not installed
    """
    made: Any = wrapped(module, model, run)
    # A prompt is joined to the embeddings by what wraps the model.
    return made if isinstance(run.adapters, Prompt) else made.get_base_model()  # type: ignore[no-any-return]


def wrapped(module: nn.Module, model: Model, run: Run) -> nn.Module:
    """The same in peft's wrapper, which a trainer is given.

    Raises      ValueError where peft is not installed
    """
    peft, adapters = _peft(), run.adapters
    with quiet():
        own = next(module.parameters()).dtype
        fmt = adapters.format(_name(own), peft=True)
        wide = getattr(adapters, "dtype", None) is None or fmt == "fp32"
        config = _config(peft, model, adapters)
        return peft.get_peft_model(module, config, autocast_adapter_dtype=wide)  # type: ignore[no-any-return]


def _config(peft: Any, model: Model, adapters: Any) -> Any:
    """What peft is told of these adapters."""
    said: dict[str, Any] = {"task_type": "CAUSAL_LM"}
    if isinstance(adapters, Prompt):
        return peft.PromptTuningConfig(num_virtual_tokens=adapters.tokens, **said)
    inside = module_names(model, adapters.targets)
    wrapped = [path for name, path in inside.items() if name in WRAPPED]
    modules = [path for path in inside.values() if path not in wrapped]
    said |= {"target_modules": modules, "fan_in_fan_out": model.conv1d}
    if isinstance(adapters, Ia3):
        before = [name for name in adapters.targets if adapters.scales_inputs(name)]
        return peft.IA3Config(feedforward_modules=[inside[name] for name in before], **said)
    if isinstance(adapters, Vera):
        return peft.VeraConfig(r=adapters.rank, vera_dropout=adapters.dropout, **said)
    ends = end_names(model)
    return peft.LoraConfig(
        r=adapters.rank,
        rank_pattern={inside[name]: rank for name, rank in adapters.ranks},
        modules_to_save=[ends[name].split(".")[-1] for name in adapters.saved] or None,
        lora_dropout=adapters.dropout,
        use_dora=adapters.dora,
        target_parameters=wrapped or None,
        lora_alpha=2 * adapters.rank,
        alpha_pattern={inside[name]: 2 * rank for name, rank in adapters.ranks},
        **said,
    )


def on_codes(run: Run) -> dict[str, Any]:
    """What TRL is told of a base in nf4, whose products are in bf16, and of adapters beside it."""
    transformers, lora = importlib.import_module("transformers"), run.lora
    assert lora is not None  # who asks has a base of codes
    how = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    bits = transformers.BitsAndBytesConfig(**how, bnb_4bit_compute_dtype=torch.bfloat16)
    inside = [f"{THEIRS.get(name, name)}_proj" for name in lora.targets]
    said: dict[str, Any] = {"r": lora.rank, "lora_dropout": lora.dropout}
    config = _peft().LoraConfig(target_modules=inside, task_type="CAUSAL_LM", **said)
    return {"quantization_config": bits, "peft_config": config}


class OnHost:
    """Numbers of a prompt's virtual tokens: on a host, of which each call has a copy on the card.

    Source      peft, peft_model.py: get_prompt; they are in no parameter and in no buffer, so
                no `.to("cuda")` moves them
    """

    def __init__(self, count: int, rows: int = 1) -> None:
        self.count, self.rows = count, rows

    def unsqueeze(self, place: int) -> "OnHost":
        return self

    def expand(self, rows: int, *_: int) -> "OnHost":
        return OnHost(self.count, rows)

    def to(self, device: torch.device) -> torch.Tensor:
        return torch.zeros((self.rows, self.count), dtype=torch.long, device=device)


def numbers_on_host(module: Any) -> None:
    """Let a trace of a run on a card see the copies of a prompt's numbers alone."""
    for name, numbers in module.prompt_tokens.items():
        module.prompt_tokens[name] = OnHost(len(numbers))


def four_bits(module: nn.Module) -> nn.Module:
    """Every linear layer but the output head as bitsandbytes.nn.Linear4bit in nf4, in place.

    As from_pretrained has them with BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=
    "nf4", bnb_4bit_compute_dtype=torch.bfloat16), scales in fp32 and not quantized themselves.

    Raises      ValueError where bitsandbytes is not installed
    """
    with quiet():
        try:
            own = importlib.import_module("bitsandbytes").nn
        except ModuleNotFoundError as error:
            words = "a base in nf4 needs bitsandbytes: pip install bitsandbytes"
            raise ValueError(words) from error
    how = {"quant_type": "nf4", "compress_statistics": False}
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and name != "lm_head":
                weight = child.weight.data
                compute = weight.dtype if weight.dtype != torch.float32 else torch.bfloat16
                sizes = (child.in_features, child.out_features, child.bias is not None)
                made = own.Linear4bit(*sizes, compute_dtype=compute, **how)
                codes = own.Params4bit(weight.to(compute), requires_grad=False, module=made, **how)
                made.weight, made.bias = codes, child.bias
                setattr(parent, name, made.to(weight.device))
    module.is_loaded_in_4bit = True  # type: ignore[assignment]
    return module


def scales_of(module: nn.Module) -> list[torch.Tensor]:
    """What bitsandbytes keeps beside its codes, in no parameter and no buffer."""
    states: list[Any] = [getattr(p, "quant_state", None) for p in module.parameters()]
    return [tensor for state in states if state for tensor in (state.absmax, state.code)]


@contextmanager
def unfused(module: nn.Module) -> Iterator[None]:
    """bitsandbytes' product as the operators that it is made of, which a tracker sees one by one.

    Source      bitsandbytes, backends/default/ops.py: _gemm_4bit_default_impl
    """
    if not scales_of(module):
        yield
        return
    from bitsandbytes.backends.default.ops import _gemm_4bit_default_impl

    packet: Any = torch.ops.bitsandbytes.gemm_4bit
    before = packet.default
    packet.default = lambda *given, **named: _gemm_4bit_default_impl(*given, **named)
    try:
        yield
    finally:
        packet.default = before


def _name(dtype: Any) -> str:
    return {"torch.bfloat16": "bf16", "torch.float16": "fp16"}.get(str(dtype), "fp32")


def _peft() -> Any:
    with quiet():
        try:
            return importlib.import_module("peft")
        except ModuleNotFoundError as error:
            raise ValueError("adapters on transformers need peft: pip install peft") from error
