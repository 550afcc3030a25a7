"""Sebastian Raschka's modules: GPT-2 that is trained faster and faster, and three small models.

Training    GPT-2 with a head of its own; the biases of queries, keys and values, which the book's
            has not, are 55 KB; dropout 0.1 everywhere; AdamW. "own" attention is written out, as
            eager attention of transformers is; "flash" is torch's, as in memlab.lab. The loss of
            both was in fp32 when memlab was first asked; the book's stays in the format of the
            logits, for which a Run had no word then: loss="cross_entropy"
Counter     memory_reserved after an epoch; the cache of segments is emptied by nobody
Generation  the head is a matrix of its own, but Gemma's; tables of angles for all positions of the
            config, in fp32. "regular" reads all tokens again for each new one; with a cache one
            token is read. The prompt is not stated: only the new tokens are counted
Refused     layers written by hand (their norms and activations save what torch's do not: a trace of
            the code counts them, its name does not), and torch.compile
Source      rasbt/LLMs-from-scratch: ch05/10_llm-training-speed/00_orig.py and 01_opt_single_gpu.py;
            pkg/llms_from_scratch: llama3.py, qwen3.py and kv_cache; ch05/12_gemma3
"""

from memlab import Model, Recipe, Run
from memlab.terms.workspaces import cublas_workspaces

from ..described import Described, Refused, capability

# Positions of the tables of angles, and how many pairs of tables there are.
TABLES = {"Llama-3.2-1B": (131072, 1), "Qwen3-0.6B": (40960, 1), "Gemma-3-270M": (32768, 2)}


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    if what.get("compile") or "compiled" in what.get("mode", ""):
        raise Refused("torch.compile")
    if reading.group == "inference":
        return generated(reading)
    model = Model.preset("gpt2").replace(tied=False, vocab=what["vocab"])
    recipe = Recipe.named(what["precision"])
    workspaces = ("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))
    if reading.kind == "resident-1gpu":
        mask = ("masks of the layers", model.layers * 4 * what["tokens"] ** 2)
        return Described(model, recipe, Run(), "resident", more=(workspaces, mask))
    if what["layers"] == "own":
        raise Refused("layers written by hand, which a trace of their code counts")
    run = Run(
        batch=what["batch"],
        tokens=what["tokens"],
        implementation="transformers" if what["attention"] == "own" else "memlab",
        dropout=0.1,
        attention="eager" if what["attention"] == "own" else "sdpa",
        optimizer_impl="fused",
        loss="cross_entropy",
    )
    return Described(model, recipe, run, "reserved", more=(workspaces,))


def generated(reading):
    """The last step of a generation."""
    what = reading.what
    model = shape(what["model"])
    attention = "sdpa" if what["mode"] == "regular-fast" else "eager"
    told: dict = {"batch": what["batch"], "attention": attention}
    if what["mode"] == "cache":
        run = Run(phase="decode", tokens=what["new"] - 1, **told)
    else:
        run = Run(phase="prefill", tokens=what["new"], **told)
    positions, pairs = TABLES[what["model"]]
    more = [("tables", pairs * 2 * 4 * positions * model.head_dim)]
    more += [("cuBLAS workspace", cublas_workspaces(capability(reading.device), threads=1))]
    return Described(model, Recipe.named("bf16"), run, "peak", more=tuple(more))


def shape(name):
    """The model of a row."""
    if name == "Gemma-3-270M":
        return Model(
            family="gemma3_text",
            name=name,
            layers=18,
            d_model=640,
            d_ff=2048,
            heads=4,
            kv_heads=1,
            head_dim=256,
            vocab=262144,
        )
    return Model.preset(name.lower()).replace(tied=False)
