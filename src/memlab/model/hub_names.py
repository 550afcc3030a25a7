"""A repository of a hub by its name: which preset has its shape, and how it packs its weights.

    Qwen/Qwen2.5-Coder-32B-Instruct-AWQ -> qwen2.5-32b, awq

No list of names: words that say how a checkpoint was trained on or stored are taken off, at any
place, and what is left has to be the name of a published repository without such words. A word that
is none of them (VL, Math, v0.2, 1M) stays, and such a name is no preset's.

Source      config.json of the repositories that tests/test_hub_names.py lists, size by size
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Message
from .model import Model
from .presets import HUB

ADDRESS = "https://huggingface.co/"
NAMED = "abcdefghijklmnopqrstuvwxyz0123456789_.-"  # of which a repository's name is made
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
DISTILLED = "deepseek-r1-distill-"
STUDENTS = {"qwen": "qwen2.5", "llama": "llama-3.1"}
# Names that say a preset's, and whose config.json says another size.
OTHERS = {"mixtral-8x22b-instruct-v0.1": "vocab_size 32768"}


# What is said of a name; the calculator's page says it too.
EXACT = "{name}: the preset {preset}"
SHAPE = (
    "{name}: the shape of {preset}{packed}; precision ({dtype}) and positions ({positions}) are "
    "that preset's, where its config.json may say others"
)
PACKED = ", packed as {format}"
ONLY_CONFIG = (
    "{name}: only its config.json says which of its layers are packed; give the folder that it is "
    "in, or its shape in 16 bits: {preset}"
)
SERVED_ALONE = (
    "{name} is packed as {format}, which is served: `memlab serve {name} --on CARD`; what is "
    "trained is {preset}, with --lora-rank R --lora-base nf4 in 4 bits"
)
SAYS = (EXACT, SHAPE, PACKED, ONLY_CONFIG, SERVED_ALONE)


@dataclass(frozen=True)
class Repository:
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
            return Message(EXACT, name=name, preset=self.preset)
        model = Model.preset(self.preset)
        sizes = {"preset": self.preset, "positions": f"{model.positions:,}"}
        sizes["dtype"] = getattr(model, "published", None) or "fp32"
        packed = Message(PACKED, format=self.stored) if self.stored else ""
        return Message(SHAPE, name=name, packed=packed, **sizes)

    def refusal(self, name: str) -> str:
        """A line: why a command does not take these weights, and what it does take."""
        if self.stored is None:
            return Message(ONLY_CONFIG, name=name, preset=self.preset)
        return Message(SERVED_ALONE, name=name, format=self.stored, preset=self.preset)


def repository(name: str) -> str:
    """A repository as owner/name, in small letters, of its address or its name; "": it is none."""
    wanted = name.strip()
    if wanted.startswith(ADDRESS):
        wanted = wanted[len(ADDRESS) :]
    wanted = wanted.rstrip("/").lower()
    owner, slash, folder = wanted.partition("/")
    if not owner or not folder or owner[0] in ".-":
        return ""
    return wanted if slash and all([each in NAMED for each in owner + folder]) else ""


def found(name: str) -> Repository | None:
    """What a repository's name says, with the hub's address before it or not; None: nothing."""
    wanted = repository(name)
    if not wanted:
        return None
    if wanted in HUB:
        return Repository(HUB[wanted], exact=True)
    owner, _, folder = wanted.partition("/")
    stored: str | None = ""
    for words in sorted(STORED, key=len, reverse=True):
        shorter = f"{folder}-".replace(f"-{words}-", "-")[:-1]
        if shorter != folder:
            stored = STORED[words] or (FP8.get(owner) if words == "fp8" else None)
            folder = shorter
            break
    if folder in OTHERS:
        return None
    distilled = folder.startswith(DISTILLED)
    if distilled:
        rest = folder[len(DISTILLED) :]
        for student in STUDENTS:
            if rest.startswith(student + "-"):
                folder = STUDENTS[student] + rest[len(student) :]
    for known in HUB:
        if _bare(known.split("/")[-1]) == _bare(folder):
            preset = HUB[known]
            if distilled and Model.preset(preset).tied:
                return None  # a distilled checkpoint keeps its head beside the embedding
            return Repository(preset, stored)
    return None


def _bare(folder: str) -> list[str]:
    return [word for word in folder.split("-") if word not in TRAINED]
