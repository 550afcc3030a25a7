"""Run DeepSpeed's ZeRO 1 and 2 on two ranks of this machine, and print what each of them held.

    pip install deepspeed==0.19.8
    python tools/deepspeed_runs.py > tests/deepspeed.json

tests/test_deepspeed.py holds the derived figures against that file, so that nobody needs DeepSpeed
to run it.
"""

import json
import platform
from importlib.metadata import version
from typing import Any

from memlab import Model, Run, Sharding
from memlab.lab import deepspeed_steps
from memlab.lab.ranks import on_ranks

RANKS = 2
SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
HEADS = {"num_key_value_heads": 2, "head_dim": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "tie_word_embeddings": False} | SMALL | HEADS,
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True} | SMALL | HEADS,
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4}
    | {"n_positions": 64, "vocab_size": 101},
}
# A family, a recipe, and what differs from two sequences of 16 tokens with buckets of 4,000 values,
# of which no weight but the embedding and some of gpt2's are larger.
ASKED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("llama", "zero", {"zero": 1}),
    ("llama", "zero", {"zero": 2}),
    ("llama", "zero", {"zero": 2, "reduce_bucket_size": 2000}),
    ("llama", "fp32", {"zero": 2, "overlap_comm": True}),
    ("qwen3", "zero", {"zero": 2, "contiguous_gradients": False}),
    ("qwen3", "fp32", {"zero": 1, "reduce_bucket_size": 100_000}),
    ("gpt2", "zero", {"zero": 2, "micro_batches": 3, "checkpoint": "block"}),
    ("gpt2", "zero", {"zero": 1, "micro_batches": 2, "overlap_comm": False}),
    ("gpt2", "zero", {"zero": 2, "contiguous_gradients": False, "overlap_comm": True}),
)
OF_DEVICES = ("zero", "reduce_bucket_size", "overlap_comm", "contiguous_gradients")


def question(family: str, recipe: str, said: dict[str, Any]) -> tuple[Model, str, Run]:
    """A model, a recipe and a run."""
    devices = {"reduce_bucket_size": 4000} | {n: said[n] for n in OF_DEVICES if n in said}
    run = {name: value for name, value in said.items() if name not in OF_DEVICES}
    model = Model.from_config(CONFIGS[family])
    sharding = Sharding(data=RANKS, **devices)
    return model, recipe, Run.cpu(batch=2, tokens=16, devices=sharding, **run)


def main() -> None:
    """Print the record."""
    questions = [question(*asked) for asked in ASKED]
    found = on_ranks(RANKS, deepspeed_steps.several, questions, seconds=600)
    runs = [
        {
            "config": CONFIGS[family],
            "recipe": recipe,
            "run": questions[number][2].to_dict(),
            "ranks": [held[number] for held in found],
        }
        for number, (family, recipe, _) in enumerate(ASKED)
    ]
    document = {
        "command": "python tools/deepspeed_runs.py > tests/deepspeed.json",
        "deepspeed": version("deepspeed"),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "python": platform.python_version(),
        "device": "cpu, gloo",
        "unit": "bytes of storages",
        "runs": runs,
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
