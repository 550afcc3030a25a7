"""The documents of serve and of explain --engine, field by field."""

from __future__ import annotations

from .schema_parts import SIZES, UNIT, field, record, several

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SERVING: dict[str, dict[str, Any]] = {
    "serve": {
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
    "explain --engine": {
        "model": field("text", "the preset, or the config's name"),
        "device": field("text", "its name, or its size as the log has it"),
        "unit": UNIT,
        "rows": several(
            record(
                {
                    "term": field("text", "weights, activations, kv_cache, blocks, ..."),
                    "derived": field("number?", "bytes or a number; null: there is no formula"),
                    "logged": field(
                        "number?", "the log's own; null: it has none, or a figure was given"
                    ),
                    "rounding": field("number", "to how much that is known"),
                    "why": field("text", "what explains the difference; may be empty"),
                }
            ),
            "of one rank",
        ),
        "notes": several({"type": "string"}, "versions, units, ranks; of a figure, the answer"),
        "refused": field("text?", "what was being done as memory ran out; null: it started"),
        "remedies": several(
            record(
                {
                    "flag": field("text", "the engine's own"),
                    "value": field("text", "with which it would have started"),
                    "available": field("integer", "bytes left for the cache then"),
                    "tokens": field("count", "that these hold"),
                }
            ),
            "each alone",
        ),
        "useless": several({"type": "string"}, "flags that alone would not do"),
        "log": {
            "type": ["object", "null"],
            "description": "all that was read: memlab.files.engine_log.EngineLog",
        },
    },
}
