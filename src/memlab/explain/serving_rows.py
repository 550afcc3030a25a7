"""Each row of a serving engine's log beside the derived one, and what explains the difference."""

from __future__ import annotations

from ..base.frozen import dataclass, replace
from ..base.message import Listed, Message
from ..base.messages import say
from ..engines import Pool, pool
from ..engines.engine import DTYPES, SAMPLERS, UNQUANTIZED
from ..files.engine_log import EngineLog
from ..terms.packed import FORMATS
from ..units import text
from . import serving_words as words

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

NEAR = 200  # a two-hundredth: by which two figures of one thing may differ
SLOTS = (0, 21)  # vLLM, which counted the tokens of a model with windows otherwise before
SEQS, BATCHED = (128, 256, 512, 1024), (2048, 8192, 16384)


@dataclass(frozen=True)
class Line:
    """One row: a figure as derived and as the log has it, bytes or a number; None: it has none.

    rounding    to how much the log's figure is known
    why         what explains the difference, as far as that is known; may be empty
    """

    term: str
    derived: int | float | None
    logged: int | float | None
    rounding: float = 0
    why: str = ""
    sized: bool = True

    def cells(self) -> list[str]:
        """What the table prints."""
        gap = ""
        if self.derived is not None and self.logged is not None:
            more = self.logged - self.derived
            gap = ("−" if more < 0 else "+") + self._shown(abs(more))
            if self.derived and abs(more) > self.rounding:
                gap += f" ({more / abs(self.derived):+.2%})".replace("-", "−")
        return [self.term, self._shown(self.derived), self._shown(self.logged), gap, say(self.why)]

    def _shown(self, value: int | float | None) -> str:
        if value is None:
            return ""
        if self.sized:
            size = text(abs(round(value)))
            return f"−{size}" if value < 0 else size
        return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


class Rows:
    """Each row of one log beside the derived one, and what is known about the difference."""

    def __init__(self, found: Pool, log: EngineLog, told: set[str], on: str | int) -> None:
        self.pool, self.log, self.told, self.on = found, log, told, on
        self.derived = {row.term: row.derived or 0 for row in found.ledger.rows}

    def lines(self) -> list[Line]:
        """From what takes the share to what it makes."""
        made = [self._weights(), *self._first_step(), *self._graphs()]
        return [*made, self._pool(made), *self._numbers()]

    def _logged(self, name: str) -> tuple[int | float | None, float]:
        return self.log.figures.get(name), self.log.rounding.get(name, 0)

    def _again(self, **changes: Any) -> Pool | None:
        """The pool of a start that differs in this; None where that cannot be."""
        try:
            return pool(self.pool.model, replace(self.pool.engine, **changes), on=self.on)
        except (ValueError, TypeError):
            return None

    def _weights(self) -> Line:
        derived = self.derived["weights"]
        logged, rounding = self._logged("weights")
        why = ""
        if logged and abs(logged - derived) > max(rounding, derived // NEAR):
            why = self._of_weights(logged)
        return Line("weights", derived, logged, rounding, why)

    def _of_weights(self, logged: float) -> str:
        changes: list[dict[str, Any]] = [{"dtype": dtype} for dtype in DTYPES]
        changes += [{"quantization": format} for format in (*FORMATS, UNQUANTIZED)]
        changes += [{"tensor": ranks} for ranks in (1, 2, 4, 8)]
        best: tuple[float, str] | None = None
        for change in changes:
            other = self._again(**change)
            size = other.ledger["weights"].derived or 0 if other else 0
            off = abs(size - logged)
            if size and off <= logged / NEAR and (best is None or off < best[0]):
                best = off, Message(words.WITH, words.flags(change), text(size))
        return best[1] if best else words.UNKNOWN_WEIGHTS

    def _first_step(self) -> list[Line]:
        """Activations and what lies outside PyTorch: apart, or their sum where the log has that."""
        if self.log.engine == "sglang":
            return []
        step, other = self.derived["activations"], self.derived["other"]
        (a, a_to), (o, o_to) = self._logged("activations"), self._logged("non_torch")
        (w, w_to), (left, left_to) = self._logged("weights"), self._logged("available")
        if a is None and o is None and w is not None and left is not None:
            graphs = self.derived.get("CUDA graphs", 0)
            rest = words.share(self.pool) - graphs - w - left
            both = Listed(" + ", ["activations", "other"])
            near = abs(rest - step - other) <= left_to + w_to
            why = "" if near else words.NO_FORMULA  # of a sum no search could tell the parts
            return [Line(both, step + other, round(rest), left_to + w_to, why)]
        why = self._of_step(a, a_to) if a is not None else ""
        no = Message(words.LARGEST, text(other)) if o is not None and o != other else ""
        return [Line("activations", step, a, a_to, why), Line("other", other, o, o_to, no)]

    def _of_step(self, logged: float, rounding: float) -> str:
        """With which sampler and which limits the first step comes out as the log has it."""
        engine = self.pool.engine
        now = self.derived["activations"]
        if abs(logged - now) <= max(rounding, now // 50):
            return ""
        best: tuple[float, str] | None = None
        fields = {"sampler": SAMPLERS, "seqs": SEQS, "batched": (*BATCHED, engine.max_model_len)}
        tried: list[dict[str, Any]] = [{}]
        for field, values in fields.items():
            if field not in self.told or field == "sampler":
                tried = [each | {field: value} for each in tried for value in values]
        for change in tried:
            change = {name: v for name, v in change.items() if getattr(engine, name) != v}
            other = self._again(weights=self.derived["weights"], **change)
            off = abs((other.ledger["activations"].derived or 0) - logged) if other else logged
            off += len(change)  # of two that are alike, the one that changes less
            if change and off <= max(2 * rounding, logged / 50) and (best is None or off < best[0]):
                best = off, Message(words.AS_WITH, words.flags(change))
        return best[1] if best else ""

    def _graphs(self) -> list[Line]:
        reserved, unit = self._logged("reserved_graphs")
        if reserved is not None:
            return [Line("CUDA graphs", reserved, reserved, unit, words.IN_SHARE)]
        graphs, unit = self._logged("graphs")
        return [Line("CUDA graphs", None, graphs, unit, words.BEYOND)] if graphs else []

    def _pool(self, above: list[Line]) -> Line:
        logged, rounding = self._logged("available")
        derived = self.pool.available
        why = ""
        pairs = [x for x in above if x.derived is not None and x.logged is not None]
        if logged is not None and pairs and abs(logged - derived) > rounding:
            rest = derived - logged - sum([(x.logged or 0) - (x.derived or 0) for x in pairs])
            known = rounding + sum([x.rounding for x in pairs])
            near = abs(rest) <= known + words.share(self.pool) / NEAR
            why = words.LEAVES if near else Message(words.NOWHERE, text(abs(round(rest))))
        return Line("kv_cache", derived, logged, rounding, why)

    def _numbers(self) -> list[Line]:
        """Blocks, tokens and concurrency; whether the log's own bytes make them."""
        of_bytes = self._of_bytes()
        made = []
        for name in ("blocks", "tokens", "concurrency"):
            logged, rounding = self._logged(name)
            if self.log.engine == "sglang" and name != "tokens":
                continue
            field = "slots" if name == "tokens" and self.log.before(*SLOTS) else name
            derived = getattr(self.pool, field)
            why = ""
            if logged is not None and of_bytes and abs(logged - derived) > rounding:
                near = getattr(of_bytes, field)
                to = self.log.rounding["available"] / of_bytes.block_bytes * of_bytes.block
                to = max(to * near / max(1, of_bytes.slots), near / 500) + 1
                why = words.OF_BYTES if abs(near - logged) <= to else words.NOT_OF_BYTES
            made.append(Line(name, derived, logged, rounding, why, sized=False))
        return [line for line in made if line.logged is not None or line.term == "tokens"]

    def _of_bytes(self) -> Pool | None:
        """The pool that has as many bytes as the log's."""
        logged = self.log.figures.get("available")
        if logged is None or logged < 0:
            return None
        more = self.pool.available - round(logged)
        taken = self.derived["weights"] + more
        return self._again(weights=taken) if taken >= 0 else None
