"""`memlab schema [COMMAND]`: what --json prints, field by field, as JSON Schema.

Every document is one object with "memlab", the command that made it, and "schema", the version of
its fields. The version changes when a field goes, is renamed or means something else; fields may be
added at any time, so a program should ignore those that it does not know. Sizes are whole bytes.

The one of `memlab watch` is the last line of stderr, because stdout is its program's; the timeline
that --out writes is described in memlab.files.timelines.
"""

from __future__ import annotations

import json

from ..files.claims import VERDICTS
from ..files.records import COUNTERS, KINDS, STATES
from ..files.timelines import SOURCES
from .document import SCHEMA
from .schema_answers import ANSWERS
from .schema_parts import UNIT, field, record, several
from .schema_room import ROOM

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import argparse
    from typing import Any

MODEL = record(
    {
        "name": field("text", "the preset, as CONFIG takes it"),
        "family": field("text", "whose architecture: llama, gpt2, ..."),
        "parameters": field("count", "all of them; a tied output head is counted once"),
        "layers": field("count", "blocks, L"),
        "d_model": field("count", "width of the residual stream, D"),
        "d_ff": field("count", "width of the feed-forward layer, F"),
        "heads": field("count", "query heads, N"),
        "kv_heads": field("count", "key/value heads, K"),
        "head_dim": field("count", "width of one head, H"),
        "vocab": field("count", "tokens of the vocabulary, V"),
        "positions": field("count", "the longest sequence that the config names"),
        "tied": field("flag", "whether the output head is the embedding"),
    }
)
DEVICE = record(
    {
        "name": field("text", "the card, as --on takes it"),
        "marketed": field("count", "GB on the box: a name more than a number"),
        "driver": field(
            "bytes?", "what nvidia-smi or amdgpu shows; null: no reading with a source"
        ),
        "usable": field("bytes?", "what a CUDA program sees in all; null likewise"),
        "limit": field("bytes", "usable, else driver: what --on holds a step against"),
        "capability": field("count?", "major number of CUDA's compute capability; null: no CUDA"),
        "sources": several({"type": "string"}, "where the two were read"),
    }
)
FORMAT = record(
    {
        "name": field("text", "as recipes and options take it"),
        "bits_per_value": field("number", "scales and zero points included"),
        "block": field(
            "count", "values that share a scale; 1: none is shared; 0: a whole row does"
        ),
        "bytes_of_2_20_values": field("bytes", "a tensor of 1,048,576 values"),
        "source": field("text", "the paper or standard of its constants"),
    }
)
RECIPE = record(
    {
        "name": field("text", "as --recipe takes it"),
        "weights": field("text", "format of the weights"),
        "other": field("text?", "format of the embedding and norms; null: that of the weights"),
        "head": field("text?", "format of the output head; null: that of the weights"),
        "gradients": field("text?", "format of the gradients; null: the figure leaves them out"),
        "master": field("text?", "format of a second copy that the optimizer updates; null: none"),
        "accumulator": field("text?", "format of a second gradient buffer; null: none"),
        "optimizer": field("text", "which"),
        "autocast": field("text?", "format that torch.autocast casts to; null: no autocast"),
        "tie": field("flag?", "overrides whether the output head is the embedding; null: does not"),
        "states": {
            "type": ["array", "null"],
            "description": "formats of the optimizer's states; null: the one that it updates in",
            "items": {"type": "string"},
        },
        "hides": field("text", "what a figure by this recipe leaves out"),
        "source": field("text", "who quotes it"),
    }
)
CLAIM = record(
    {
        "note": field("text", "the field note that says it"),
        "id": field("text", "of the claim"),
        "claim": field("text", "the statement, in our words"),
        "figures": field("text", "the note's own, as it prints them; may be empty"),
        "check": field("text?", "the function that computes it anew; null: see source and reason"),
        "result": field("text", "what the check found"),
        "verdict": field("text", "what became of it", enum=list(VERDICTS)),
        "right_figure": field("text?", "what belongs there; null: the claim holds"),
        "reason": field("text", "what to know beside it, or why no check; may be empty"),
        "new": field("flag", "found while auditing, and not on the list we began with"),
        "source": field("text", "where it was read, if no check computes it; may be empty"),
        "link": field("text", "its address, in the version that was read; empty without a source"),
        "quote": field("text", "the note's own words, without markup; may be empty"),
        "line": field("count", "where they stand in the note; 0: no quote"),
        "also": {"type": ["object", "null"], "description": "where it is said again: id and line"},
        "money": {"type": ["object", "null"], "description": "predicted, right: what it is about"},
    }
)
FIGURE: dict[str, Any] = {"type": ["number", "boolean", "null"]}
AUDITED = record(
    {
        "line": field("count", "of the file, where the claim begins"),
        "claim": field("text", "its heading there"),
        "figure": field("text", "as it was posted"),
        "ask": field("text?", "the command; null: it cannot be checked"),
        "term": field("text?", "the line of its answer; null likewise"),
        "posted": FIGURE
        | {"description": "the figure, in bytes or as a count; null: nothing said"},
        "low": field("number?", "the least that the figure allows; null: no end"),
        "high": field("number?", "the most that it allows; null: no end"),
        "within": field("number?", "a share of it that is near enough; null: its own digits say"),
        "ours": FIGURE | {"description": "what memlab answers; null: it was not asked"},
        "difference": field("number?", "ours less posted; null: nothing to subtract"),
        "verdict": field("text", "holds, unit slip, does not hold, or by the file's own word"),
        "reason": field("text", "what to know beside it; may be empty"),
        "where": field("text?", "where it was read; null: the file does not say"),
    }
)
TERM = record(
    {
        "term": field("text", "weights, gradients, optimizer, ..."),
        "derived": field("bytes?", "by formula; null: the formula has no such term"),
        "measured": field("bytes?", "after the last step; null: the run has no such term"),
    }
)
ROW = record(
    {
        "name": field("text", "of the case and the moment: step/tiny-llama/fp32/peak"),
        "term": field("text", "the chapter's term that it belongs to"),
        "what": field("text", "in words"),
        "by": field("text", "how it was predicted: derived, traced, or both; may be empty"),
        "predicted": field("bytes?", "without the device; null: there is no formula"),
        "measured": record(
            {name: field("bytes?", f"{name}, as the device counts it") for name in COUNTERS},
            "null: there is no such counter",
        ),
        "compared": field("text", "the counter that is predicted", enum=list(COUNTERS)),
        "above": field("bytes", "by which the measured figure may be larger"),
        "below": field("bytes", "by which the measured figure may be smaller"),
        "why": field("text", "the reason for that"),
        "state": field("text", "what became of it", enum=list(STATES)),
        "message": field("text", "why it was skipped, or what was raised; may be empty"),
    }
)

FIELDS: dict[str, dict[str, Any]] = {
    **ANSWERS,
    **ROOM,
    "error": {
        "command": field("text", "that refused"),
        "status": field("count", "the exit status"),
        "message": field("text", "what is wrong: the last line of stderr without --json"),
    },
    "models": {"models": several(MODEL, "the presets")},
    "devices": {"unit": UNIT, "devices": several(DEVICE, "the cards that memlab knows")},
    "formats": {"formats": several(FORMAT, "the storage formats")},
    "recipes": {"recipes": several(RECIPE, "the named recipes")},
    "claims": {"claims": several(CLAIM, "those of NOTE, or all; with --verdict, those with it")},
    "audit": {
        "title": field("text", "of the file"),
        "unit": UNIT,
        "verdicts": {"type": "object", "description": "how many claims have each verdict"},
        "claims": several(AUDITED, "in the order of the file"),
    },
    "watch": {
        "command": several({"type": "string"}, "the program and its arguments"),
        "started": field("text", "when, ISO 8601"),
        "source": field("text", "whose memory limits and peak are of", enum=list(SOURCES)),
        "device": field("text?", "the card; null: none"),
        "total_bytes": field("bytes", "what the source has in all"),
        "process_counts": field("text", "PSS or RSS"),
        "device_counts": field("text?", "program or card; null: no card"),
        "peak_bytes": field("bytes", "the most that was seen"),
        "events": several({"type": "object"}, "at, kind, ...: limits, signals, the exit"),
        "seconds": field("number", "how long it ran"),
        "exit": field("count", "the exit status"),
    },
    "measure": {
        "title": field("text", "model and recipe"),
        "unit": UNIT,
        "rows": several(TERM, "what stays after the last step, derived and measured"),
        "losses": several({"type": "number"}, "one a step"),
        "difference": field("integer?", "measured less derived, in bytes; null: terms differ"),
    },
    "record": {
        "kind": field("text", "of device", enum=list(KINDS)),
        "device": field("text", "its name"),
        "driver": field("text", "its driver's version"),
        "cuda": field("text", "of CUDA, or that there is none"),
        "torch": field("text", "version of PyTorch"),
        "python": field("text", "version of Python"),
        "date": field("text", "of the run, ISO 8601"),
        "commit": field("text", "of memlab's repository"),
        "command": field("text", "the line that does this again"),
        "complete": field("flag", "false where somebody stopped it half-way"),
        "unit": UNIT,
        "rows": several(ROW, "one figure each"),
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Commands, or none for all."""
    words = "estimate, fit, ... (default: all of them)"
    parser.add_argument("command", nargs="*", metavar="COMMAND", help=words)


def run(options: argparse.Namespace) -> str:
    """What the command prints: a schema for each command.

    Raises      ValueError for a command that prints no JSON
    """
    return json.dumps({name: schema(name) for name in options.command or FIELDS}, indent=1)


def schema(command: str) -> dict[str, Any]:
    """The JSON Schema of what `memlab COMMAND --json` prints.

    Raises      ValueError for a command that prints no JSON
    """
    if command not in FIELDS:
        raise ValueError(f"{command!r} prints no JSON; known: {', '.join(FIELDS)}")
    head = {
        "memlab": field("text", "the command", const=command),
        "schema": field("count", "the version of these fields", const=SCHEMA),
        "proven": {"type": "object", "description": "versions: memlab's, and those it is held to"},
    }
    begin = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"memlab {command} --json",
    }
    return begin | record(head | FIELDS[command])
