"""LitGPT's resource tables of 2023-10 and its tutorial of quantization: one A100, bf16.

LoRA        rank 8 on queries and values with dropout 0.05 (the defaults of finetune/lora.py), on
            Alpaca, whose longest sample has the tokens that the page states for each model. It is
            read first, and alone is so long: at the peak there are no logits and no inputs of a
            pass before, and AdamW has no states yet. All else is as tools/posted/litgpt_peak.py has
Generate    the cache is made as long as prompt and new tokens, for every query head where there is
            more than one key; prompts are those of generate/base.py, of no more than 8 tokens. With
            4 bits the largest linear layer is written out in fp16 and cast to bf16: its product of
            several rows, those of the prompt, has no kernel of its own
Adapter     LLaMA-Adapter, both versions: tools/posted/litgpt_adapter.py, with all else as LoRA
Norm        RMSNorm in fp32, as from pull request 606 on, 2023-10-24. The commit that the page names
            has it in bf16, with which Llama 2's rows would be 3 to 8 % low, of LoRA and of
            LLaMA-Adapter alike: the tables seem to be of a later state than they say
Others      FSDP of that version is refused, and 8 bits: what bitsandbytes writes out of them is not
            derived
Source      litgpt at 8641822: finetune/lora.py, generate/base.py, lit_gpt/model.py and config.py;
            bitsandbytes 0.41, nn/modules.py (Linear4bit) and functional.py (dequantize_4bit)
"""

from dataclasses import replace

from memlab import Recipe, Run
from memlab.terms.workspaces import cublas_workspaces

from . import litgpt, litgpt_adapter, packed
from .described import Described, Refused, capability
from .litgpt_peak import CHUNK, adapters, beside, on

LORA = {
    "lora_query": "true",
    "lora_value": "true",
    "lora_key": "false",
    "lora_projection": "false",
    "lora_mlp": "false",
    "lora_head": "false",
    "lora_r": "8",
    "lora_dropout": "0.05",
}
VERSIONS = {"adapter": False, "adapter-v2": True}
PROMPT = 8
BLOCK, NESTED = 64, 256  # values of a scale, and scales of a scale


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    if what["gpus"] > 1:
        raise Refused("adapters under FSDP of LitGPT 2023-10")
    if "int8" in str(what["quantize"]):
        raise Refused("what bitsandbytes writes out of weights in 8 bits")
    model = litgpt.shape(what["model"])
    if what["method"] in VERSIONS:
        return adapted(model, what, reading.device)
    return (trained if what["method"] == "lora" else generated)(model, what, reading.device)


def trained(model, what, device):
    """The first micro-batch, with the longest sample."""
    lora, rows, kind = on({"lora": LORA}), what["micro_batch"] * what["longest"], what["quantize"]
    told = {"lora": LORA, "micro_batch": what["micro_batch"], "quantize": kind}
    more = dict(beside(model, told, what["longest"]))
    more["adapters"] = 2 * adapters(model, lora)
    more["activations of the last pass"] = 0
    loss = 8 * rows * model.vocab + 8 * what["micro_batch"] * CHUNK * model.vocab
    widened = 6 * rows * model.vocab + 4 * model.vocab * model.d_model
    more["logits"] = max(loss, widened) if kind else loss
    more["cuBLAS workspaces"] = cublas_workspaces(capability(device))
    recipe = Recipe(weights=kind or "bf16", other="bf16", gradients=None, optimizer="sgd")
    run = Run(batch=what["micro_batch"], tokens=what["longest"])
    return Described(model, recipe, run, "step", more=tuple(more.items()))


def adapted(model, what, device):
    """The same of LLaMA-Adapter, whose prompts and vectors have no states yet either."""
    second, kind = VERSIONS[what["method"]], what["quantize"]
    found = trained(model, what, device)
    rows = what["micro_batch"] * what["longest"]
    more = dict(found.more)
    more["adapters"] = 2 * litgpt_adapter.trained(model, second)
    more["activations"] = rows * litgpt_adapter.kept(model, bool(kind), second)
    return replace(found, more=tuple(more.items()))


def generated(model, what, device):
    """A call of generate(): weights in the allocator's blocks, the cache, a layer written out."""
    bits, kind = (32 if what["precision"] == "32-true" else 16), what["quantize"]
    heads = 1 if model.kv_heads == 1 else model.heads
    tokens = PROMPT + what["new_tokens"]
    cache = 2 * model.layers * heads * model.head_dim * tokens * bits // 8
    more = [("weights", packed.allocated(weights(model, kind, bits // 8))), ("cache", cache)]
    more += [("cuBLAS workspace", cublas_workspaces(capability(device), threads=1))]
    if kind:
        largest = max(t.numel for t in model.tensors() if t.linear)
        more += [("a layer written out", 4 * largest)]
    run = Run(phase="decode", tokens=tokens)
    return Described(model, Recipe.named("bf16"), run, "nothing", more=tuple(more))


def weights(model, kind, value):
    """Bytes of each tensor: of a linear layer in 4 bits its codes and its scales."""
    found = []
    for tensor in model.tensors():
        times = model.layers if tensor.name.startswith("layers.") else 1
        sizes = [value * tensor.numel]
        if kind and tensor.linear:
            scales = tensor.numel // BLOCK
            sizes = [tensor.numel // 2, 4 * scales]
            if kind.endswith("-dq"):
                sizes = [tensor.numel // 2, scales, 4 * -(-scales // NESTED)]
        found += sizes * times
    return found
