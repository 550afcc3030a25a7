"""What the page asks about the program that trains: the controls, and where they stand at first."""

from __future__ import annotations

from ..programs import TRL

LABELS = {
    "plain": "a loop of your own",
    "keeps-outputs": "a loop of your own that keeps the outputs of the model",
    "nanogpt": "nanoGPT: train.py",
    "trainer": "transformers: Trainer",
    "sft": "TRL: SFTTrainer",
    "dpo": "TRL: DPOTrainer, batches of pairs",
    "grpo": "TRL: GRPOTrainer, after the rollout",
}
CLASSES = {
    "trainer": "Trainer",
    "sft": "SFTTrainer",
    "dpo": "DPOTrainer",
    "grpo": "GRPOTrainer",
    "nanogpt": "nanoGPT",
}
ALL = 0  # tokens that are learned: all but the first
# Name, label, values in order with their labels; or name, label, least, most of a whole number.
CHOICES = (("loop", "Whose program trains", list(LABELS.items())),)
NUMBERS = (("completion", "Tokens of each answer, 0 where all are learned", ALL, 4194304),)
LEARNS = TRL  # loops that may learn an answer alone
