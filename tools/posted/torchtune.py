"""torchtune: the tables of its README and documentation. One GPU, bf16.

Model       torchtune's own modules, which are nearer to memlab.lab's than to transformers'
Run         full activation checkpointing is memlab's block; adapters are in bf16; the full
            fine-tune on one card uses bitsandbytes' paged AdamW and steps in backward
Logits      the model returns them in fp32 (modules/transformer.py: `self.output(h).float()`), as
            memlab.lab's loss has them; in 2024-05 `logits` lives through backward
            (recipes/lora_finetune_single_device.py), from 2024-11 on `del logits` stands before it:
            16 bytes a logit, and 12 without (that loss alone, traced on CUDA's graph: 15.9, 11.9)
Layers      save more than memlab.lab's, which has the fused norm and groups of heads: `beside`.
            Where they are checkpointed only the last norm does, and in 2024-05 each layer is a deep
            copy with angles of its own: `beside_checkpoints`
Counter     of 2024-05 reserved memory, which tools/posted/torchtune_reserved.py traces: until
            2024-04-15 the README named it (240cff850, "as reported by
            torch.cuda.max_memory_reserved()"), and when its table came back without that line
            (fef3ed10d) QLoRA had the 9.29 GB that the tutorial calls reserved. Pull request 961,
            which names allocated memory, is held to that
Compile     rows of 2024-11: tools/posted/torchtune_chunked.py; others are refused
"""

import json
from dataclasses import replace

from memlab import Model, Recipe, Run
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from . import torchtune_chunked
from .described import Described, Refused, capability
from .readings import ROOT

BF16 = Recipe.named("bf16")
RESERVED = ROOT / "book" / "posted-reserved.json"  # tools/posted/torchtune_reserved.py


def describe(reading):
    """See the module.

    Raises      Refused
    """
    name = reading.id.removeprefix("torchtune/")
    if name.startswith("init/"):
        return made(name)
    if reading.group == "several GPUs":
        raise Refused("FSDP of torchtune, with adapters or options that are not stated")
    if "lengths" in reading.not_stated:
        raise Refused("the length of the sequences is not stated")
    if "flags" in reading.not_stated:
        raise Refused("what was turned on is not stated")
    row = name.removeprefix("2024-11/")  # each row of 2024-11 adds one more thing to those above it
    if row in torchtune_chunked.ROWS:
        return torchtune_chunked.described(row, reading)
    if row == "adamw8bit":
        raise Refused("whose 8-bit AdamW ran is not stated")
    if reading.what.get("compile"):
        raise Refused("torch.compile")
    if name == "2024-11/packed":
        run = Run(batch=2, tokens=4096, implementation="memlab")
        return trained("llama-3.2-3b", BF16, run, reading, beside)
    kind = "lora" if reading.what["lora"] else "full"
    found = live(kind, reading)
    if reading.counter.startswith("peak memory allocated"):
        return found
    size = json.loads(RESERVED.read_text(encoding="utf-8"))[kind]
    return replace(found, figure="reserved", more=found.more[-1:], traced=size)


def live(kind, reading):
    """What is live at the peak of the recipes of 2024-05, `full` or `lora`."""
    told: dict = {"batch": 4, "tokens": 2048, "checkpoint": "block", "implementation": "memlab"}
    told["holds"] = ("wide_logits",)
    if kind == "lora":
        return trained("llama-2-7b", BF16, Run(lora=Lora(8), **told), reading, beside_checkpoints)
    recipe = BF16.replace(optimizer="bnb_paged_adamw")
    run = Run(step_in_backward=True, **told)
    return trained("llama-2-7b", recipe, run, reading, beside_checkpoints)


def trained(name, recipe, run, reading, saved=lambda model, run: ()):
    """The peak of a step of this model, and what its layers save beside memlab.lab's."""
    model = Model.preset(name)
    workspaces = ("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))
    return Described(model, recipe, run, more=(*saved(model, run), workspaces))


def beside(model, run):
    """(name, bytes) of what torchtune's layers save where memlab.lab's do not.

    Formula     norms (2 · L + 1) · 4 · R · D: the input in fp32 and the normalized one in bf16,
                where the fused norm saves its input in bf16; heads 2 · L · R · (N - K) · H · 2:
                keys and values repeated for every query head; angles 2 · L · R · H · 4: of packed
                sequences, picked by position for queries and for keys
    Source      torchtune at 1814feb17: modules/rms_norm.py, attention.py, position_embeddings.py.
                Its TransformerSelfAttentionLayer saves these bytes a row on a CPU, counted
    """
    rows = run.batch * run.tokens
    norms = (2 * model.layers + 1) * 4 * rows * model.d_model
    heads = 4 * model.layers * rows * (model.heads - model.kv_heads) * model.head_dim
    angles = 8 * model.layers * rows * model.head_dim
    return ("norms in fp32", norms), ("repeated heads", heads), ("angles by position", angles)


def beside_checkpoints(model, run):
    """(name, bytes) of what is kept beside the inputs of checkpointed layers, in 2024-05.

    Formula     the last norm 4 · R · D: its input in fp32, and where its weight is trained the
                normalized one in bf16, where the fused norm saves its input in bf16. Angles
                (L - 1) · T · H · 4: cos and sin of every position in each layer, in fp32
    Source      torchtune at 0217d44c2: modules/rms_norm.py; modules/transformer.py, _get_clones;
                modules/position_embeddings.py, build_rope_cache. The norm's bytes: counted on a CPU
    """
    rows = run.batch * run.tokens
    norm = (2 if run.lora else 4) * rows * model.d_model
    angles = 4 * (model.layers - 1) * model.positions * model.head_dim
    return ("the last norm in fp32", norm), ("angles of each layer", angles)


def made(name):
    """What a model with adapters holds at most while it is made.

    Formula     weights and adapters in bf16; a table of angles, T · H · 4 bytes. Llama 2's layers
                are deep copies of one, each with a table, and that one lives until all are made:
                (L + 1) layers and tables. Llama 3.2's layers are made in turn and share one table
    Source      torchtune at 0217d44c2: modules/transformer.py, TransformerDecoder.__init__; at
                1814feb17: models/llama3_2/_component_builders.py
    Raises      Refused for a quantized one
    """
    if "qlora" in name:
        raise Refused("NF4 weights while they are made, or lengths that are not stated")
    if "3b" in name:
        lora = Lora(64, ("q", "v", "out", "gate", "up", "down"))
        model = Model.preset("llama-3.2-3b")
    else:
        model, lora = Model.preset("llama-2-7b"), Lora(8)
    adapters, angles = 2 * lora.parameter_count(model), 4 * model.positions * model.head_dim
    more = [("adapters", adapters), ("angles", angles)]
    if "3b" not in name:
        layer = sum(t.numel for t in model.tensors() if t.name.startswith("layers."))
        more += [("the layer that is copied", 2 * layer + adapters // model.layers)]
        more += [("angles of its copies", model.layers * angles)]
    return Described(model, BF16, Run(), "weights", more=tuple(more))
