"""Reading an adapter_config.json: what peft's configs say, as `memlab.Run` takes it.

Every field of LoraConfig is read, is known to change no byte of a step, or is refused by name where
it says another thing than its default; those of the other kinds are in adapter_kinds. What no such
file says is whether peft made the adapters in fp32 (`dtype`) and how the base is stored
(`Lora.base`).

Source      peft, tuners/lora/config.py
"""

from __future__ import annotations

import os
from pathlib import Path

from ..adapters import Lora
from ..adapters.lora import beside
from ..base.untrusted import brief
from ..families import record_of
from ..model import Model
from ..model.config import load
from ..model.module_names import end_names
from . import adapter_kinds
from .adapter_fields import NO_BYTE, READ, REFUSED
from .adapter_targets import check_names, ends, listed, paths, targets
from .mixture_targets import of_today, parameters
from .patterns import Patterns

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..adapters import Ia3, Prompt, Vera


def read(
    source: str | os.PathLike[str] | Mapping[str, Any], model: Model
) -> Lora | Ia3 | Vera | Prompt:
    """The adapters of an adapter_config.json: a file, the folder it is in, or a dict.

    Raises      ValueError for a field that is not described or not known, with its value, and where
                the layers of a model differ in what stands beside them; FileNotFoundError
    """
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        source = Path(source) / "adapter_config.json"
    said, _ = load(source)
    if (kind := said.get("peft_type") or "LORA") != "LORA":
        return adapter_kinds.read(kind, said, model)
    _check(said)
    patterns = Patterns()
    said = of_today(said, model, patterns)
    found = parameters(said, model)
    if said.get("target_modules") or not found:
        found = [*targets(said, model, record_of(model.family).lora_targets, patterns), *found]
    ranks = {name: _rank(said, model, name, patterns) for name in found}
    usual = said.get("r", 8)
    if model.experts:  # of which it names none by itself, and some it refuses
        found = sorted(found, key=list(beside(model)).index)
    return Lora(
        usual,
        tuple(found),
        dropout=said.get("lora_dropout", 0.0),
        ranks=tuple((name, rank) for name, rank in ranks.items() if rank != usual),
        saved=_saved(said, model),
        dora=said.get("use_dora") or False,
    )


def _check(said: Mapping[str, Any]) -> None:
    for field, value in said.items():
        if field not in (*READ, *NO_BYTE, *REFUSED):
            raise ValueError(f"{field} is no field of a LoraConfig that memlab knows")
        if field in REFUSED and value and value != REFUSED[field]:
            raise ValueError(f"{field}={brief(value)} is not described; known: {REFUSED[field]!r}")
    if said.get("task_type") not in (None, "CAUSAL_LM"):
        raise ValueError(f"task_type={said['task_type']!r} is not described; known: CAUSAL_LM")
    if said.get("init_lora_weights") == "mica":
        raise ValueError("init_lora_weights='mica' is not described: it freezes one of the two")
    pattern = said.get("rank_pattern") or {}
    if not isinstance(pattern, dict):
        raise TypeError(f"rank_pattern={brief(pattern)}; an object is needed")
    check_names(said)


def _rank(said: Mapping[str, Any], model: Model, name: str, patterns: Patterns) -> int:
    usual, other = said.get("r", 8), said.get("rank_pattern") or {}
    ranks = set()
    for path in paths(model, name):
        found = (other[key] for key in other if patterns.full(key, path, r"(.*\.)?(%s)"))
        ranks.add(next(found, usual))
    if len(ranks) > 1:
        raise ValueError(
            f"rank_pattern gives {name} ranks {sorted(ranks)}; one rank in every layer is described"
        )
    (rank,) = ranks
    return rank  # type: ignore[no-any-return]


def _saved(said: Mapping[str, Any], model: Model) -> tuple[str, ...]:
    found, tables = [], end_names(model)
    for module in listed(said, "modules_to_save"):
        names = [name for name, path in tables.items() if ends(path, module)]
        if not names:
            known = ", ".join(path.split(".")[-1] for path in tables.values())
            raise ValueError(f"modules_to_save names {module!r}; described are {known}")
        found += names
    return tuple(sorted(set(found)))
