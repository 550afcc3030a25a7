"""What people give of adapters on the command line: flags, or the file that peft wrote."""

from __future__ import annotations

import argparse

from ..adapters import Ia3, Lora, Prompt, Vera
from ..base.frozen import replace
from ..model import Model
from .brought import count

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..run.recipe_choice import Configured

# --lora-NAME, beside --lora-rank; and those that another kind takes as well.
OF_LORA = ("targets", "base", "dtype", "dropout", "saved", "dora")
SHARED = {"ia3": ("dtype",), "vera_rank": ("targets", "dtype", "dropout"), "prompt_tokens": ()}


def add_adapters(group: Any) -> None:
    """Flags of adapters."""
    words = "peft's adapter_config.json, or its folder: --lora-rank and what follows, from a file"
    group.add_argument("--adapter", metavar="FILE", help=words)
    group.add_argument("--lora-rank", type=count, metavar="R", help="train adapters alone")
    words = "layers that have an adapter (default q,v; of q k v out gate up down, gpt2: qkv,"
    words += " mixtures: experts_up experts_down router)"
    group.add_argument("--lora-targets", metavar="A,B", help=words)
    words = "store the frozen linear layers in nf4, as bitsandbytes does: QLoRA"
    group.add_argument("--lora-base", metavar="FORMAT", help=words)
    words = "of the adapters (default: peft's, fp32 beside weights in 16 bits)"
    group.add_argument("--lora-dtype", metavar="FORMAT", help=words)
    words = "tables trained in full beside the frozen ones: embedding, lm_head"
    group.add_argument("--lora-saved", metavar="A,B", help=words)
    words = "of what adapters read (default 0)"
    group.add_argument("--lora-dropout", type=float, metavar="P", help=words)
    words = "a trained length for each row of an adapted weight: peft's use_dora"
    group.add_argument("--lora-dora", action="store_true", default=None, help=words)
    words = "train (IA)³'s vectors beside these layers; of `down` the inputs are scaled"
    group.add_argument("--ia3", metavar="A,B", help=words)
    words = "train VeRA's vectors beside --lora-targets, around shared matrices of this rank"
    group.add_argument("--vera-rank", type=count, metavar="R", help=words)
    words = "train a prompt of as many virtual tokens before each sequence"
    group.add_argument("--prompt-tokens", type=count, metavar="N", help=words)


def adapters_of(options: argparse.Namespace, model: Configured | None) -> dict[str, Any]:
    """The field of memlab.Run that the flags say, if they say one.

    Raises      ValueError for flags that mean nothing without another one, and for two kinds
    """
    told = {name: getattr(options, f"lora_{name}") for name in OF_LORA}
    said = {name: value for name, value in told.items() if value is not None}
    kinds = [
        name for name in ("adapter", "lora_rank", *SHARED) if getattr(options, name) is not None
    ]
    if "adapter" in kinds:
        return _named(_read(options, said, kinds[1:], model))
    if not kinds:
        for name, value in said.items():
            raise ValueError(f"--lora-{name} {value} is of adapters: --lora-rank")
        return {}
    if len(kinds) > 1:
        first, second = (name.replace("_", "-") for name in kinds[:2])
        raise ValueError(f"--{first} beside --{second}; one kind of adapters is trained")
    for name in ("targets", "saved"):
        if name in said:
            said[name] = _names(said[name])
    (kind,) = kinds
    if kind == "lora_rank":
        return {"lora": Lora(options.lora_rank, **said)}
    for name in said:
        if name not in SHARED[kind]:
            raise ValueError(f"--lora-{name} is not of --{kind.replace('_', '-')}")
    if kind == "ia3":
        return {"adapter": Ia3(_names(options.ia3), **said)}
    if kind == "vera_rank":
        return {"adapter": Vera(options.vera_rank, **said)}
    return {"adapter": Prompt(options.prompt_tokens)}


def _read(
    options: argparse.Namespace,
    said: dict[str, Any],
    others: list[str],
    model: Configured | None,
) -> Any:
    """The adapters of a file, which says all of them but their format and that of the base."""
    from ..files.adapter_config import read

    flags = [f"lora-{name}" for name in said if name not in ("dtype", "base")]
    for flag in [name.replace("_", "-") for name in others] + flags:
        raise ValueError(f"--{flag} beside --adapter, which says it; give one of them")
    if not isinstance(model, Model):
        raise ValueError(f"--adapter {options.adapter} is read for a model that is described")
    found = read(options.adapter, model)
    for name in said:
        if name not in type(found).__fields__:  # type: ignore[union-attr]
            raise ValueError(f"--lora-{name} beside --adapter: {found.told()} has no such thing")
    return replace(found, **said)


def _named(adapters: Any) -> dict[str, Any]:
    return {"lora" if isinstance(adapters, Lora) else "adapter": adapters}


def _names(words: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in words.split(","))
