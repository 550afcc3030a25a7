"""The commands for the sources of book/posted/unseen that train, and their calls."""

from ..described import Refused
from ..unseen.torchao import MODELS
from .calls import called
from .training import ALL, COMPILED
from .words import command


def of_fsdp_qlora(reading):
    """Answer.AI's train.py on two cards: rank 64 beside every linear layer, by default."""
    what = reading.what
    told = {"precision": "bf16", "batch": what["batch"], "tokens": what["tokens"]}
    told |= {"checkpoint": "block", "lora_rank": what["rank"], "lora_targets": ALL}
    told |= {
        "lora_dropout": what["dropout"],
        "lora_base": "nf4" if what["method"] == "qlora" else None,
    }
    told |= {"ranks": what["gpus"]} if what["ddp"] else {"fsdp": what["gpus"]}
    names = {"Mistral-7B-v0.2": "mistral-7b-v0.1"}
    model = names.get(what["model"], what["model"].lower())
    return command(model, **told, cpu_offload=what["cpu_offload"])


def of_llama_factory(reading):
    """LLaMA-Factory: Trainer, checkpoints by default, adapters beside queries and values."""
    what = reading.what
    if what["unsloth"]:
        raise Refused("Unsloth's own kernels")
    told = {"precision": "bf16", "batch": what["batch"], "tokens": what["tokens"]}
    told |= {"micro_batches": what["accumulation"], "loop": "trainer", "checkpoint": "block"}
    told |= {"attention": what["attention"], "lora_rank": what["rank"]}
    return command("llama-2-7b", **told, lora_base="nf4" if what["bits"] == 4 else None)


def of_scratch(reading):
    """Raschka's modules: GPT-2 that is trained, and three models that generate."""
    what = reading.what
    if what.get("compile") or "compiled" in what.get("mode", ""):
        raise Refused(COMPILED)
    if reading.group == "inference":
        model, told = what["model"].lower(), {"batch": what["batch"], "tokens": what["new"]}
        if what["mode"] == "cache":
            return called(model, **told)
        return command(model, precision="bf16", phase="prefill", **told)
    told = {"precision": what["precision"], "batch": what["batch"], "tokens": what["tokens"]}
    told["attention"] = "eager" if what["attention"] == "own" else "sdpa"
    return command("gpt2", **told, optimizer_impl=what.get("optimizer"))


def of_qwen(reading):
    """The first Qwen: finetune.py of its repository, and its generations."""
    what = reading.what
    model = what["model"].lower()
    if reading.group == "inference":
        if what.get("cache") == "int8":
            raise Refused("a cache in int8 of the model's own code")
        kind = {"BF16": None, "Int8": "gptq-int8", "Int4": "gptq"}[what["precision"]]
        return called(model, batch=what["batch"], tokens=what["new"], quantization=kind)
    told = {"tokens": what["tokens"], "micro_batches": 8, "loop": "trainer", "checkpoint": "block"}
    told["attention"] = "flash"
    if what["method"] == "Full-parameter":
        told |= {"recipe": "zero", "ranks": what["gpus"], "zero": 3, "deepspeed": True}
        return command(model, **told)
    told |= {"precision": "bf16", "lora_rank": 64, "lora_targets": ALL, "lora_dropout": 0.05}
    told["lora_saved"] = ("embedding", "lm_head") if what["method"] == "LoRA (emb)" else None
    told["lora_base"] = "gptq" if what["method"] == "Q-LoRA" else None
    if what["gpus"] > 1:
        zero = 3 if "Zero3" in what["method"] else 2
        told |= {"ranks": what["gpus"], "zero": zero, "deepspeed": True}
    return command(model, **told)


def of_torchao(reading):
    """torchao: generations of 200 tokens, and a small Llama that is trained.

    Raises      Refused
    """
    what = reading.what
    if reading.group == "inference":
        if reading.id.endswith("/size"):
            raise Refused("the weights without the embedding")
        kinds = {"bf16": None, "int8wo": "int8-channel", "int4wo-64": "int4-group"}
        kind = kinds.get(what["precision"], what["precision"])
        return called(MODELS[what["model"]], tokens=what["new"], quantization=kind)
    if what.get("compile"):
        raise Refused(COMPILED)
    if what.get("quantized"):
        raise Refused("weights that are trained in int8")
    told = {"batch": what["batch"], "tokens": what["tokens"], "checkpoint": "block"}
    return command("llama2-1b", precision="bf16", **told)


def refused(why):
    """A source that no command can be asked about."""

    def ask(reading):
        raise Refused(why)

    return ask
