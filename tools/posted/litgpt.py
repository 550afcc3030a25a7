"""LitGPT's config hub: fine-tunes on Alpaca2k in bf16-true on A10Gs.

Devices     those of the recipe's own file, which the row names: `devices: 1` in every LoRA recipe
            and in tiny-llama's full one, on a machine with four cards too. Their rows on "4xA10G"
            have the time, the loss and the bytes of those on one. Three full recipes say more,
            and run under FSDP: tools/posted/litgpt_fsdp.py
Model       LitGPT's own modules, told as memlab.Model. Embedding and head are two tensors, in tied
            models too
Recipe      all in bf16, adapters too (bf16-true converts every module); torch.optim.AdamW. With
            bnb.nf4 every nn.Linear is NF4, the head as well, with fp32 scales of 64 values each;
            AdamW is then bitsandbytes' paged one, on these few values as large as torch's
Run         512 tokens, the most that the recipes allow: the longest sample is not stated
Peak        what stays, and beside it what tools/posted/litgpt_peak.py derives
Version     the tables were made between 2024-03 and 2024-09, before 2024-10-04, when LitGPT made
            the embedding of a quantized model a StableEmbedding
"""

from memlab import Model, Recipe, Run
from memlab.recipe.parallelism import Sharding
from memlab.terms.workspaces import cublas_workspaces

from .described import Described, capability
from .litgpt_fsdp import divided
from .litgpt_peak import beside

MODELS = {
    "gemma-2b": "gemma-2b",
    "gemma-7b": "gemma-7b",
    "gemma-2-2b": "gemma-2-2b",
    "gemma-2-9b": "gemma-2-9b",
    "llama-2-7b": "llama-2-7b",
    "llama-2-13b": "llama-2-13b",
    "llama-2-70b": "llama-2-70b",
    "llama-3-8b": "llama-3-8b",
    "llama-3.1-8b": "llama-3.1-8b",
    "llama-3.2-1b": "llama-3.2-1b",
    "llama-3.2-3b": "llama-3.2-3b",
    "mistral-7b-v0.1": "mistral-7b-v0.1",
    "mistral-7b-v0.2": "mistral-7b-v0.1",  # the same shape
    "phi-3": "phi-3-mini-4k",
    "tinyllama-1.1b": "tinyllama-1.1b",
}
# Others that memlab has no name for, as litgpt/config.py has them: L, D, F, N, K, V, norms of a
# block, biases. Falcon 7B and phi have one norm for attention and feed-forward.
SHAPES = {
    "falcon-7b": (32, 4544, 18176, 71, 1, 65024, 1, False),
    "falcon-40b": (60, 8192, 32768, 128, 8, 65024, 2, False),
    "phi-1.5": (24, 2048, 8192, 32, 32, 51200, 1, True),
    "phi-2": (32, 2560, 10240, 32, 32, 51200, 1, True),
    "stablelm-alpha-3b": (16, 4096, 16384, 32, 32, 50688, 2, True),
}
MOST_TOKENS = 512
# The full fine-tunes whose recipe says more than one device, and its samples of a step.
SHARDED = {
    "gemma-2b/full.yaml": (4, 16),
    "phi-2/full.yaml": (2, 8),
    "stablelm-base-alpha-3b/full.yaml": (2, 8),
}


def describe(reading):
    """See the module.

    Raises      Refused for a card that is not NVIDIA's
    """
    what = reading.what
    model = shape(what["model"])
    workspaces = ("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))
    if what["recipe"] in SHARDED:
        ranks, samples = SHARDED[what["recipe"]]
        turns = samples // ranks // what["micro_batch"]
        more = (*divided(model, what, MOST_TOKENS, ranks, turns), workspaces)
        run = Run(tokens=MOST_TOKENS, devices=Sharding(data=ranks, zero=3))
        return Described(model, Recipe.named("bf16"), run, "step", more=more)
    recipe = Recipe.named("bf16")
    if what["quantize"]:
        recipe = Recipe(weights="nf4", other="bf16", gradients=None, optimizer="sgd")
    elif what["lora"]:
        recipe = recipe.replace(gradients=None, optimizer="sgd")  # nothing of the base is trained
    run = Run(batch=what["micro_batch"], tokens=MOST_TOKENS)
    more = (*beside(model, what, MOST_TOKENS), workspaces)
    return Described(model, recipe, run, "step", more=more)


def shape(name):
    """The model, with an output head of its own."""
    if name in MODELS:
        return Model.preset(MODELS[name]).replace(tied=False)
    if name == "codellama-34b":
        told = {"layers": 48, "d_model": 8192, "d_ff": 22016, "vocab": 32000}
        return Model.preset("llama-2-70b").replace(name="CodeLlama 34B", **told)
    L, D, F, N, K, V, norms, bias = SHAPES[name]
    return Model(
        family="llama",
        name=f"LitGPT {name}",
        layers=L,
        d_model=D,
        heads=N,
        kv_heads=K,
        d_ff=F,
        vocab=V,
        positions=2048,
        gated=False,
        norm="layernorm",
        block_norms=norms,
        fused_qkv=True,
        qkv_bias=bias,
        out_bias=bias,
        ff_bias=bias,
        tied=False,
    )
