"""The commands for training on one GPU, source by source, and for several in the same programs."""

from typing import Any

from .. import megatron, peft
from ..described import Refused
from ..litgpt import SHARDED
from .words import command

ALL = ("q", "k", "v", "out", "gate", "up", "down")
COMPILED = "torch.compile, whose plan takes minutes for each row"
UNSTATED = "the length of the sequences is not stated"
NO_OPTION = "a method of PEFT that memlab has no option for"


def of_peft(reading):
    """PEFT's comparison: a bf16 base, padded batches of at most 768 tokens, clipped gradients.

    One command has both readings of a run: at the peak, and after a step.
    """
    what = reading.what
    told = {"precision": "bf16", "batch": what["batch"], "tokens": 768, "texts": "padded"}
    return command("llama-3.2-3b", **told, clip=True, **adapters_of_peft(what["method"]))


def adapters_of_peft(name):
    """The options of a method, as its adapter_config.json beside the results says them.

    Raises      Refused for one without an option
    """
    if name.startswith("full-finetuning"):
        return {}
    if name in peft.LORAS:
        rank, targets = peft.LORAS[name]
        return {"lora_rank": rank, "lora_targets": targets}
    if name not in peft.OTHERS:
        raise Refused(NO_OPTION)
    other: Any = peft.OTHERS[name]
    if name.startswith("ia3"):
        return {"ia3": other.targets}
    if name.startswith("vera"):
        return {"vera_rank": other.rank, "lora_targets": other.targets}
    return {"prompt_tokens": other.tokens}


def of_litgpt(reading):
    """LitGPT's recipes: bf16-true, which makes adapters in bf16 too, and at most 512 tokens."""
    what = reading.what
    told: dict[str, Any] = {"precision": "bf16", "batch": what["micro_batch"], "tokens": 512}
    if what["recipe"] in SHARDED:
        told["fsdp"] = SHARDED[what["recipe"]][0]
    model = {"phi-3": "phi-3-mini-4k", "mistral-7b-v0.2": "mistral-7b-v0.1"}
    if what["lora"]:
        told |= lora_of_litgpt(what["lora"], "nf4" if what["quantize"] else None)
    return command(model.get(what["model"], what["model"]), **told)


def lora_of_litgpt(said, base):
    """The options of LitGPT's adapters.

    Raises      Refused for adapters of the head
    """
    if said["lora_head"] == "true":
        raise Refused("adapters beside the output head")
    names: dict[str, tuple[str, ...]]
    names = {"query": ("q",), "key": ("k",), "value": ("v",), "projection": ("out",)}
    names["mlp"] = ("gate", "up", "down")
    found = [each for name, own in names.items() if said[f"lora_{name}"] == "true" for each in own]
    told = {"lora_rank": said["lora_r"], "lora_targets": tuple(found), "lora_dtype": "bf16"}
    return told | {"lora_dropout": said["lora_dropout"], "lora_base": base}


def of_litgpt_tables(reading):
    """LitGPT's tables: the longest sample, and the defaults of its programs of 2023-10."""
    what = reading.what
    if what["quantize"] == "int8":
        raise Refused("8 bits of bitsandbytes")
    if what["method"] == "generate":
        formats = {"bf16-true": "bf16", "16-true": "bf16", "32-true": "fp32"}
        told = {"precision": formats[what["precision"]], "quantization": what["quantize"]}
        return command(what["model"], **told, phase="decode", tokens=what["new_tokens"])
    if what["method"] != "lora":
        raise Refused("LLaMA-Adapter")
    told = {"precision": "bf16", "batch": what["micro_batch"], "tokens": what["longest"]}
    told |= {"lora_rank": 8, "lora_targets": ("q", "v"), "lora_dtype": "bf16"}
    told |= {"lora_dropout": 0.05, "lora_base": what["quantize"]}
    return command(what["model"], **told, fsdp=what["gpus"] if what["gpus"] > 1 else None)


def of_torchtune(reading):
    """torchtune's tables: bf16, and each row what it names.

    Raises      Refused
    """
    what, name = reading.what, reading.id.removeprefix("torchtune/")
    if what.get("compile") or what.get("step"):  # each row of 2024-11 has what those above it have
        raise Refused(COMPILED)
    if reading.group == "several GPUs":
        raise Refused("recipes of several GPUs whose options are not stated")
    tokens = str(what.get("tokens", "")).removeprefix("packed to ").removeprefix("not packed, <=")
    model = {"Llama2-7B": "llama-2-7b", "Llama 3.2 3B": "llama-3.2-3b"}
    model["Llama-3.2-3B"] = "llama-3.2-3b"
    told: dict[str, Any] = {"precision": "bf16"}
    if "moment" not in what or what["moment"].startswith("training"):
        if not tokens.isdigit():
            raise Refused(UNSTATED)
        told |= {"batch": what["batch"], "tokens": tokens}
        told["checkpoint"] = "block" if "checkpointing" in what else None
        told["texts"] = "packed" if "packed to" in str(what["tokens"]) else None
    if what.get("lora"):
        told |= {"lora_rank": 64 if "64" in what["lora"] else 8}
        told["lora_targets"] = (
            ("q", "v", "out", "gate", "up", "down") if "mlp" in what["lora"] else ("q", "v")
        )
        told |= {"lora_dtype": "bf16", "lora_base": "nf4" if "qlora" in name else None}
    elif what.get("optimizer", "").startswith("bitsandbytes"):
        told |= {"optimizer": "bnb_paged_adamw", "step_in_backward": True}
    return command(model[what["model"]], **told)


def of_gpjt(reading):
    """Llama-3-8B under DeepSpeed's ZeRO 3, 16 bits with fp32 copies."""
    what = reading.what
    told = {"recipe": "zero", "batch": what["batch"], "tokens": what["tokens"]}
    told["checkpoint"] = "block" if what["checkpointing"] else None
    return command("llama-3-8b", **told, ranks=what["gpus"], zero=3, deepspeed=True)


def of_torchtitan(reading):
    """torchtitan: weights in fp32, computed in bf16 under FSDP2, its loss in bf16's fp32 copy.

    Raises      Refused
    """
    what = reading.what
    if "f8" in reading.id or "float8" in reading.id or "fp8" in reading.id or "fp4" in reading.id:
        raise Refused("float8 or NVFP4 products of torchao")
    if what.get("compile") or what.get("run", "eager") != "eager":
        raise Refused(COMPILED)
    if "SAC" in str(what.get("table")) or what.get("checkpointing") == "every 2nd layer":
        raise Refused("checkpointing of some operators or of some layers")
    if "table" in what:  # FSDP128, batches of two, selective checkpointing as in the table above it
        raise Refused("checkpointing of some operators or of some layers")
    told = {"batch": what["batch"], "tokens": what["tokens"], "fsdp": 8}
    told["checkpoint"] = "block" if what["checkpointing"] == "full" else None
    return command(
        "llama-3.1-8b", precision="fp32", **told, param_dtype="bf16", reduce_dtype="fp32"
    )


def of_megatron(reading):
    """Megatron-LM's tests: its recipe, and how eight ranks divide the model.

    Raises      Refused for a flag without an option
    """
    what = reading.what
    for word, reason in megatron.OTHER.items():
        if word in reading.id:
            raise Refused(reason)
    if not what["bf16"]:
        raise Refused("Megatron's gradients in fp16")
    told = {
        "recipe": "megatron",
        "ranks": what["gpus"],
        "zero": 1 if what["dist_optimizer"] else None,
    }
    for name in ("tensor", "pipeline", "context"):
        ranks = what[{"tensor": "tp", "pipeline": "pp", "context": "cp"}[name]]
        option = "context_parallel" if name == "context" else name
        told[option] = ranks if ranks > 1 else None
    told["sequence"] = bool(what.get("sequence_parallel")) and what["tp"] > 1
    if reading.id.endswith("/max"):
        data = what["gpus"] // (what["tp"] * what["pp"] * what["cp"])
        turns = int(what["gbs"]) // (int(what["mbs"]) * data)
        told |= {"batch": what["mbs"], "tokens": what["seq"], "micro_batches": turns}
        told["dropout"] = what.get("dropout")
        told["checkpoint"] = "block" if what.get("recompute_full") else None
    family = "llama" if what["swiglu"] else "starcoder2" if what["kv"] < what["heads"] else "gpt2"
    name = f"megatron-{family}-{what['layers']}x{what['d_model']}-{what['vocab_padded']}"
    return command(name + ("-untied" if what["untied"] else ""), **told)
