"""Trainers of transformers and TRL, as a script calls them: data, not code.

One record a loop, whether its step is described or not: a rehearsal needs no description.

Source      transformers 5.23; trl 1.16: trainer/*_trainer.py, experimental/orpo
"""

from __future__ import annotations

from ..base.frozen import dataclass

# Columns of the data, with texts of as many words as there are tokens; TRL ends each answer itself.
IDS = '"input_ids": [[3] * {tokens}] * {rows}'
PAIRS = '"chosen": [" " + words({answer})] * {rows}, "rejected": [" " + words({answer})] * {rows}'
PROMPT = '"prompt": [words({prompt})] * {rows}'


@dataclass(frozen=True)
class Trainer:
    """How a script makes one.

    name, config    its class and that of its arguments; home: where both are imported from
    like        the described loop that takes what this one takes by itself, and whose rules hold
    columns     of its data
    judges      whether it makes rewards: a head of one number in the place of the vocabulary's
    rolls_out   whether it makes the texts that it learns
    lengths     arguments that say how long texts may be
    """

    name: str
    config: str
    home: str
    like: str
    columns: str
    judges: bool = False
    rolls_out: bool = False
    lengths: tuple[str, ...] = ("max_length",)


TRAINERS = {
    "trainer": Trainer(
        *("Trainer", "TrainingArguments", "transformers", "trainer"),
        IDS + ', "labels": [[3] * {tokens}] * {rows}',
        lengths=(),
    ),
    "sft": Trainer("SFTTrainer", "SFTConfig", "trl", "sft", IDS),
    "dpo": Trainer("DPOTrainer", "DPOConfig", "trl", "dpo", f"{PROMPT}, {PAIRS}"),
    "grpo": Trainer("GRPOTrainer", "GRPOConfig", "trl", "grpo", PROMPT, rolls_out=True, lengths=()),
    "rloo": Trainer("RLOOTrainer", "RLOOConfig", "trl", "grpo", PROMPT, rolls_out=True, lengths=()),
    "reward": Trainer("RewardTrainer", "RewardConfig", "trl", "sft", PAIRS, judges=True),
    "kto": Trainer(
        *("KTOTrainer", "KTOConfig", "trl", "dpo"),
        PROMPT
        + ', "completion": [" " + words({answer})] * {rows}, "label": [True, False] * {half}',
    ),
    "orpo": Trainer(
        *("ORPOTrainer", "ORPOConfig", "trl.experimental.orpo", "sft", f"{PROMPT}, {PAIRS}")
    ),
}
