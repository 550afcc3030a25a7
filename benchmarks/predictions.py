"""What each tool says that a training step takes at its peak; the same step for all of them.

A tool is asked with the option that fits the step best. One that has no such option raises
ValueError with the reason, and the benchmark counts it as no answer, not as an error.
"""

import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from memlab import Run
from memlab.measure import trace
from memlab.measure.trace import LOOPS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "real"))
from real_steps import Question, build, quiet, simulated  # noqa: E402


@dataclass(frozen=True)
class Tool:
    """A tool and how it was asked.

    package     the distribution whose version counts; None for a rule of thumb
    options     the call and its options, in the words of its own documentation
    counts      what its answer holds
    command     what a user types for the timed step; None: a process that calls `predict`
    timed       False where no time would say anything new
    """

    name: str
    package: str | None
    predict: Callable[[Question], int]
    options: str
    counts: str
    command: tuple[str, ...] | None = None
    timed: bool = True


def on_meta(step: Question) -> torch.nn.Module:
    """The module with shapes and no values."""
    with quiet(), torch.device("meta"):
        return build(step)


def size(module: torch.nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())


def ids(step: Question) -> torch.Tensor:
    return torch.zeros(step.run.batch, step.run.tokens, dtype=torch.long)


def cast(step: Question) -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, enabled=step.precision == "autocast-bf16")


def closed_form(step: Question) -> int:
    return simulated(step).peak.bytes


def traced(step: Question) -> int:
    module, shape = on_meta(step), ids(step)
    return trace(
        module,
        {"input_ids": shape, "labels": shape},
        Run.cpu(optimizer_impl=step.run.optimizer_impl),
        autocast=step.recipe.autocast,
    ).peak


def mem_tracker(step: Question) -> int:
    """The second step, as with a real one: the first makes the optimizer's states."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    with quiet(), FakeTensorMode():
        module, given = build(step), ids(step)
        optimizer = torch.optim.AdamW(module.parameters(), **LOOPS[step.run.optimizer_loop])

        def run() -> None:
            with cast(step):
                loss = module(given, labels=given).loss
            loss.backward()
            del loss
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        run()
        tracker = MemTracker()
        tracker.track_external(module, optimizer, given)
        with tracker:
            run()
        return tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]


def rule(step: Question) -> int:
    """Weight, gradient and two states, each in the format of the weights."""
    return 4 * size(on_meta(step))


def accelerate(step: Question) -> int:
    """The largest of the figures that the function returns, as its command prints it."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils.modeling import calculate_maximum_sizes

    total, _ = calculate_maximum_sizes(on_meta(step))
    mixed = "bfloat16" if step.precision == "autocast-bf16" else "float32"
    return max(estimate_training_usage(total, mixed).values())


def deepspeed(step: Question) -> int:
    if step.precision != "autocast-bf16":
        raise ValueError("the estimators are for mixed precision")
    with contextlib.redirect_stdout(io.StringIO()), quiet():
        from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    count = sum(p.numel() for p in on_meta(step).parameters())
    return estimate_zero2_model_states_mem_needs(count, 1, 1, cpu_offload=False)[1]


def torchinfo(step: Question) -> int:
    from torchinfo import summary

    with quiet(), cast(step):
        given = {"input_ids": ids(step), "labels": ids(step)}
        found = summary(build(step), input_data=given, mode="train", verbose=0, device="cpu")
    return found.total_input + found.total_output_bytes + found.total_param_bytes


def torchinfo_and_rule(step: Question) -> int:
    return torchinfo(step) + 3 * size(on_meta(step))


# The step that is timed: the same for all, and large enough to be of use.
TIMED = Question(
    {
        "model_type": "qwen3",
        "num_hidden_layers": 28,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": True,
    },
    "autocast-bf16",
    Run.cpu(batch=1, tokens=512),
)
SHELL = (
    *("qwen3-0.6b", "--implementation", "transformers", "--backend", "cpu"),
    *("--precision", "autocast-bf16", "--optimizer-impl", "forloop"),
    *("--batch", "1", "--tokens", "512"),
)

STATES = "weights, gradients, optimizer states"
TOOLS = (
    Tool(
        "memlab estimate",
        "memlab",
        closed_form,
        "`simulate(...)` with the step's own settings",
        "the peak of the step, from the config alone",
        ("-m", "memlab", "estimate", *SHELL),
    ),
    Tool(
        "memlab trace",
        "memlab",
        traced,
        "`trace(model, inputs, Run.cpu())`",
        "the peak of the step, run on fake tensors",
        ("-m", "memlab", "trace", *SHELL),
    ),
    Tool(
        "MemTracker",
        "torch",
        mem_tracker,
        "the second step under `FakeTensorMode`, after `track_external(model, optimizer, ids)`",
        "the peak of the step, run on fake tensors",
    ),
    Tool(
        "bytes per parameter",
        None,
        rule,
        "16 bytes (fp32 and autocast: 4 + 4 + 8), 8 in pure bf16 (2 + 2 + 4)",
        STATES,
        timed=False,
    ),
    Tool(
        "accelerate",
        "accelerate",
        accelerate,
        "`estimate_training_usage` of `calculate_maximum_sizes(model)`: `bfloat16` for autocast, "
        "else `float32` on the model in its own format; the largest figure, as "
        "`accelerate estimate-memory` prints it",
        f"{STATES}; the batch is not asked for",
    ),
    Tool(
        "DeepSpeed",
        "deepspeed",
        deepspeed,
        "`estimate_zero2_model_states_mem_needs`, one GPU, no offload; autocast steps alone, since "
        "it is made for mixed precision",
        f"{STATES}, as DeepSpeed keeps them",
    ),
    Tool(
        "torchinfo",
        "torchinfo",
        torchinfo,
        '`summary(model, input_data=..., mode="train")`: Estimated Total Size',
        "weights, outputs of layers; no optimizer",
    ),
    Tool(
        "torchinfo and the rule",
        "torchinfo",
        torchinfo_and_rule,
        "the same, plus gradients and two states in the format of the weights",
        "weights, outputs of layers, gradients, optimizer states",
        timed=False,
    ),
)
