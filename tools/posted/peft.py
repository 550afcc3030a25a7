"""PEFT's method comparison: Llama-3.2-3B on MetaMathQA, batches of 4, on one L40S.

Loop        method_comparison/MetaMathQA/run.py: `outputs = model(**batch)` lives until the next
            forward pass, with its logits and, since use_cache is left at True, its keys and values;
            the norm of the gradients is clipped; optimizer.zero_grad() comes before the forward
            pass, so gradients are there when the bytes are read after a step
Recipe      a bf16 base; adapters in fp32 (autocast_adapter_dtype), with gradients and AdamW's
            states 16 bytes a parameter, of which there are as many as the row says. A full
            fine-tune has 8 bytes: bf16 all through
Lengths     no row states them, and they are the same for all, since all read the same batches.
            Each is read from one row (READ_FROM), which is not counted: the mean length after
            padding from the bytes after a step, the longest batch from the reserved ones
After a step    any method: only what it trains, what its prompt adds to the outputs, and what it
            keeps beside it (named below) differ
Peak        LoRA and what runs the same graph, DoRA, (IA)³, VeRA, prompt tuning, full fine-tuning,
            and training the norms alone are described. Of other methods PEFT's own code is traced
            (tools/posted/traced.py), and what the allocator reserves beside the tensors at their
            peak is taken to be what it reserves in the run whose longest batch was read
"""

from dataclasses import replace

from memlab import Model, Recipe, Run
from memlab.terms.adapters import Ia3, Prompt, Vera
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from . import traced
from .described import Described, Refused, capability

MEAN = 228  # tokens of a batch after padding: from lora--llama-3.2-3B-rank32/alloc
LONGEST = 684  # of the longest batch: from lora--llama-3.2-3B-rank32/max
READ_FROM = ("peft/lora--llama-3.2-3B-rank32/alloc", "peft/lora--llama-3.2-3B-rank32/max")

DECOMPOSES = ("osf", "psoft", "adamss")  # take apart the weights that they adapt, and keep parts
# Bytes beside each trained parameter's 16. AdaLoRA's RankAllocator: ipt, exp_avg_ipt, exp_avg_unc.
BESIDE = {"adalora": 12}
NARROW = ("adaptionprompt",)  # made in the base's format: no layer of peft's tuners casts them
PROMPTS = ("prompt_tuning", "ptuning")  # which lengthen the text, and so the outputs
VIRTUAL_OF_PTUNING = 20  # num_virtual_tokens in its configuration
# peft's names of what LoRA's graph is trained with: rank, targets.
LORAS = {
    "lora--llama-3.2-3B-rank10-target-mlp": (10, ("gate", "up", "down")),
    "lora--llama-3.2-3B-rank32": (32, ("q", "v")),
    "lora--llama-3.2-3B-rank64": (64, ("q", "v")),
    "lora--llama-3.2-3B-rank64-rslora": (64, ("q", "v")),
    # One of the two matrices is not trained; both are in the graph, and what it saves is the same.
    "lora--llama-3.2-3B-rank32-lorafa": (32, ("q", "v")),
    "lora--llama-3.2-3B-rank32-mica": (32, ("q", "v")),
}
ALL = ("q", "k", "v", "out", "gate", "up", "down")
# The others that memlab describes, each as its adapter_config.json beside the results says it.
OTHERS = {
    "ia3--llama-3.2-3B-default": Ia3(feed_forward=("down",)),
    "ia3--llama-3.2-3B-lr_0.001": Ia3(feed_forward=("down",)),
    "ia3--llama-3.2-3B-all-attn-5k-lr0.005": Ia3(ALL, feed_forward=("gate", "up", "down")),
    "vera--llama-3.2-3B-default": Vera(256, ("q", "v")),
    "prompt_tuning--llama-3.2-3B-default": Prompt(200),
    "prompt_tuning--llama-3.2-3B-lr_0.001": Prompt(200),
    "prompt_tuning--llama-3.2-3B-sample_vocab-lr_0.001": Prompt(200),
}
NORMS_ALONE = ("embedding", "attention", "feed_forward")


def describe(reading):
    """See the module.

    Raises      Refused
    """
    method = reading.what["method"].split("--")[0]
    if reading.id.endswith("/alloc"):
        return after_step(reading, method)
    return at_peak(reading, method)


def after_step(reading, method):
    """Weights, what is trained with its gradients and states, and the outputs of the last step."""
    model, trained = Model.preset("llama-3.2-3b"), reading.what["trainable"]
    if method in DECOMPOSES:
        raise Refused("a method that takes the adapted weights apart and keeps the parts")
    width = model.kv_heads * model.head_dim
    cached = 2 * 2 * model.layers * width
    more = [("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))]
    recipe, each = Recipe.named("bf16"), 2 + 2 * 2
    run = Run()
    if method != "full-finetuning":
        recipe = recipe.replace(gradients=None, optimizer="sgd")
        each = 8 if method in NARROW else 16
        more += [("trained", (each + BESIDE.get(method, 0)) * trained)]
    tokens = MEAN
    if method in PROMPTS:
        own = VIRTUAL_OF_PTUNING if method == "ptuning" else trained // model.d_model
        tokens += own
    batch = reading.what["batch"]
    more += [("logits", 2 * batch * tokens * model.vocab), ("cache", batch * tokens * cached)]
    if method == "prefixtuning":  # as many keys and values as it trains, in bf16, for each sequence
        more += [("prefix", 2 * batch * trained)]
    return Described(model, recipe, run, "resident", more=tuple(more))


def at_peak(reading, method):
    """The reserved bytes of the longest batch."""
    name = reading.what["method"]
    told: dict = {}
    if name in LORAS:
        rank, targets = LORAS[name]
        told["lora"] = Lora(rank, targets)
    elif name in OTHERS:
        told["adapter"] = OTHERS[name]
    elif name == "lora--llama-3.2-3B-rank32-dora":
        told["lora"] = Lora(32, ("q", "v"), dora=True)
    elif method == "ln_tuning":
        told["frozen"] = NORMS_ALONE
    elif method != "full-finetuning":
        return at_traced_peak(reading, method)
    return reserved(reading, **told)


def reserved(reading, **told):
    """The run of this loop on the longest batch."""
    run = Run(
        batch=reading.what["batch"],
        tokens=LONGEST,
        loop="keeps-outputs",
        clip=True,
        optimizer_impl="foreach",
        **told,
    )
    more = (("cuBLAS workspaces", cublas_workspaces(capability(reading.device))),)
    return Described(Model.preset("llama-3.2-3b"), Recipe.named("bf16"), run, "reserved", more=more)


def at_traced_peak(reading, method):
    """The same of a method whose tensors a trace of PEFT's own code has counted.

    Raises      Refused for one that was not traced
    """
    name, trained = reading.what["method"], reading.what["trainable"]
    if method in (*DECOMPOSES, "frod"):
        raise Refused("a method that takes the adapted weights apart and keeps the parts")
    if not traced.has(name):
        raise Refused("a method of peft that memlab cannot trace")
    like = reserved(reading, lora=Lora(*LORAS["lora--llama-3.2-3B-rank32"]))
    more = [*like.more, ("beside the tensors", like.own() - replace(like, figure="peak").own())]
    more += [("beside what is trained", BESIDE.get(method, 0) * trained)]
    peak = traced.peak(name, like.model.layers, trained)
    frozen = like.recipe.replace(gradients=None, optimizer="sgd")
    return Described(like.model, frozen, Run(), "reserved", more=tuple(more), traced=peak)
