"""The line of a reader's library for what memlab.fit alone advises: memlab.explain.last_changes.

The page's calculator reads the lines of memlab.explain.flags, and none of these.
"""

from __future__ import annotations

from .flags import MEMLAB, OWN, SFT, TRAINER, library, of_library

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..recipe import Recipe
    from ..run import Run

STEPPED = {
    "bnb_adamw8bit": "bitsandbytes.optim.AdamW8bit",
    "adamw8bit": "torchao.optim.AdamW8bit",
}
INSIDE = "memlab.lab.fused_backward.step_in_backward(model.parameters(), {})"
HOST = "torchao.optim.CPUOffloadOptimizer"

# As memlab.explain.flags.FLAGS, with the same sources; peft, mapping_func.py
OTHERS: dict[str, dict[str, str | None]] = {
    "a loss in chunks": {
        OWN: "memlab.lab.loss.chunked_cross_entropy(hidden, model.lm_head.weight, labels, 8)",
        TRAINER: None,
        MEMLAB: "memlab.lab.models.TinyLlama(model, loss_chunks=8)",
    },
    "TRL's trainer and its fused head": {
        OWN: None,
        TRAINER: "trl.SFTTrainer in place of Trainer, SFTConfig in place of TrainingArguments, "
        "with gradient_checkpointing as it was (True is its default)",
    },
    "states on the host": {
        OWN: f"{HOST}(model.parameters(), torch.optim.AdamW)",
        TRAINER: f"Trainer(optimizer_cls_and_kwargs=({HOST}, dict(lr=lr))), max_grad_norm=0",
    },
    "states and gradients on the host": {
        OWN: f"{HOST}(model.parameters(), torch.optim.AdamW, offload_gradients=True)",
        TRAINER: None,
    },
    "Adafactor": {
        OWN: "torch.optim.Adafactor(model.parameters(), foreach=False)",
        TRAINER: 'TrainingArguments(optim="adafactor")',
    },
}
FEWER = "tokenizer(texts, truncation=True, max_length={tokens})"
FEWER_SFT = "SFTConfig(max_length={tokens})"
# Source      PyTorch's tutorial "How to save memory by fusing the optimizer step into the backward
#             pass"
HOOKED = "each = {{p: {}([p]) for p in model.parameters()}}; for p in each: "
HOOKED += "p.register_post_accumulate_grad_hook(lambda p: (each[p].step(), each[p].zero_grad()))"
# Source      liger-kernel 0.8.5, transformers/fused_linear_cross_entropy.py
LOSSES = {
    "Liger Kernel's loss in chunks": "liger_kernel.transformers.LigerFusedLinearCrossEntropyLoss()"
    "(model.lm_head.weight, hidden, labels)",
}


def other_line(name: str, recipe: Recipe, run: Run) -> str | None:
    """The line; None: this library has none; "": memlab.explain.flags has it."""
    of = library(run)
    if name.startswith("sequences of"):
        return (FEWER_SFT if of == SFT else FEWER).format(tokens=run.tokens)
    if name == "a step inside backward":
        stepped = STEPPED.get(recipe.optimizer, "torch.optim.AdamW")
        return {OWN: HOOKED, MEMLAB: INSIDE}[of].format(stepped) if of in (OWN, MEMLAB) else None
    if name in LOSSES:
        return LOSSES[name] if of == OWN else None
    return of_library(OTHERS[name], of) if name in OTHERS else ""
