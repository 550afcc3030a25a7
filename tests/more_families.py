"""Random configs of the dense families beyond the first eight, as real_steps.py draws those."""

import random
from typing import Any

from real_steps import DRAWN, Question

from memlab import Run
from memlab.families import record_of
from memlab.measure.trace import LOOPS

MORE = (
    "phi3",
    "olmo2",
    "smollm3",
    "granite",
    "starcoder2",
    "glm4",
    "gemma2",
    "gemma3_text",
    "cohere2",
    "seed_oss",
    "ministral",
    "olmo",
    "arcee",
)
EAGER = ("gemma2",)  # families that have no other attention


def drawn(
    n: int,
    seed: int,
    families: tuple[str, ...] = MORE,
    *,
    checkpoints: tuple[str, ...] = ("none", "block"),
    dropouts: tuple[float, ...] = (0.0, 0.0, 0.1),
) -> list[Question]:
    """`n` configs, the same for the same arguments; families take turns."""
    rng = random.Random(f"memlab {seed}")
    return [
        _drawn(rng, families[i % len(families)], rng.choice(checkpoints), rng.choice(dropouts))
        for i in range(n)
    ]


def _drawn(rng: random.Random, family: str, checkpoint: str, dropout: float) -> Question:
    # The peak is somewhere else when weights, sequence or vocabulary are large, so draw each.
    large = rng.choice(["weights", "tokens", "vocab", "nothing"])
    heads, width = rng.choice([1, 2, 3, 4, 6, 8]), rng.choice([8, 16, 24, 32])
    tokens = rng.randint(70, 130) if large == "tokens" else rng.randint(5, 50)
    config: dict[str, Any] = {
        "model_type": family,
        "num_hidden_layers": rng.randint(1, 5),
        "hidden_size": heads * width,
        "intermediate_size": rng.choice([3 * heads * width, rng.randint(10, 5 * heads * width)]),
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([k for k in range(1, heads + 1) if heads % k == 0]),
        "vocab_size": rng.randint(1500, 3000) if large == "vocab" else rng.randint(50, 400),
        "max_position_embeddings": tokens + rng.randint(0, 50),
        "pad_token_id": None,
    }
    config["head_dim"] = rng.choice([width, 8, 16, 40])
    optional: dict[str, list[Any]] = {
        key: [True, False]
        for key, usual in record_of(family).shape.values()
        if isinstance(usual, bool)
    }
    if family in OPTIONAL:
        optional |= OPTIONAL[family](rng, config, tokens)
    config |= {key: rng.choice(those) for key, those in optional.items() if rng.random() < 0.6}
    return Question(
        config,
        rng.choice(DRAWN),
        Run.cpu(
            attention="eager" if family in EAGER else rng.choice(["sdpa", "eager"]),
            optimizer_impl=rng.choice(list(LOOPS)),
            checkpoint=checkpoint,
            batch=1 if large == "weights" else rng.randint(1, 4),
            tokens=tokens,
            dropout=dropout,
            micro_batches=rng.choice([1, 1, 1, 2]),
        ),
    )


def _phi3(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    share = rng.choice([0.25, 0.5, 0.75, 1.0])
    turned = int(config["hidden_size"] // config["num_attention_heads"] * share) // 2
    config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
    rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": share}
    factors = {"short_factor": [1.0] * turned, "long_factor": [2.0] * turned}
    return {
        "sliding_window": [rng.randint(2, tokens + 5)],
        "rope_parameters": [rope, rope | {"rope_type": "longrope"} | factors],
    }


def _olmo(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    return {"clip_qkv": [0.05, 8.0, None]}


def _smollm3(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    layers = config["num_hidden_layers"]
    if rng.random() < 0.4:
        config |= {"use_sliding_window": True, "sliding_window": rng.randint(2, tokens + 5)}
    return {
        "no_rope_layer_interval": [1, 2, 3],
        "no_rope_layers": [[rng.randint(0, 1) for _ in range(layers)]],
    }


def _granite(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    return {
        "embedding_multiplier": [12.0],
        "logits_scaling": [8.0],
        "residual_multiplier": [0.22],
        "attention_multiplier": [0.01],
    }


def _starcoder2(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    window = rng.randint(2, tokens + 5)
    return {"sliding_window": [window, None]}


def _glm4(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    return {"partial_rotary_factor": [0.25, 0.5, 1.0]}


def _gemma2(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    layers = config["num_hidden_layers"]
    kinds = [rng.choice(["sliding_attention", "full_attention"]) for _ in range(layers)]
    return {
        "sliding_window": [rng.randint(2, tokens + 5)],
        "layer_types": [kinds],
        "attn_logit_softcapping": [20.0, None],
        "final_logit_softcapping": [20.0, None],
    }


def _gemma3(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    scaled = {"rope_type": "linear", "factor": 8.0}
    return _gemma2(rng, config, tokens) | {
        "sliding_window_pattern": [1, 2, 3],
        "rope_parameters": [
            {"full_attention": scaled},
            {"sliding_attention": {"rope_type": "default"}},
        ],
    }


def _cohere2(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    said = _gemma2(rng, config, tokens)
    names = ("sliding_window", "layer_types")
    return {name: said[name] for name in names} | {"sliding_window_pattern": [1, 2, 3]}


def _seed_oss(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    config["residual_dropout"] = 0.0  # the class's own is 0.1, as of attention
    return {}


def _ministral(rng: random.Random, config: dict[str, Any], tokens: int) -> dict[str, list[Any]]:
    said = _gemma2(rng, config, tokens)
    return {name: said[name] for name in ("sliding_window", "layer_types")}


# What else a family's config may say: each key is there or not.
OPTIONAL = {
    "phi3": _phi3,
    "olmo": _olmo,
    "smollm3": _smollm3,
    "granite": _granite,
    "starcoder2": _starcoder2,
    "glm4": _glm4,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "cohere2": _cohere2,
    "seed_oss": _seed_oss,
    "ministral": _ministral,
}
