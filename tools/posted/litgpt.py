"""LitGPT's config hub: fine-tunes on Alpaca2k in bf16-true on A10Gs.

Model       LitGPT's own modules; the nearest that memlab describes are transformers'. Its embedding
            and its head are two tensors, in tied models too
Recipe      all in bf16, adapters too (bf16-true converts every module); torch.optim.AdamW
Run         512 tokens, the most that the recipes allow: the longest sample is not stated. Samples
            come in several micro-batches a step, so gradients are there in every forward pass.
            `logits` lives until the next forward pass has its own
Left out    adapters beside the head (lora_head)
"""

from memlab import Model, Recipe, Run
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from .described import Described, Refused, capability

MODELS = {
    "gemma-2b": "gemma-2b",
    "gemma-7b": "gemma-7b",
    "gemma-2-2b": "gemma-2-2b",
    "gemma-2-9b": "gemma-2-9b",
    "llama-2-7b": "llama-2-7b",
    "llama-3-8b": "llama-3-8b",
    "llama-3.1-8b": "llama-3.1-8b",
    "llama-3.2-1b": "llama-3.2-1b",
    "llama-3.2-3b": "llama-3.2-3b",
    "mistral-7b-v0.1": "mistral-7b-v0.1",
    "mistral-7b-v0.2": "mistral-7b-v0.1",  # the same shape
    "phi-3": "phi-3-mini-4k",
    "tinyllama-1.1b": "tinyllama-1.1b",
}
TARGETS = {
    "lora_query": ("q",),
    "lora_key": ("k",),
    "lora_value": ("v",),
    "lora_projection": ("out",),
    "lora_mlp": ("gate", "up", "down"),
}
FUSED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    if what["model"] not in MODELS:
        raise Refused("a family whose step is not described (falcon, phi, LoRA on GPT-NeoX)")
    if what["gpus"] != 1:
        raise Refused("FSDP of Lightning, or adapters on several GPUs")
    if what["quantize"]:
        raise Refused("NF4 in the modules of Lightning's plug-in for bitsandbytes")
    model = Model.preset(MODELS[what["model"]]).replace(tied=False)
    told: dict = {}
    if what["lora"]:
        said = what["lora"]
        names = [name for key, part in TARGETS.items() if said[key] == "true" for name in part]
        if model.fused_qkv:
            names = list(dict.fromkeys(FUSED.get(name, name) for name in names))
        drops = float(said["lora_dropout"])
        told["lora"] = Lora(int(said["lora_r"]), tuple(names), dtype="bf16", dropout=drops)
    run = Run(
        batch=what["micro_batch"],
        tokens=512,
        micro_batches=2,  # two or more: the same peak
        optimizer_impl="foreach",
        **told,
    )
    more = (("cuBLAS workspaces", cublas_workspaces(capability(reading.device))),)
    return Described(model, Recipe.named("bf16"), run, more=more)
