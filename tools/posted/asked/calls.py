"""The commands for calls: a prompt, a generation, the weights of a model or of a server."""

from ..described import Refused
from ..qwen3 import KINDS
from .words import command


def called(model, **told):
    """A generation in 16 bits, as the last of its tokens."""
    return command(model, precision="bf16", phase="decode", **told)


def of_optimum(reading):
    """optimum-benchmark: a forward pass, or a generation after a prompt."""
    what = reading.what
    told = {"batch": what["batch"], "tokens": what["tokens"] + what["new_tokens"]}
    told["quantization"] = "gptq" if "gptq" in what["experiment"] else None
    told["attention"] = "flash" if "fa2" in what["experiment"] else None
    phase = "decode" if what["new_tokens"] else "prefill"
    model = "llama-2-7b" if "7b" in what["model"].lower() else "llama-2-13b"
    return command(model, precision="bf16", phase=phase, **told)


def of_qwen3(reading):
    """Qwen3's speed benchmark."""
    what = reading.what
    told = {"batch": what["batch"], "tokens": what["input"] + what["new"], "attention": "flash"}
    return called(what["model"].lower(), **told, quantization=KINDS[what["precision"]])


def of_vllm(reading):
    """vLLM's line about its weights.

    Raises      Refused
    """
    what = reading.what
    if "Vision" in what["model"]:
        raise Refused("a model that reads pictures")
    if "weights" not in reading.counter:
        raise Refused("vLLM's profile run, whose limits are not stated")
    ranks = what["tp"] if what["tp"] > 1 else None
    return command("llama-3-8b", engine="vllm", on="H100 80GB", tensor_parallel=ranks)


def of_engine_logs(reading):
    """The same in logs of issues, and of SGLang.

    Raises      Refused
    """
    what = reading.what
    if what["part"] != "weights":
        raise Refused("a cache of so many tokens on a rank of a server")
    if what["precision"] == "fp8":
        raise Refused("which layers of an FP8 checkpoint stay in bf16 is not stated")
    return command(what["model"].lower(), engine=what["engine"], on="H100 80GB")


def of_autoawq(reading):
    """AutoAWQ's generations."""
    what = reading.what
    names = {"Vicuna 7B": "llama-2-7b", "Mistral 7B": "mistral-7b-v0.1", "MPT 7B": "mpt-7b"}
    names |= {"Mixtral 46.7B": "mixtral-8x7b", "Llama 2 13B": "llama-2-13b"}
    names |= {"TinyLlama 1B": "tinyllama-1.1b"}
    model = names.get(what["model"], what["model"].lower().replace(" ", "-"))
    told = {"batch": what["batch"], "tokens": what["tokens"] + what["new"]}
    return called(model, **told, quantization="awq")


def of_gptq(reading):
    """GPTQ-for-LLaMa's text, read token by token."""
    what = reading.what
    model = {"7B": "llama-2-7b", "13B": "llama-2-13b", "33B": "llama-33b"}
    kinds = {"fp16": None, "nf4-double": "nf4-dq", "gptq4": "gptq", "gptq3": "gptq3"}
    kind = kinds.get(what["precision"], what["precision"])
    return called(model[what["model"].split("-")[1]], tokens=what["tokens"], quantization=kind)


def of_octocoder(reading):
    """OctoCoder's answers to one question, whose tokens are not stated.

    Raises      Refused
    """
    what = reading.what
    if what["prompt"] != "one question":
        raise Refused("the length of the prompt is not stated")
    kind = {"bf16": None, "int8": "int8", "4bit": "nf4"}[what["precision"]]
    return called("octocoder", tokens=what["new"], quantization=kind)


def of_starcoder2(reading):
    """StarCoder2's weights."""
    what = reading.what
    kind = {"int8": "int8", "4bit": "nf4"}.get(what["precision"])
    model = what["model"].lower()
    return command(model, precision="bf16" if kind else what["precision"], quantization=kind)
