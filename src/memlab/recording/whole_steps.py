"""The whole step: families, formats, attention, optimizers, checkpoints, adapters, micro-batches.

Each case is a real training step of a tiny model, run twice; the second one counts.
"""

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from ..families import record_of
from ..lab.fused_backward import step_in_backward
from ..lab.subject import loss_of, subject
from ..lab.trace_run import trace_run
from ..measure.trace import LOOPS
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step import Lora, simulate
from .case import Case, Predicted
from .meter import Meter

MOMENTS = {
    "after_forward": "activations",
    "after_backward": "gradients",
    "between_steps": "optimizer",
    "peak": "step",
}
# Head width 16 is a multiple of 8, which CUDA's attention kernels take without padding.
SIZES: dict[str, Any] = {"layers": 3, "d_model": 64, "heads": 4, "kv_heads": 2, "vocab": 384}
SIZES |= {"positions": 64, "d_ff": 160, "head_dim": 16}
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "opt", "gpt_neox")
PRECISIONS = ("fp32", "bf16", "autocast")
BATCH, TOKENS = 4, 48
MIXTURE = {"experts": 8, "experts_per_token": 2, "expert_ff": 32}


def tiny(family: str) -> Model:
    """A small model of a family; gpt2 has F = 4 · D, qwen3_moe a few experts."""
    sizes = {field: size for field, size in SIZES.items() if (family, field) != ("gpt2", "d_ff")}
    sizes |= MIXTURE if family == "qwen3_moe" else {}
    return Model.from_config({"model_type": family} | record_of(family).config(sizes))


@dataclass(frozen=True)
class StepCase:
    """A tiny model of a family, a recipe, and the run of one training step."""

    model: Model
    recipe: Recipe
    run: Run

    def on(self, backend: str) -> Run:
        """The run on the device that is measured."""
        return self.run.replace(backend=backend)

    def build(self) -> nn.Module:
        """The module, on the device that torch.device(...) sets."""
        return subject(self.model, self.recipe, self.run)


def predict(how: StepCase, backend: str) -> dict[str, Predicted]:
    """Both ways, without the device.

    On the host     AdamW's counters of steps, 4 bytes for each trained tensor, unless it is fused:
                    they are no bytes of the device
    Nothing         where the backend has no such kernel: the row is skipped, not failed
    """
    if how.run.kernel != "auto" and _no_kernel(backend):
        return {}
    run = how.on(backend)
    with torch.device("meta"):
        trained = sum(p.requires_grad for p in how.build().parameters())
    host = 4 * trained if backend == "cuda" and run.optimizer_loop != "fused" else 0
    derived, traced = _derived(how, run), _traced(how, run)
    return {
        moment: Predicted(*(None if way is None else way[moment] - host for way in found))
        for moment, *found in ((m, derived, traced) for m in MOMENTS)
    }


def _derived(how: StepCase, run: Run) -> dict[str, int] | None:
    if run.kernel != "auto":
        return None  # what SDPA chooses is described, not what somebody makes it choose
    step = simulate(how.model, how.recipe, run)
    return {**step.held, "peak": step.peak.bytes}


def _traced(how: StepCase, run: Run) -> dict[str, int] | None:
    if run.micro_batches > 1 or run.step_in_backward:
        return None  # a trace runs one forward and one backward pass, and an update after them
    step = trace_run(how.model, how.recipe, run)
    return {**step.held, "peak": step.peak}


def run(how: StepCase, meter: Meter) -> None:
    """Two steps; the second is noted."""
    module = how.build().to(meter.device)
    trained = [p for p in module.parameters() if p.requires_grad]

    def make(some: list[Any]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(some, **LOOPS[how.run.optimizer_loop])

    optimizer = step_in_backward(trained, make) if how.run.step_in_backward else make(trained)
    assert how.run.tokens is not None
    size = (how.run.batch, how.run.tokens)
    ids = torch.randint(how.model.vocab, size, device=meter.device)
    for _ in range(2):
        meter.reset_peak()
        for _ in range(how.run.micro_batches):
            with _setting(how, meter.device):
                loss = loss_of(module, ids, how.run)
                if how.run.micro_batches > 1:
                    loss = loss / how.run.micro_batches
            meter.note("after_forward")
            loss.backward()
            del loss
            meter.note("after_backward")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        meter.note("between_steps")
        meter.note_peak()


def _setting(how: StepCase, device: str) -> ExitStack:
    stack = ExitStack()
    cast = how.recipe.autocast == "bf16"
    stack.enter_context(torch.autocast(device, torch.bfloat16) if cast else nullcontext())
    if how.run.kernel != "auto":
        kernels = torch.nn.attention
        backend = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
        chosen = getattr(kernels.SDPBackend, backend[how.run.kernel])
        stack.enter_context(kernels.sdpa_kernel(chosen))
    return stack


def case(
    name: str,
    what: str,
    term: str | None = None,
    *,
    family: str = "llama",
    recipe: str = "fp32",
    **how: Any,
) -> Case:
    """A step of a family; `how` are fields of Run beside the loop, which is always said."""
    model = tiny(family)
    said = {"batch": BATCH, "tokens": TOKENS, "dropout": 0.0, "optimizer_impl": "forloop", **how}
    chosen = StepCase(model, Recipe.named(recipe), Run(**said))
    terms = {moment: term or default for moment, default in MOMENTS.items()}
    lacks = _no_kernel if chosen.run.kernel != "auto" else (lambda device: "")
    return Case(name, what, terms, partial(predict, chosen), partial(run, chosen), lacks=lacks)


def _no_kernel(device: str) -> str:
    return "" if device == "cuda" else "SDPA on a CPU has no such choice of kernels"


def cases() -> list[Case]:
    """All of them, families first."""
    found = []
    for family in FAMILIES:
        for recipe in PRECISIONS:
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
        found.append(case(f"optimizer/{optimizer}", words, "optimizer", optimizer_impl=optimizer))
    for recipe in PRECISIONS:
        words = f"a step of a tiny Llama in {recipe}, every block computed again in backward"
        more = {"recipe": recipe, "checkpoint": "block"}
        found.append(case(f"checkpointing/{recipe}", words, "checkpointing", **more))
    words = "a step of a tiny Llama in four micro-batches, fp32"
    found.append(case("accumulation/4", words, "accumulation", micro_batches=4))
    words = "a step of a tiny Llama in fp32, its loss in four chunks of rows"
    found.append(case("logits/chunked", words, "logits", loss="chunked", loss_chunks=4))
    words = "a step of a tiny Llama in bf16 with adapters of rank 8 on q and v"
    more = {"implementation": "memlab", "recipe": "bf16", "lora": Lora(8, ("q", "v"))}
    found.append(case("lora/8", words, "lora", **more))
    words = "a step of a tiny Qwen3-MoE in bf16, two of eight experts for each token"
    found.append(case("experts/2-of-8", words, "experts", family="qwen3_moe", recipe="bf16"))
    words = "a step of a tiny Llama in fp32 inside backward, AdamW fused"
    more = {"optimizer_impl": "fused", "step_in_backward": True}
    found.append(case("step-in-backward/fp32", words, "step-in-backward", **more))
    return found
