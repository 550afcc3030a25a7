"""The argument with which a framework or an engine takes what a control asks, as people type it.

The form shows them in code font, so that no language changes them; tests/test_page_arguments.py
holds each against the installed library. The page's engine needs none of them. A control that no
library has an argument for has no entry here, and a library that has none is not in its entry.
Source      vLLM, engine/arg_utils.py; SGLang, srt/server_args.py; llama.cpp, common/arg.cpp;
            nanoGPT, train.py; what is installed: torch, transformers, trl, peft
"""

from __future__ import annotations

from ..run.loops import LOOPS, TRAINERS, TRL
from .serve_controls import LLAMA_CPP, NO_ENGINE

OWN_LOOPS = ("plain", "keeps-outputs")
NANOGPT = ("nanogpt",)
ENGINES = ("vllm", "sglang")
FRACTION = "{fraction}"  # of a percentage, as an engine is told it
# Of transformers' from_pretrained(); TRL's trainers pass them on as model_init_kwargs.
LOADED = (*OWN_LOOPS, *TRAINERS)


def _each(libraries: tuple[str, ...], *names: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(libraries, names)


# Name of the control: loop or engine: the names of its arguments.
ARGUMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "batch": _each(OWN_LOOPS + NANOGPT, "batch_size")
    | _each(TRAINERS, "per_device_train_batch_size"),
    "tokens": _each((*OWN_LOOPS, "trainer", "sft", "dpo", "gkd"), "max_length")
    | _each(NANOGPT, "block_size"),
    "micro_batches": _each(NANOGPT + TRAINERS, "gradient_accumulation_steps"),
    "teacher": _each(("distillation", "gkd"), "teacher_model"),
    "teacher_weights": _each(("distillation", "gkd"), "teacher_model_init_kwargs"),
    "completion": {
        "sft": ("completion_only_loss",),
        "grpo": ("max_completion_length",),
        "distillation": ("max_completion_length",),
        "gkd": ("max_new_tokens",),
    },
    "trained": _each((*OWN_LOOPS, "trainer"), "get_peft_model") | _each(TRL, "peft_config"),
    "rank": _each(tuple(LOOPS), "r"),
    "targets": _each(tuple(LOOPS), "target_modules"),
    "lora_dropout": _each(tuple(LOOPS), "lora_dropout"),
    "precision": _each(OWN_LOOPS, "dtype", "torch.autocast")
    | _each(NANOGPT, "dtype")
    | _each(("trainer",), "dtype", "bf16")
    | _each(TRL, "model_init_kwargs", "bf16"),
    "optimizer": _each(OWN_LOOPS, "torch.optim") | _each(TRAINERS, "optim"),
    "optimizer_impl": _each(OWN_LOOPS, "foreach", "fused") | _each(TRAINERS, "optim"),
    "attention": _each(LOADED, "attn_implementation"),
    "checkpoint": _each(OWN_LOOPS, "gradient_checkpointing_enable")
    | _each(TRAINERS, "gradient_checkpointing"),
    "loss": _each(OWN_LOOPS, "linear_cross_entropy"),
    "data": _each(tuple(LOOPS), "--nproc-per-node"),
    "zero": _each(OWN_LOOPS, "fully_shard") | _each(TRAINERS, "fsdp", "deepspeed"),
    "param_dtype": _each(OWN_LOOPS, "param_dtype") | _each(TRAINERS, "bf16"),
    "tensor": _each(OWN_LOOPS, "tp_plan"),
    "pipeline": _each(OWN_LOOPS, "torch.distributed.pipelining"),
    "context": {"vllm": ("--max-model-len",), "sglang": ("--context-length",)},
    "dtype": _each(ENGINES, "--dtype", "--quantization")
    | _each((NO_ENGINE,), "dtype", "quantization_config"),
    "kv": _each(ENGINES, "--kv-cache-dtype"),
    "gguf": _each((LLAMA_CPP,), "--model"),
    "gguf_kv": _each((LLAMA_CPP,), "--cache-type-k", "--cache-type-v"),
    "share": {
        "vllm": (f"--gpu-memory-utilization {FRACTION}",),
        "sglang": (f"--mem-fraction-static {FRACTION}",),
    },
    "cards": {"vllm": ("--tensor-parallel-size",), "sglang": ("--tp-size",)},
}
# Controls that an engine decides; a training framework decides the others.
OF_ENGINES = ("context", "dtype", "kv", "gguf", "gguf_kv", "share", "cards")


def arguments_of(control: str, loop: str, engine: str, value: object) -> tuple[str, ...]:
    """What the form shows beside a control that has this value."""
    said = ARGUMENTS.get(control, {}).get(engine if control in OF_ENGINES else loop, ())
    fraction = f"{value / 100:.2f}" if isinstance(value, int) else ""
    return tuple(name.replace(FRACTION, fraction) for name in said)
