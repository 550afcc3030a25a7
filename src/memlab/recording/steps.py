"""The whole step: families, formats, attention, optimizers, checkpoints, adapters, micro-batches.

Each case is a real training step of a tiny model, run twice; the second one counts.
"""

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from ..lab.lora import adapt
from ..lab.loss import chunked_cross_entropy
from ..lab.models.common import next_tokens
from ..lab.subject import subject
from ..measure import trace
from ..model import Model
from ..recipe import Recipe
from ..step import Lora, simulate
from .case import Case, Predicted
from .meter import Meter

MOMENTS = {
    "after_forward": "activations",
    "after_backward": "gradients",
    "between_steps": "optimizer",
    "peak": "step",
}
RECIPES = {
    "fp32": Recipe(),
    "bf16": Recipe(name="bf16", weights="bf16", gradients="bf16"),
    "autocast": Recipe(name="autocast", autocast="bf16"),
}
IMPLEMENTATIONS: dict[str, dict[str, Any]] = {
    "forloop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
# Head width 16 is a multiple of 8, which CUDA's attention kernels take without padding.
WIDE: dict[str, Any] = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4}
WIDE |= {"vocab_size": 384, "max_position_embeddings": 64, "intermediate_size": 160}
SHARED = {"num_key_value_heads": 2, "head_dim": 16}
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_layer": 3, "n_embd": 64, "n_head": 4, "vocab_size": 384, "n_positions": 64},
    "llama": WIDE | SHARED,
    "mistral": WIDE | SHARED,
    "qwen2": WIDE | {"num_key_value_heads": 2},
    "qwen3": WIDE | SHARED,
    "gemma": WIDE | SHARED,
    "opt": {k: v for k, v in WIDE.items() if k != "intermediate_size"} | {"ffn_dim": 160},
    "gpt_neox": WIDE,
}
BATCH, TOKENS = 4, 48


@dataclass(frozen=True)
class How:
    """One training step, in the words of `simulate`."""

    family: str = "llama"
    implementation: str = "transformers"
    recipe: str = "fp32"
    attention: str = "sdpa"
    kernel: str = "auto"
    optimizer: str = "forloop"
    checkpoint: str = "none"
    micro_batches: int = 1
    loss_chunks: int = 0
    lora: Lora | None = None
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        config = {"model_type": self.family, **FAMILIES[self.family]}
        object.__setattr__(self, "model", Model.from_config(config))

    def build(self) -> nn.Module:
        """The module, on the device that torch.device(...) sets."""
        module = subject(
            self.model,
            implementation=self.implementation,
            attention=self.attention,
            again=self.checkpoint == "block",
            dtype=torch.bfloat16 if self.recipe == "bf16" else torch.float32,
        )
        return module if self.lora is None else adapt(module, self.lora.rank, self.lora.targets)

    def loss(self, module: nn.Module, ids: torch.Tensor) -> torch.Tensor:
        if self.loss_chunks:
            hidden = module.model(ids).last_hidden_state.flatten(0, 1)  # type: ignore[operator]
            head: Any = module.get_submodule("lm_head").weight
            return chunked_cross_entropy(hidden, head, next_tokens(ids).flatten(), self.loss_chunks)
        if self.implementation == "memlab":
            return module(ids, ids)
        return module(ids, labels=ids).loss


def predict(how: How, backend: str) -> dict[str, Predicted]:
    """Both ways, without the device.

    On the host     AdamW's counters of steps, 4 bytes for each trained tensor, unless it is fused:
                    they are no bytes of the device
    """
    fused = how.optimizer == "fused"
    with torch.device("meta"):
        trained = sum(p.requires_grad for p in how.build().parameters())
    host = 4 * trained if backend == "cuda" and not fused else 0
    derived, traced = _derived(how, backend), _traced(how, backend)
    return {
        moment: Predicted(*(None if way is None else way[moment] - host for way in found))
        for moment, *found in ((m, derived, traced) for m in MOMENTS)
    }


def _derived(how: How, backend: str) -> dict[str, int] | None:
    if how.kernel != "auto":
        return None  # what SDPA chooses is described, not what somebody makes it choose
    step = simulate(
        how.model,
        RECIPES[how.recipe],
        batch=BATCH,
        tokens=TOKENS,
        implementation=how.implementation,
        attention=how.attention,
        backend=backend,
        optimizer_impl=how.optimizer,
        checkpoint=how.checkpoint,
        micro_batches=how.micro_batches,
        loss="chunked" if how.loss_chunks else "plain",
        loss_chunks=how.loss_chunks or 1,
        lora=how.lora,
    )
    return {**step.held, "peak": step.peak.bytes}


def _traced(how: How, backend: str) -> dict[str, int] | None:
    if how.micro_batches > 1:
        return None  # `trace` runs one forward and one backward pass a step
    ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    step = trace(
        how.build,
        (lambda module: how.loss(module, ids)) if how.loss_chunks else _inputs(how, ids),
        optimizer=partial(torch.optim.AdamW, **IMPLEMENTATIONS[how.optimizer]),
        backend=backend,
        autocast="bf16" if how.recipe == "autocast" else None,
        attention=how.kernel,
    )
    return {**step.held, "peak": step.peak}


def _inputs(how: How, ids: torch.Tensor) -> Any:
    return (ids, ids) if how.implementation == "memlab" else {"input_ids": ids, "labels": ids}


def run(how: How, meter: Meter) -> None:
    """Two steps; the second is noted."""
    module = how.build().to(meter.device)
    optimizer = torch.optim.AdamW(
        [p for p in module.parameters() if p.requires_grad], **IMPLEMENTATIONS[how.optimizer]
    )
    ids = torch.randint(how.model.vocab, (BATCH, TOKENS), device=meter.device)
    for _ in range(2):
        meter.reset_peak()
        for _ in range(how.micro_batches):
            with _setting(how, meter.device):
                loss = how.loss(module, ids)
                if how.micro_batches > 1:
                    loss = loss / how.micro_batches
            meter.note("after_forward")
            loss.backward()
            del loss
            meter.note("after_backward")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        meter.note("between_steps")
        meter.note_peak()


def _setting(how: How, device: str) -> ExitStack:
    stack = ExitStack()
    cast = how.recipe == "autocast"
    stack.enter_context(torch.autocast(device, torch.bfloat16) if cast else nullcontext())
    if how.kernel != "auto":
        kernels = torch.nn.attention
        backend = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
        chosen = getattr(kernels.SDPBackend, backend[how.kernel])
        stack.enter_context(kernels.sdpa_kernel(chosen))
    return stack


def case(name: str, what: str, term: str | None = None, **how: Any) -> Case:
    chosen = How(**how)
    terms = {moment: term or default for moment, default in MOMENTS.items()}
    lacks = _no_kernel if chosen.kernel != "auto" else (lambda device: "")
    return Case(name, what, terms, partial(predict, chosen), partial(run, chosen), lacks=lacks)


def _no_kernel(device: str) -> str:
    return "" if device == "cuda" else "SDPA on a CPU has no such choice of kernels"


def cases() -> list[Case]:
    """All of them, families first."""
    found = []
    for family in FAMILIES:
        for recipe in RECIPES:
            words = f"a step of a tiny {family} of transformers in {recipe}, AdamW in a loop"
            found.append(case(f"step/{family}/{recipe}", words, family=family, recipe=recipe))
    for family in ("gpt2", "llama", "qwen3"):
        words = f"a step of a tiny {family}, attention written out (eager), bf16"
        more: dict[str, Any] = {"family": family, "recipe": "bf16", "attention": "eager"}
        found.append(case(f"attention/eager/{family}", words, "activations", **more))
    for recipe in ("fp32", "autocast"):
        words = f"a step of memlab's tiny Llama in {recipe}"
        more = {"implementation": "memlab", "recipe": recipe}
        found.append(case(f"mixed-precision/{recipe}", words, "mixed-precision", **more))
    for kernel in ("flash", "efficient", "math"):
        words = f"a step of memlab's GPT-2 in bf16 with SDPA's {kernel} kernel"
        more = {"family": "gpt2", "implementation": "memlab", "recipe": "bf16", "kernel": kernel}
        found.append(case(f"attention/{kernel}", words, "activations", **more))
    for optimizer in ("foreach", "fused"):
        words = f"a step of a tiny Llama, fp32, AdamW {optimizer}"
        found.append(case(f"optimizer/{optimizer}", words, "optimizer", optimizer=optimizer))
    for recipe in RECIPES:
        words = f"a step of a tiny Llama in {recipe}, every block computed again in backward"
        more = {"recipe": recipe, "checkpoint": "block"}
        found.append(case(f"checkpointing/{recipe}", words, "checkpointing", **more))
    words = "a step of a tiny Llama in four micro-batches, fp32"
    found.append(case("accumulation/4", words, "accumulation", micro_batches=4))
    words = "a step of a tiny Llama in fp32, its loss in four chunks of rows"
    found.append(case("logits/chunked", words, "logits", loss_chunks=4))
    words = "a step of a tiny Llama in bf16 with adapters of rank 8 on q and v"
    more = {"implementation": "memlab", "recipe": "bf16", "lora": Lora(8, ("q", "v"))}
    found.append(case("lora/8", words, "lora", **more))
    return found
