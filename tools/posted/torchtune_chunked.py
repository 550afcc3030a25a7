"""torchtune 2024-11 with compiled layers, row by row: what was traced, and what is added to it.

R rows (tokens of a batch) · D width · L layers

Traced      tools/posted/torchtune_compiled.py: each row of the table adds one thing to those above
Inside      the step in backward: AdamW's two states in bf16, 4 bytes a parameter, are there all the
            time and are not in that trace
Offloaded   activation offloading takes the inputs of checkpointed layers to the host, 2 · R · D a
            layer. Of the last five tensors that are saved copies wait on the card until backward
            asks for the first of them (max_fwd_stash_size); these are the last norm's own
NF4         torchao's, with scales of scales, in the place of the bf16 weights; embedding and head
            stay in bf16. A layer's whole weights are gone when the loss begins
Counter     "peak active": blocks, and those that wait for a stream, which are left out
Source      torchtune at 1814feb17: training/_activation_offloading.py, recipes/configs/llama3_2
"""

import json

from memlab import Model, Recipe, Run
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from .described import Described, capability
from .readings import ROOT

COMPILED = ROOT / "book" / "posted-compiled.json"  # tools/posted/torchtune_compiled.py
BF16 = Recipe.named("bf16")
NF4 = Recipe(weights="nf4-dq", other="bf16")
# A row of the table and what was traced for it.
ROWS = {
    "compile": "compile",
    "chunkedCE": "chunks",
    "AC": "again",
    "opt-in-bwd": "inside",
    "act-offload": "inside",
    "lora": "lora",
    "qlora": "lora",
}
OFFLOADED = ("act-offload", "lora", "qlora")


def described(row, reading):
    """The run of one row of the table."""
    model = Model.preset("llama-3.2-3b")
    size = json.loads(COMPILED.read_text(encoding="utf-8"))[ROWS[row]]
    more = [("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))]
    inside = ROWS[row] == "inside"
    if inside:
        more += [("AdamW's states", 4 * model.parameter_count)]
    if row in OFFLOADED:
        rows = reading.what["batch"] * 4096
        more += [("inputs of layers, on the host", -2 * model.layers * rows * model.d_model)]
    recipe, run = BF16.replace(gradients=None) if inside else BF16, Run(step_in_backward=inside)
    if ROWS[row] == "lora":
        run = Run(lora=Lora(64, ("q", "v", "out", "gate", "up", "down")))
    if row == "qlora":
        recipe = NF4
        codes = Described(model, NF4, Run(), "weights").bytes()
        more += [("NF4 in the place of bf16", codes - 2 * model.parameter_count)]
    return Described(model, recipe, run, "step", more=tuple(more), traced=size)
