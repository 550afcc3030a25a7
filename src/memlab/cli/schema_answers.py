"""The documents of estimate, trace, fit and explain, field by field."""

from __future__ import annotations

from ..run import Run, fields
from ..run.adapters import KINDS
from ..run.run import LORA
from ..verdict import DOES_NOT_FIT, FITS, TIGHT
from .estimate_json import TERMS
from .schema_parts import SIZES, UNIT, field, record, several
from .schema_serving import SERVING

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# As memlab.Run has them; a null is what `unset` says.
KINDS_OF = {
    fields.WORD: "text",
    fields.COUNT: "count",
    fields.NUMBER: "number",
    fields.FLAG: "flag",
}
OBJECTS = {
    "lora": ", ".join(LORA),
    "adapter": f"kind: {', '.join(KINDS)}; its fields",
    "teacher": "model, every field of it; weights",
    "devices": "what they divide: memlab.Sharding",
}


def _of_run(one: fields.Field) -> dict[str, Any]:
    """The schema of one field of a run."""
    nullable = getattr(Run, one.name) is None
    if one.kind == fields.WORDS:
        return several({"type": "string"}, one.what)
    if one.kind == fields.VALUE:
        kinds = ["object", "null"] if nullable else "object"
        return {"type": kinds, "description": OBJECTS[one.name]}
    what = one.what + (f"; null: {one.unset}" if nullable and one.unset else "")
    return field(KINDS_OF[one.kind] + "?" * nullable, what)


RUN = record(
    {field.name: _of_run(field) for field in fields.TABLE}, "how the step is executed: memlab.Run"
)
RECIPE = {
    "type": ["object", "null"],
    "description": "formats and optimizer; null: a traced file says its own",
}
_ROWS = record(
    {name: field("bytes?", f"{name}; null: not derived") for name in TERMS},
    "what stays, and what autograd keeps after the forward pass",
)
_PEAK = {
    "type": ["object", "null"],
    "description": "bytes, moment, contents by term, first_step_bytes; null: there is no step",
}
_ALLOCATOR = {
    "type": ["object", "null"],
    "description": "allocated and reserved bytes, replayed; null: on a CPU, or not replayed",
}
_HELD = {"type": ["object", "null"], "description": "bytes at the quiet moments, by name"}
_STEP = {
    "model": field("text", "the preset, the config's name, or FILE.py:FUNCTION"),
    "parameters": field("count", "all of them"),
    "unit": UNIT,
    "rows": _ROWS,
    "held": _HELD,
    "peak": _PEAK,
    "allocator": _ALLOCATOR,
    "recipe": RECIPE,
    "leaves_out": several({"type": "string"}, "what no figure here holds"),
}
_CHANGE = record(
    {
        "change": field("text", "its name"),
        "cost": field("text", "in time, or in what can no longer be done"),
        "peak": field("bytes", "with all changes so far"),
        "flag": field("text", "the flag or line of the reader's library that makes it"),
    }
)
_FINDING = record(
    {
        "name": field("text", "the cause"),
        "bytes": field("integer?", "what it adds to the peak; null: only a look can tell"),
        "pieces": field("count", "how many times"),
        "likely": field("text", "often, sometimes, seldom: our judgement"),
        "look": field("text", "the experiment that confirms it or rules it out"),
    }
)
_SUM = record(
    {
        "names": several({"type": "string"}, "the causes"),
        "bytes": field("integer", "what they add together"),
        "left": field("integer", "of the gap; negative where they overshoot"),
    }
)
_READ = {"type": "object", "description": "what was pasted: asked, allocated, ... or null"}
_WHERE = {"where": field("text", "FILE:NUMBER"), "code": field("text", "the line itself")}
_HOLDER = record(
    {
        "bytes": field("bytes", "at the peak"),
        "tensors": field("count", "that it made"),
        "term": field("text", "weights, activations, ..."),
        "line": record(_WHERE, "of the program, that its author can change"),
        "library": record(_WHERE, "of the library that it called; else the same"),
    }
)
WORDS = [FITS, TIGHT, DOES_NOT_FIT]

ANSWERS: dict[str, dict[str, Any]] = {
    "estimate": _STEP
    | {
        "config": {
            "type": "object",
            "description": "its keys: read, no effect, not known; all empty for a preset",
        },
        "run": RUN,
        "defaults": {
            "type": "object",
            "description": "what the loop takes where nothing is said: told, a line; by field",
        },
    },
    "estimate --against": {
        "unit": UNIT,
        "left": field("text", "the first recipe's title"),
        "right": field("text", "that of --against"),
        "rows": several(
            record(
                {
                    "term": field("text", "weights, gradients, ...; the last is the total"),
                    "left": field("integer?", "by the first recipe"),
                    "right": field("integer?", "by the other"),
                }
            ),
            "term by term",
        ),
        "run": RUN,
    },
    "rehearse": {
        "unit": UNIT,
        "peak": {"type": "object", "description": "bytes, step, phase, contents by term"},
        "steps": several({"type": "integer"}, "the peak of each optimizer step"),
        "allocator": _ALLOCATOR,
        "beside": {
            "type": ["object", "null"],
            "description": "bytes of the CUDA context, cuBLAS and NCCL; null: on a CPU",
        },
        "host": field("bytes?", "tensors on the host, at most; null: on a CPU"),
        "lines": several(_HOLDER, "the lines that hold most at the peak"),
        "device": field("text?", "that of --on; null: none was named"),
        "backend": field("text", "cuda, or cpu: as without a card"),
        "held": {"type": "object", "description": "bytes of the last step, by quiet moment"},
        "ranks": field("count", "processes, of which this is one"),
        "cards": field("count", "that one process sees"),
        "rank": field("count", "number of the rank or the card, from 0: the fullest rehearsed"),
        "other_ranks": {"type": "object", "description": "the peaks of the others, by number"},
        "remedies": several({"type": "object"}, "changes, each rehearsed: where it does not fit"),
        "batches": several({"type": "object"}, "shapes that loaders gave, how many times"),
        "fits": field("flag?", "whether it surely fits; null: no device was named"),
        "verdict": field("text?", "of three; null likewise", enum=[*WORDS, None]),
        "out_of_memory": {
            "type": ["object", "null"],
            "description": "PyTorch's message, step, phase, line, library; null: it fits",
        },
        "assumed": several({"type": "object"}, "what was assumed, its line, how many times"),
        "not_run": several({"type": "object"}, "what was not run, how many times"),
        "missing": {"type": "object", "description": "packages not installed: who looked for them"},
        "versions": {"type": "object", "description": "of the libraries that took part"},
        "platform": field("text", "sys.platform"),
        "leaves_out": several({"type": "string"}, "what no figure here holds"),
        "rehearsed": field("flag", "true: a program was run, and nothing derived"),
        "refused": field("text?", "of estimate and fit: what is not described; null: a program"),
        "script": field("text?", "of these: the trainer's own that was run; null likewise"),
    },
    "trace": _STEP
    | {
        "verdict": field(
            "text?", "on the device of --fits; null: none was named", enum=[*WORDS, None]
        ),
        "fits": field("flag?", "whether that is fits"),
        "run": {"type": "object", "description": "as estimate; of a file, what is counted of it"},
    },
    "fit": {
        "unit": UNIT,
        "device": field("text", "its name"),
        "limit": field("bytes", "the largest peak that fits there"),
        "verdict": field("text", "on the step as it is, or on the smallest one", enum=WORDS),
        "fits": field("flag", "whether that is fits"),
        "what": field("text?", "batch or sequence; null: --batch and --tokens were both given"),
        "value": field("count?", "the largest that fits; 0: none"),
        "peak": field("bytes?", "of the step with that value"),
        "ended_by": field(
            "text?", "memory, positions of the model, or bound: no larger batch is described"
        ),
        "changes": {
            "type": ["array", "null"],
            "description": "the cheapest that make it fit, in order",
            "items": _CHANGE,
        },
        "then": field(
            "text?", "on the step with all changes; null: none suffices", enum=[*WORDS, None]
        ),
        "least": field("bytes?", "what is needed with every change, where none suffices"),
        "leaves_out": several({"type": "string"}, "parts of a multimodal model that are not text"),
        "run": RUN,
    },
    "explain": {
        "title": field("text", "model, recipe, run"),
        "unit": UNIT,
        "predicted": SIZES | {"description": "the derived peak, by term"},
        "predicted_bytes": field("bytes", "its sum"),
        "seen_bytes": field("bytes", "what was seen"),
        "gap_bytes": field("integer", "seen less predicted"),
        "causes": several(
            _FINDING, "what can account for the gap: first what closes it, then the most likely"
        ),
        "sums": several(_SUM, "causes that come near it together"),
        "ruled_out": several(_FINDING, "what cannot"),
        "notes": several({"type": "string"}, "what else is to be said"),
        "equal": several({"type": "string"}, "causes that close the gap, as far as it is known"),
        "rounding_bytes": field("bytes", "to which the figure seen is known"),
        "at_least": field("flag", "whether the run would have held more: it ended out of memory"),
        "read": _READ,
        "request": several({"type": "object"}, "tensors as large as the request that failed"),
        "seen": several({"type": "string"}, "what the timeline or the snapshot says"),
        "run": RUN,
    },
    **SERVING,
    "explain pasted": {
        "read": _READ,
        "notes": several({"type": "string"}, "what the message says, a sentence each"),
        "seen": several({"type": "string"}, "what the timeline or the snapshot says"),
    },
}
