"""Whether a recorded type is played as its own code runs: at other sizes than it was recorded with.

Nothing of the type is written here but the sizes that are drawn.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from ..adapters import Lora
from ..families import record_of
from ..families.recorded import own_of, recording
from ..measure.network_written import name_of
from ..model import Model
from ..run import Run
from ..step import simulate
from ..step.core.graph import component
from ..step.core.moments import hills
from .causal import Causal
from .network_type import NO_TOKENS
from .trace_run import trace_run

QV = ("q", "v")


class Partly(Causal):
    """A model of which a part is trained, or what peft puts beside it."""

    def __init__(self, config: Mapping[str, Any], run: Run) -> None:
        super().__init__(config)
        self.partly = run

    def module(self, run: Run, dtype: Any) -> nn.Module:
        made = super().module(run, dtype)
        for path, parameter in made.named_parameters():
            parameter.requires_grad_(component(name_of(path)) not in self.partly.frozen)
        if self.partly.lora is None:
            return made
        from .with_peft import with_peft

        return with_peft(made, Model.from_config(self.config), self.partly)


def apart(config: Mapping[str, Any], recipe: str, run: Run) -> dict[str, Any]:
    """Played and traced where they are not the same: what is held, and the top of each moment."""
    played = simulate(Model.from_config(dict(config)), recipe, run)
    own = run.replace(frozen=(), lora=None)
    traced = trace_run(Partly(config, run), recipe, own)
    tops = [{name: hill.total() for name, hill in hills(s).items()} for s in (played, traced)]
    both = [{**held, **top} for held, top in zip((played.held, traced.held), tops, strict=True)]
    return {k: (v, both[1].get(k)) for k, v in both[0].items() if both[1].get(k) != v}


def drawn(family: str, n: int, seed: int) -> Iterator[tuple[dict[str, Any], str, Run]]:
    """Questions about a type: configs at random, and what is trained of them in turn."""
    rng, known = random.Random(f"{family} {seed}"), record_of(family)
    attentions = known.attentions
    ways: list[dict[str, Any]] = [
        {},
        {"checkpoint": "block"},
        {"frozen": ("embedding",)},
        {"checkpoint": "block", "frozen": ("embedding", "norm")},
    ]
    modules = known.modules
    targets = QV if set(QV) <= set(modules) else ("qkv",)
    if set(targets) <= set(modules):
        ways += [{"lora": Lora(8, targets)}, {"lora": Lora(4, targets), "checkpoint": "block"}]
    for number in range(n):
        config = sizes(rng, family)
        recipe = ("bf16", "fp32", "autocast")[(number + seed) % 3]
        how = ways[(number + seed) % len(ways)]
        batch, tokens = rng.choice((1, 2, 3)), rng.randint(40, 130)
        run = Run(batch=batch, tokens=tokens, attention=rng.choice(attentions), **how)
        yield config, recipe, run


def sizes(rng: random.Random, family: str) -> dict[str, Any]:
    """A config.json of a small model of this type."""
    known = record_of(family)
    heads = rng.choice((4, 12))  # some types want fours; 12 is no power of two, which ALiBi asks
    width = rng.choice((16, 32))
    wanted = {
        "layers": rng.randint(2, 5),
        "heads": heads,
        "d_model": heads * width,
        "d_ff": rng.choice((200, 3 * heads * width)),
        "vocab": rng.randint(150, 900),
        "positions": rng.randint(130, 200),
        "tied": rng.random() < 0.5,
    }
    if "kv_heads" in known.shape:
        kinds = recording(family)["kinds"]
        kept = {word for kind in kinds for word in kind.split()}
        wanted["kv_heads"] = rng.choice([heads] * ("own" in kept) + [2] * ("shared" in kept))
    if "head_dim" in known.shape:
        square = recording(family)["family"]["square"]
        wanted["head_dim"] = width if square else rng.choice((width, 24))
    turned = (known.recorded or {}).get("rotary_dim")
    if turned:  # which heads are at least as wide as
        wanted["d_model"] = heads * (turned + rng.choice((0, 16)))
    config: dict[str, Any] = {
        known.shape[field][0]: size for field, size in wanted.items() if field in known.shape
    }
    config |= NO_TOKENS
    config |= {
        key: size if size <= 8 else 8 * (n + rng.randint(2, 4))
        for n, (key, size) in enumerate(own_of(family).values())
    }
    return {"model_type": family, **config}
