"""torchtune 2024-11 with everything on: compiled layers, a chunked loss, full checkpointing.

R rows (tokens of a batch) · D width · V vocabulary · L layers

Compile     each layer is compiled by itself (training/_compile.py), and under full checkpointing
            only its input waits for backward, compiled or not: 2 · R · D a layer. Rows that compile
            without checkpointing keep what the partitioner chooses, and are refused
Logits      in 8 chunks, all made before the loss, in bf16: 2 · R · V. The cast to fp32 and the
            cross-entropy of a chunk are compiled together, so nothing in fp32 waits; `del logits`
            stands before backward, which replaces one chunk after the other by its gradient
Head        after that, each chunk's product gives a gradient of the whole table, 2 · V · D, which
            is added to the one before: two of them beside 7/8 of the chunks. A frozen head has none
Last norm   not compiled: its input in fp32, and where weights are trained its result twice in bf16
End         where gradients are kept, the tied table's gradient as an embedding is a tensor of its
            own before it is added to that of the head
Optimizer   torch.optim.AdamW, fused: one that made copies would need 2 bytes a parameter more, and
            none of the rows has them
NF4         torchao's, with scales of scales; embedding and head stay in bf16
Source      torchtune at 1814feb17: modules/transformer.py, modules/loss/ce_chunked_output_loss.py,
            recipes/full_finetune_single_device.py, recipes/configs/llama3_2
"""

from memlab import Model, Recipe, Run
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from .described import Described, capability

BF16 = Recipe.named("bf16")
TARGETS = ("q", "v", "out", "gate", "up", "down")
ADAPTERS = Lora(64, TARGETS)  # 3B_lora_single_device.yaml
CHUNKS = 8
NF4 = Recipe(weights="nf4-dq", other="bf16")
# What each row has of that which the rows before it added.
ROWS = ("AC", "opt-in-bwd", "act-offload", "lora", "qlora")


def described(row, reading):
    """The run of one row of the table."""
    model = Model.preset("llama-3.2-3b")
    rows = reading.what["batch"] * 4096
    waits = (
        0 if row in ("act-offload", "lora", "qlora") else 2 * model.layers * rows * model.d_model
    )
    chunks, table = 2 * rows * model.vocab, 2 * model.vocab * model.d_model
    more = [("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))]
    if row in ("lora", "qlora"):
        more += [("adapters", 6 * ADAPTERS.parameter_count(model))]
        more += [("logits", chunks + chunks // CHUNKS), ("last norm", 4 * rows * model.d_model)]
        frozen = NF4 if row == "qlora" else BF16
        frozen = frozen.replace(gradients=None, optimizer="sgd")
        return Described(model, frozen, Run(), "step", more=tuple(more))
    head = max(chunks + table, chunks - chunks // CHUNKS + 2 * table)
    loss = [("inputs of layers", waits), ("logits and their head", head)]
    loss += [("last norm", 8 * rows * model.d_model)]
    inside = BF16.replace(gradients=None)
    found = [Described(model, inside, Run(step_in_backward=True), "step", more=(*more, *loss))]
    if row == "AC":
        end = (*more, ("the embedding's own gradient", table))
        found += [Described(model, BF16, Run(), "step", more=end)]
    return max(found, key=Described.bytes)
