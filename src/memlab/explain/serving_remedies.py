"""Which of an engine's settings would have made it start, with the number: each searched alone."""

from __future__ import annotations

from ..base.frozen import dataclass, replace
from ..base.message import Message
from ..engines import Engine, Pool, pool
from ..engines.pool import USUAL
from ..files.engine_log import EngineLog
from ..terms import engine_pool as terms
from ..terms.context import CONTEXT
from ..units import text
from . import serving_words as words

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

BESIDE = ("sampler", "graphs", "running")  # what the share has no room for
SMALL_SHARE = 20  # a twentieth of the card, where the log does not say how much was missing


@dataclass(frozen=True)
class Remedy:
    """One setting, and the pool that the engine lays out with it."""

    flag: str
    value: str
    pool: Pool

    def told(self) -> str:
        """As it is typed, and what it leaves."""
        size = text(max(0, self.pool.available))
        return Message(words.REMEDY, f"{self.flag} {self.value}", size, f"{self.pool.tokens:,}")

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        told = {"flag": self.flag, "value": self.value, "available": self.pool.available}
        return told | {"tokens": self.pool.tokens}


def remedies(
    found: Pool, log: EngineLog, on: str | int, moment: str
) -> tuple[list[Remedy], list[str]]:
    """The settings that would do, each with the value that changes least; and flags that would not.

    found       the pool as it was to be laid out
    moment      what was being done: memlab.files.engine_lines.MOMENTS
    """
    search = Search(found, log, on, moment)
    flags = words.THEIRS[found.engine.name]
    made: list[Remedy] = []
    useless = []
    for field, values in search.candidates():
        for value in values:
            then = search.with_(field, value)
            if then is not None and search.does(then):
                shown = "fp8_e4m3" if (value, found.engine.name) == ("fp8", "sglang") else value
                made.append(Remedy(flags[field], str(shown), then))
                break
        else:
            useless.append(flags[field])
    return made, useless


class Search:
    """The start that failed, with the log's own rows as far as a change leaves them."""

    def __init__(self, found: Pool, log: EngineLog, on: str | int, moment: str) -> None:
        self.found, self.log, self.on, self.moment = found, log, on, moment
        self.derived = {row.term: row.derived or 0 for row in found.ledger.rows}
        self.total = round(words.share(found) / self._share(found.engine))
        self.own = self._own()
        self.lacking = max(0, round(log.figures.get("asked", 0) - log.figures.get("free", 0)))

    def _own(self) -> dict[str, int]:
        """The log's own rows; of a sum that it has alone, the first step takes its derived part."""
        figures, vllm = self.log.figures, self.found.engine.name == "vllm"
        names = ("weights", "activations", "non_torch") if vllm else ("weights",)
        own = {name: round(figures[name]) for name in names if name in figures}
        if vllm and len(own) == 1 and "weights" in own and "available" in figures:
            rest = words.share(self.found) - own["weights"] - round(figures["available"])
            rest = max(0, rest - self.derived.get("CUDA graphs", 0))
            own["activations"] = min(rest, self.derived["activations"])
            own["non_torch"] = rest - own["activations"]
        return own

    @staticmethod
    def _share(engine: Engine) -> float:
        return USUAL if engine.utilization is None else engine.utilization

    def candidates(self) -> list[tuple[str, Iterable[Any]]]:
        """Each setting that may matter at this moment, and its values, the mildest first."""
        engine, now = self.found.engine, round(100 * self._share(self.found.engine))
        less, more = range(now - 1, 0, -1), range(now + 1, 100)
        lower = self.moment in ("start", *BESIDE)
        shares = [each / 100 for each in (less if lower else more)]
        made: list[tuple[str, Iterable[Any]]] = [("utilization", shares)]
        if self.moment in ("cache", "length"):
            made.append(("max_model_len", self._lengths()))
        if engine.name == "vllm" and self.moment != "start":
            most = engine.seqs or 0
            made.append(("seqs", [2**n for n in range(10, -1, -1) if 2**n < most]))
        if self.moment in ("cache", "length"):
            made.append(("kv_dtype", ["fp8"]))
        if self.moment not in ("start", *BESIDE):
            made.append(("tensor", [2**n for n in range(1, 8) if 2**n > engine.tensor]))
        return made

    def _lengths(self) -> list[int]:
        base = self.with_("block_size", self.found.engine.block_size)
        return [base.longest] if base and base.longest else []

    def with_(self, field: str, value: Any) -> Pool | None:
        """The pool with one setting changed; None where it is not described."""
        own: dict[str, Any] = dict(self.own)
        if field == "tensor":
            own.pop("weights", None)
            own.pop("activations", None)
        try:
            changed = replace(self.found.engine, **{field: value})
            if field == "seqs" and "activations" in own:
                then = pool(self.found.model, changed, on=self.on).ledger["activations"].derived
                own["activations"] += (then or 0) - self.derived["activations"]
                own["activations"] = max(0, own["activations"])
            return pool(self.found.model, replace(changed, **own), on=self.on)
        except (ValueError, TypeError):
            return None

    def does(self, then: Pool) -> bool:
        """Whether the engine would start so, as far as the log says what was missing."""
        if not then.starts:
            return False
        rows = {row.term: row.derived or 0 for row in then.ledger.rows}
        share = words.share(then)
        if self.moment == "start":
            return share <= self.log.figures.get("unused", 0)
        if self.moment in BESIDE:
            lacking = self.lacking or self.total // SMALL_SHARE
            return words.share(self.found) - share + self._sampler(then) >= lacking
        if self.moment in ("weights", "profile"):
            most = self.total - CONTEXT - rows.get("other", 0)
            held = rows["weights"] + (rows.get("activations", 0) if self.moment == "profile" else 0)
            before = self.derived["weights"] + self.derived.get("activations", 0)
            after = rows["weights"] + rows.get("activations", 0)
            return held <= most and (after < before - self.lacking or not self.lacking)
        return True

    def _sampler(self, then: Pool) -> int:
        """Bytes by which a warmed-up sampler is smaller."""
        if then.engine.name == "sglang":
            return 0
        sizes = [
            terms.sampler_peak(
                each.engine.seqs or 0,
                vocab=each.model.vocab,
                sort=each.engine.sampler == "sort",
                format=each.engine.dtype,
            )
            for each in (self.found, then)
        ]
        return sizes[0] - sizes[1]
