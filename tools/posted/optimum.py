"""optimum-benchmark's Llamas: one forward pass and one generate() of transformers 4.35 on an A100.

Recipe      fp16, or GPTQ with 4 bits in groups of 128, whose head stays in fp16
Version     transformers 4.35 (models/llama/modeling_llama.py) holds what later ones do not: tables
            of cos and sin in every layer, as long as the model's positions; logits of all tokens in
            16 bits and once more in fp32; and in generate() the old cache of all layers, which the
            caller still has, beside the new one, which torch.cat makes
Positions   4,096 of Llama 2; the GPTQ repositories quantize the first Llama, with 2,048
Kernels     attention leaves no mark on these peaks, which lie in the logits or in the caches.
            exllama has a buffer for one weight in fp16; exllamav2 besides one for results of 8
            sequences of 2,048 tokens in fp32 (auto_gptq 0.5, qlinear_exllamav2.py: temp_fwd_size)
Workspace   the one of cuBLAS for the thread of the forward pass, on Ampere 8.125 MiB
"""

from memlab import Model, Recipe, Run
from memlab.terms.workspaces import cublas_workspaces

from . import packed
from .described import Described, capability


def describe(reading):
    """See the module."""
    what = reading.what
    name = "llama-2-7b" if "7b" in what["model"].lower() else "llama-2-13b"
    quantized = "gptq" in what["experiment"]
    model = Model.preset(name)
    positions = 2048 if quantized else 4096
    batch, tokens, new = what["batch"], what["tokens"], what["new_tokens"]
    more: list = [
        ("weights", packed.held(model, "gptq" if quantized else None)),
        ("tables", model.layers * 2 * 2 * positions * model.head_dim),
        ("cuBLAS workspace", cublas_workspaces(capability(reading.device), threads=1)),
        *buffers(model, what["experiment"]),
    ]
    told: dict = {"batch": batch, "attention": "sdpa"}
    prompt = Run(phase="prefill", tokens=tokens, **told)
    rows = batch * tokens
    logits = [("hidden states", 2 * rows * model.d_model), ("logits", (2 + 4) * rows * model.vocab)]
    found: list = [Described(model, FP16, prompt, "cache", more=tuple(more + logits))]
    if new:
        last = tokens + new - 2  # in the cache, when the last token but one is read
        old = 2 * 2 * model.layers * batch * last * model.kv_heads * model.head_dim
        run = Run(phase="decode", tokens=last, **told)
        found += [Described(model, FP16, run, "cache", more=(*more, ("old cache", old)))]
    return max(found, key=Described.bytes)


FP16 = Recipe.named("bf16")  # whose bytes are those of fp16, which no call is described in


def buffers(model, experiment):
    """What the kernels of GPTQ keep for themselves, made for the largest layer."""
    largest = model.d_ff * model.d_model
    if "exllamav2" in experiment:
        return [("exllamav2", model.d_ff * 2048 * 8 * 4 + 128 + 2 * largest + 128)]
    if "exllamav1" in experiment:
        return [("exllama", 2 * largest)]
    return []
