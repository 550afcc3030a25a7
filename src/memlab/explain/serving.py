"""What a serving engine's log says of memory, row by row beside what is derived of that start."""

from __future__ import annotations

from ..base.frozen import dataclass, replace
from ..base.message import Message
from ..base.messages import say
from ..base.table import as_text
from ..engines import Engine, Pool, pool
from ..engines.engine import KV_DTYPES, ONLY_VLLM
from ..engines.pool import EARLIER, USUAL
from ..files.engine_log import EngineLog
from ..model import Model
from ..terms.context import CONTEXT
from ..terms.packed import FORMATS
from ..units import text
from . import serving_words as words
from .serving_remedies import Remedy, remedies
from .serving_rows import Line, Rows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# What a log calls a format, and what it is called here.
KV_OF = {"fp8_e4m3": "fp8"}
FORMAT_OF = {"awq_marlin": "awq", "gptq_marlin": "gptq", "bitsandbytes": "nf4", "modelopt": "fp8"}
# Before vLLM 0.16 every sampler but FlashInfer's sorted: its own kernel is of pull/33538, 2026-02.
SAMPLES, KERNEL = (0, 8), (0, 16)
V0_SEQS, V0_TOKENS = 256, 2048  # vLLM, config.py, SchedulerConfig of V0


@dataclass(frozen=True, repr=False)
class Served:
    """A log held against what is derived: its rows, what is to be said, and what would help."""

    pool: Pool
    log: EngineLog
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    refused: str | None
    remedies: tuple[Remedy, ...]
    useless: tuple[str, ...]

    def __str__(self) -> str:
        table = [list(words.HEADINGS), *(line.cells() for line in self.lines)]
        parts = [as_text(table, title=self.pool.ledger.title)]
        parts += [say(note) for note in self.notes]
        if self.refused:
            parts += ["", say(self.refused)]
            if self.remedies:
                parts += [say(words.HELPS), *(f"  {say(each.told())}" for each in self.remedies)]
            else:
                parts.append(say(words.NOTHING_HELPS))
            if self.useless:
                parts.append(say(Message(words.USELESS, ", ".join(self.useless))))
        return "\n".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """For programs: the same, unrounded."""
        log = {name: getattr(self.log, name) for name in EngineLog.__fields__}  # type: ignore[attr-defined]
        names = ("term", "derived", "logged", "rounding", "why")
        return in_parts(self.pool) | {
            "rows": [{name: getattr(line, name) for name in names} for line in self.lines],
            "notes": list(self.notes),
            "refused": self.refused,
            "remedies": [each.as_dict() for each in self.remedies],
            "useless": list(self.useless),
            "log": log,
        }


def in_parts(found: Pool) -> dict[str, Any]:
    """What an answer for programs has before there is a log: the derived rows alone."""
    rows = {row.term: row.derived for row in found.ledger.rows} | {"kv_cache": found.available}
    rows |= {name: getattr(found, name) for name in ("blocks", "tokens", "concurrency")}
    empty: dict[str, Any] = {"logged": None, "rounding": 0, "why": ""}
    told: dict[str, Any] = {"model": found.model.name, "device": found.device, "unit": "bytes"}
    told["rows"] = [{"term": name, "derived": value} | empty for name, value in rows.items()]
    return told | {"notes": [], "refused": None, "remedies": [], "useless": [], "log": None}


def served(model: Model, log: EngineLog, told: dict[str, Any], on: str | int | None) -> Served:
    """The log's rows against those that are derived for the way in which it was started.

    told        fields of memlab.engines.Engine that somebody said; they outweigh the log's
    on          the card; None: as large as the log says
    Unit        bytes of one rank
    Raises      ValueError where neither says how large the card is; what `pool` raises
    """
    model, engine, notes = started(model, log, told)
    if on is None:
        on = _card(log)
    found = pool(model, engine, on=on)
    lines = Rows(found, log, set(told) | set(log.options), on).lines()
    if log.refused is None:
        return Served(found, log, tuple(lines), tuple(notes), None, (), ())
    made, useless = remedies(found, log, on, log.refused)
    sentence = words.refusal(log, found)
    return Served(found, log, tuple(lines), tuple(notes), sentence, tuple(made), tuple(useless))


def of_log(log: EngineLog) -> tuple[list[Line], list[str]]:
    """What a log says alone, where the model is not known: its own rows, and its notes."""
    lines = []
    for name, term in words.LOGGED.items():
        if name in log.figures:
            sized = name not in ("blocks", "tokens", "concurrency")
            lines.append(Line(term, None, log.figures[name], log.rounding.get(name, 0), "", sized))
    notes = words.about(log)
    return lines, notes + ([words.refusal(log, None)] if log.refused else [])


def of_a_figure(model: Model, engine: Engine, on: str | int, seen: int) -> tuple[Pool, list[str]]:
    """The pool, and what a size that was seen says: of the engine's share, not of what it needs.

    Unit        bytes
    Raises      as `pool`
    """
    found = pool(model, engine, on=on)
    share = words.share(found)
    flag = words.THEIRS[engine.name]["utilization"]
    usual = USUAL if engine.utilization is None else engine.utilization
    total = round(share / usual)
    cache = text(max(0, found.available))
    told: list[str] = [Message(words.SEEN, f"{flag} {usual}", text(share), text(total), cache)]
    pattern = words.SEEN_MORE if seen >= share else words.SEEN_LESS
    told.append(Message(pattern, text(seen), text(abs(seen - share))))
    longest = found.engine.max_model_len or 0
    for hundredths in range(1, 101):
        least = pool(model, replace(found.engine, utilization=hundredths / 100), on=on)
        if least.starts:
            value = f"{hundredths / 100:.2f}"
            return found, [*told, Message(words.LEAST, flag, value, f"{longest:,}")]
    pattern = words.NEVER if found.longest else words.NOT_AT_ALL
    return found, [*told, Message(pattern, f"{longest:,}", f"{found.longest:,}")]


def _card(log: EngineLog) -> int:
    figures = log.figures
    if log.engine == "sglang" and "before" in figures:
        return round(figures["before"]) + CONTEXT
    if "total" in figures:
        return round(figures["total"])
    raise ValueError("the log does not say how large the card is: --on CARD")


def started(model: Model, log: EngineLog, told: dict[str, Any]) -> tuple[Model, Engine, list[str]]:
    """The model and the engine as they were started, and what is to be said about that.

    Raises      ValueError for settings that are not described
    """
    notes: list[str] = []
    said: dict[str, Any] = {"name": log.engine}
    options = dict(log.options)
    for field, names, known in (
        ("kv_dtype", KV_OF, KV_DTYPES),
        ("quantization", FORMAT_OF, FORMATS),
    ):
        value = options.pop(field, None)
        if value is not None and names.get(value, value) in known:
            options[field] = names.get(value, value)
        elif value is not None and field not in told:
            notes.append(Message(words.NOT_DESCRIBED, field, value, words.FLAGS_HERE[field]))
    if log.ranks > 1:
        said["tensor"] = log.ranks
    if log.engine == "sglang":
        options = {name: value for name, value in options.items() if name not in ONLY_VLLM}
    elif log.v0 or log.before(0, 21):
        said["utilization"] = EARLIER
    if log.v0:
        longest = told.get("max_model_len", options.get("max_model_len", model.positions))
        said |= {"sampler": "sort", "seqs": V0_SEQS, "batched": max(V0_TOKENS, longest)}
    elif log.engine == "vllm" and log.before(*KERNEL) and not log.before(*SAMPLES):
        said["sampler"] = "sort"
    if "reserved_graphs" in log.figures:
        said["cuda_graphs"] = round(log.figures["reserved_graphs"])
    notes += [
        Message(words.OTHERWISE, words.FLAGS_HERE[field], value, options[field])
        for field, value in told.items()
        if options.get(field, value) != value and field in words.FLAGS_HERE
    ]
    engine = Engine(**(said | options | told))
    longest = engine.max_model_len or 0
    if longest > model.positions:  # the engine took it: of a config with other positions
        model = model.replace(positions=longest)
    return model, engine, [*notes, *words.about(log)]
