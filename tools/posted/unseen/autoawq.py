"""AutoAWQ 0.1.6: its fused models read a prompt and go on token by token.

Recipe      weights of AWQ, 4 bits in groups of 128; embedding, norms and head in fp16
Cache       made before the call, for as many tokens as are generated; the prompt is as long, so it
            has the bytes of the prompt's own cache
Tables      each layer has angles as complex numbers, for twice as many positions
Prompt      attention is written out in fp16 with its softmax in fp32, as eager attention of
            transformers is. The kernels of the linear layers split their sum into eight parts of
            fp16 and add them up: 8 · R · F beside what a gate and its input hold. The greater of
            the two is the peak
Counter     max_memory_allocated from the start of the process, so that loading counts too. It was
            left out when memlab was first asked: `fuse_qkv` joins queries, keys and values of one
            layer after the other, and the three of all layers stay until the last one is joined
Refused     families that memlab has no closed form for, and a model that lies on two cards
Source      casper-hansen/AutoAWQ, tag v0.1.6: examples/benchmark.py; awq/modules/fused/attn.py,
            mlp.py and cache.py; awq/modules/linear.py (split_k_iters 8)
"""

from typing import Any

from memlab import Model, Recipe, Run
from memlab.terms.packed import packed as packed_bytes
from memlab.terms.workspaces import cublas_workspaces

from .. import packed
from ..described import Described, Refused, capability

MODELS = {
    "Vicuna 7B": "llama-2-7b",
    "Mistral 7B": "mistral-7b-v0.1",
    "TinyLlama 1B": "tinyllama-1.1b",
    "Llama 2 13B": "llama-2-13b",
}
SPLIT = 8  # split_k_iters
FP16 = Recipe.named("bf16")  # whose bytes are those of fp16, which no call is described in


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    if "2x" in reading.device:
        raise Refused("a model whose layers lie on two cards, one after the other")
    if what["model"].split()[0] in ("MPT", "Falcon"):
        raise Refused("a family that memlab has no closed form for")
    model = shape(what["model"])
    batch, tokens = what["batch"], what["tokens"]
    rows = batch * tokens
    run = Run(phase="prefill", batch=batch, tokens=tokens, attention="eager")
    tables = model.layers * 8 * 2 * what["new"] * model.head_dim // 2
    more = [("cuBLAS workspace", cublas_workspaces(capability(reading.device), threads=1))]
    more += [("tables", tables)]
    held = packed.held(model, "awq")
    instead = ("packed weights", held - 2 * model.parameter_count)
    attention = Described(model, FP16, run, "peak", more=(*more, instead))
    split = 2 * (SPLIT + 2) * rows * model.d_ff + 2 * 2 * rows * model.d_model
    kernels = (*more, ("weights", held), ("parts of a product", split))
    joined = (("tables", tables), ("weights", held), ("matrices that were joined", parts(model)))
    found = [attention]
    found += [Described(model, FP16, run, "cache", more=each) for each in (kernels, joined)]
    return max(found, key=Described.bytes)


def parts(model):
    """Bytes of the packed queries, keys and values of all layers, before they are one matrix."""
    names = ("q", "k", "v")
    three = [t for t in model.tensors() if t.linear and t.name.split(".")[-1] in names]
    return model.layers * sum(
        packed_bytes(t.shape[0], inputs=t.shape[1], format="awq") for t in three
    )


def shape(name):
    """The model of a row."""
    if name in MODELS:
        return Model.preset(MODELS[name])
    told: dict[str, Any]
    if name == "CodeLlama 34B":
        told = {"layers": 48, "d_model": 8192, "d_ff": 22016, "vocab": 32000, "heads": 64}
    else:  # DeepSeek Coder 33B
        told = {"layers": 62, "d_model": 7168, "d_ff": 19200, "vocab": 32256, "heads": 56}
    return Model(family="llama", name=name, kv_heads=8, tied=False, **told)
