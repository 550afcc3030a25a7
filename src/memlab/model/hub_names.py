"""A repository of a hub by its name: which preset has its shape, and how it packs its weights.

    Qwen/Qwen2.5-Coder-32B-Instruct-AWQ -> qwen2.5-32b, awq

No list of names: words that say how a checkpoint was trained on or stored are taken off, at any
place, and what is left has to be the name of a published repository without such words. A word that
is none of them (VL, Math, v0.2, 1M) stays, and such a name is no preset's.

Source      config.json of the repositories that tests/test_hub_names.py lists, size by size
"""

from __future__ import annotations

import re

from ..base.frozen import dataclass
from .model import Model
from .presets import HUB

ADDRESS = "https://huggingface.co/"
# Of training: the shape is that of the model before it. hf: of a format that is the usual one.
TRAINED = "instruct it chat coder base pt thinking 2507 meta hf deduped unsloth".split()
# How the weights are stored, as names say it, longest first, and what memlab calls it.
STORED = {
    "gptq-int4": "gptq",
    "gptq-int8": "gptq-int8",
    "gptq": "gptq",
    "awq": "awq",
    "fp8-dynamic": "fp8-channel",
    "fp8": "",
    "unsloth-bnb-4bit": "",  # which leaves layers in 16 bits, others in each model
    "bnb-4bit": "nf4-dq",
}
# Whose FP8 has which scales; another's may leave layers in 16 bits, too (meta-llama's does).
FP8 = {"qwen": "fp8-block", "neuralmagic": "fp8", "redhatai": "fp8"}
# A teacher's name before that of the student: DeepSeek-R1-Distill-Qwen-7B, -Llama-8B.
DISTILLED = re.compile(r"^deepseek-r1-distill-(qwen|llama)(?=-)")
STUDENTS = {"qwen": "qwen2.5", "llama": "llama-3.1"}
# Names that say a preset's, and whose config.json says another size.
OTHERS = {"mixtral-8x22b-instruct-v0.1": "vocab_size 32768"}


@dataclass(frozen=True)
class Found:
    """What a repository's name says.

    preset      whose shape it has
    stored      how its weights are packed: a word of memlab.terms.packed.FORMATS, "" where they
                are as the preset's, None where only its config.json says it
    exact       whether it is the repository of the preset itself
    """

    preset: str
    stored: str | None = ""
    exact: bool = False

    def told(self, name: str) -> str:
        """A line: what the name was taken for, and what the name does not say."""
        if self.exact:
            return f"{name}: the preset {self.preset}"
        model = Model.preset(self.preset)
        dtype = getattr(model, "published", None) or "fp32"
        packed = f", packed as {self.stored}" if self.stored else ""
        return (
            f"{name}: the shape of {self.preset}{packed}; precision ({dtype}) and positions "
            f"({model.positions:,}) are that preset's, where its config.json may say others"
        )

    def refusal(self, name: str) -> str:
        """A line: why a command does not take these weights, and what it does take."""
        if self.stored is None:
            return (
                f"{name}: only its config.json says which of its layers are packed; give the "
                f"folder that it is in, or its shape in 16 bits: {self.preset}"
            )
        return (
            f"{name} is packed as {self.stored}, which is served: `memlab serve {name} --on CARD`; "
            f"what is trained is {self.preset}, with --lora-rank R --lora-base nf4 in 4 bits"
        )


def found(name: str) -> Found | None:
    """What a repository's name says, with the hub's address before it or not; None: nothing."""
    wanted = name.removeprefix(ADDRESS).rstrip("/").lower()
    if not re.fullmatch(r"\w[\w.-]*/[\w.-]+", wanted):
        return None
    if wanted in HUB:
        return Found(HUB[wanted], exact=True)
    owner, _, folder = wanted.partition("/")
    stored: str | None = ""
    for words, format in STORED.items():
        shorter = re.sub(rf"-{words}(?=-|$)", "", folder)
        if shorter != folder:
            stored = format or (FP8.get(owner) if words == "fp8" else None)
            folder = shorter
            break
    if folder in OTHERS:
        return None
    distilled = DISTILLED.match(folder)
    if distilled:
        folder = STUDENTS[distilled[1]] + folder[distilled.end() :]
    for repository, preset in HUB.items():
        if _bare(repository.rpartition("/")[2]) == _bare(folder):
            if distilled and Model.preset(preset).tied:
                return None  # a distilled checkpoint keeps its head beside the embedding
            return Found(preset, stored)
    return None


def _bare(folder: str) -> list[str]:
    return [word for word in folder.split("-") if word not in TRAINED]
