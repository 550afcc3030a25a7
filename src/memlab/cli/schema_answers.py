"""The documents of estimate, trace, fit and explain, field by field."""

from __future__ import annotations

from ..run import FIELDS as RUN_FIELDS
from ..run import KNOWN, LORA
from ..run_adapters import KINDS
from ..verdict import DOES_NOT_FIT, FITS, TIGHT
from .estimate_json import TERMS
from .schema_parts import UNIT, field, record, several

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

UNSAID = ("attention", "checkpoint", "optimizer_impl", "reference", "compile")
# memlab.Run says each in full; a null is what the config or torch says by itself.
_RUN: dict[str, dict[str, Any]] = {
    name: field("text?" if name in UNSAID else "text", "see memlab.Run") for name in KNOWN
}
_RUN |= {
    "batch": field("count", "sequences of one micro-batch"),
    "tokens": field("count?", "in each sequence; null: no step, only what stays"),
    "completion": field("count?", "tokens of each that TRL's loops learn; null: all but the first"),
    "eval_batch": field("count?", "sequences of a batch in an evaluation; null: there is none"),
    "eval_logits": field("count", "batches of it whose logits wait on the device"),
    "micro_batches": field("count", "before one step of the optimizer"),
    "dropout": field("number?", "the probability; null: what the config or its class says"),
    "window": field("count?", "positions that a token sees; null: what the config says"),
    "loss_chunks": field("count?", "chunks of rows in the loss; null: 8 where it is chunked"),
    "step_in_backward": field("flag", "whether each weight is updated inside backward"),
    "clip": field("flag?", "whether the gradients are clipped; null: as the loop does"),
    "lora": {"type": ["object", "null"], "description": ", ".join(LORA)},
    "adapter": {"type": ["object", "null"], "description": f"kind: {', '.join(KINDS)}; its fields"},
    "teacher": {"type": ["object", "null"], "description": "model, every field of it; weights"},
    "frozen": several({"type": "string"}, "components that are not trained"),
    "offload": several({"type": "string"}, "what waits on a host"),
    "holds": several({"type": "string"}, "what the loop keeps beside the step"),
    "inference_mode": field("flag", "a call under torch.inference_mode()"),
    "devices": {"type": "object", "description": "what they divide: memlab.Sharding"},
}
RUN = record({name: _RUN[name] for name in RUN_FIELDS}, "how the step is executed: memlab.Run")
SIZES = {"type": "object", "additionalProperties": {"type": ["integer", "null"]}}
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
    "estimate --engine": {
        "model": field("text", "the preset, or the config's name"),
        "device": field("text", "its name"),
        "unit": UNIT,
        "rows": SIZES | {"description": "the engine's share of a rank, by what takes it"},
        "available": field("integer", "left for the cache; below 0: the share is too small"),
        "block_tokens": field("count", "tokens of a block; sglang: 1"),
        "blocks": field("count", "of the pool, over all groups"),
        "groups": field("count", "block tables that a model with windows has"),
        "request_blocks": field("count", "that one request of max_model_len tokens may need"),
        "tokens": field("count", "what the log calls the size of the cache"),
        "slots": field("count", "what it called so in vLLM before 0.21"),
        "concurrency": field("number", "requests of max_model_len tokens at once"),
        "longest": field("count", "tokens of the longest request that fits"),
        "sequences": field("count?", "that fit at once, prefix shared; null: windows share none"),
        "starts": field("flag", "whether one request of max_model_len fits: the exit status"),
        "log": several({"type": "string"}, "what the start-up log says about memory"),
        "engine": {"type": "object", "description": "how it is started: memlab.engines.Engine"},
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
        "causes": several(_FINDING, "what can account for the gap, likeliest first"),
        "sums": several(_SUM, "causes that come near it together"),
        "ruled_out": several(_FINDING, "what cannot"),
        "notes": several({"type": "string"}, "what else is to be said"),
        "equal": several({"type": "string"}, "causes that close the gap, as far as it is known"),
        "rounding_bytes": field("bytes", "to which the figure seen is known"),
        "seen": several({"type": "string"}, "what the timeline or the snapshot says"),
        "run": RUN,
    },
}
