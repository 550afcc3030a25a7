"""What the page asks about adapters: the controls, and where they stand at first.

Each has the name that it has in an address; memlab.page.question makes a Lora of them.
"""

from __future__ import annotations

from .adapter_tables import ATTENTION, EVERY, USUAL

WHOLE, LORA, QLORA = "all", "lora", "qlora"
BASE = {LORA: None, QLORA: "nf4"}
# The name of each kind, and of the change to it: memlab.explain.flags.
ADAPTERS = {
    LORA: ("LoRA", "LoRA of rank 16 on every linear layer"),
    QLORA: ("QLoRA", "the same LoRA on a base in nf4"),
}
# Name, label, values in order with their labels; or name, label, least, most of a whole number.
CHOICES = (
    (
        "trained",
        "Trained parameters",
        [
            (WHOLE, "all (full fine-tuning)"),
            (LORA, "LoRA adapters"),
            (QLORA, "QLoRA: LoRA adapters on an NF4 base model"),
        ],
    ),
    (
        "targets",
        "Target modules",
        [
            (EVERY, "all linear layers"),
            (ATTENTION, "all attention projections"),
            (USUAL, "query and value projections"),
        ],
    ),
)
NUMBERS = (
    ("rank", "LoRA rank", 1, 4096),
    ("lora_dropout", "LoRA dropout, in percent", 0, 99),
)
START = {"trained": WHOLE, "targets": EVERY, "rank": 16, "lora_dropout": 0}
