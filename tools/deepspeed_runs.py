"""Run DeepSpeed's ZeRO on one to four ranks of this machine, and print what each of them held.

    pip install deepspeed==0.19.8
    python tools/deepspeed_runs.py > tests/deepspeed.json           stages 1 and 2
    python tools/deepspeed_runs.py third > tests/deepspeed3.json    stage 3
    python tools/deepspeed_runs.py one > tests/deepspeed1.json      each stage on one rank alone
    python tools/deepspeed_runs.py chapter > src/memlab/data/ranks/zero3.json   chapter 21's

tests/test_deepspeed.py, test_deepspeed_alone.py and test_zero3.py hold the derived figures against
these files, so that nobody needs DeepSpeed to run them.
"""

import json
import platform
import sys
from importlib.metadata import version
from typing import Any

from memlab import Model, Run, Sharding
from memlab.lab import deepspeed_steps
from memlab.lab.ranks import on_ranks

SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
HEADS = {"num_key_value_heads": 2, "head_dim": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "tie_word_embeddings": False} | SMALL | HEADS,
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True} | SMALL | HEADS,
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": False} | SMALL | HEADS,
    "mistral": {"model_type": "mistral", "tie_word_embeddings": False} | SMALL | HEADS,
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4}
    | {"n_positions": 64, "vocab_size": 101},
}
# Llamas that are written otherwise, none with a token of its own that is treated apart.
UNTIED = {"tie_word_embeddings": False} | dict.fromkeys(
    ("pad_token_id", "bos_token_id", "eos_token_id")
)
CONFIGS |= {
    family: {"model_type": family} | UNTIED | SMALL | HEADS
    for family in ("granite", "seed_oss", "olmo2")
}
CONFIGS |= {
    family: {"model_type": family} | UNTIED | SMALL | HEADS | {"tie_word_embeddings": True}
    for family in ("gemma", "smollm3")
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
# Stage 3, where norms and biases persist and the matrices do not, unless something else is said.
FEW = {"param_persistence_threshold": 50, "max_reuse_distance": 3000, "prefetch_bucket_size": 5000}
NONE = dict.fromkeys(FEW, 0)
TORCHS = {"memory_efficient_linear": False}  # torch's own linear layers
THIRD: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("llama", "zero", {}),  # all persist
    ("llama", "zero", FEW),
    ("llama", "zero", NONE),
    ("llama", "fp32", FEW | {"sub_group_size": 3000, "reduce_bucket_size": 2000}),
    ("qwen3", "zero", FEW | {"micro_batches": 3, "max_live_parameters": 6000}),
    ("qwen3", "fp32", FEW | {"contiguous_gradients": False, "max_reuse_distance": 20_000}),
    ("qwen2", "zero", FEW | {"checkpoint": "block", "sub_group_size": 5000}),
    (
        "llama",
        "zero",
        NONE | {"prefetch_bucket_size": 9000, "checkpoint": "block", "micro_batches": 2},
    ),
    ("qwen2", "fp32", NONE | {"param_persistence_threshold": 50, "sub_group_size": 1}),
    ("mistral", "zero", FEW | {"attention": "eager"}),
    ("qwen3", "zero", FEW | {"param_persistence_threshold": 2000}),
    ("qwen3", "fp32", FEW | {"checkpoint": "block", "micro_batches": 2, "overlap_comm": True}),
    ("llama", "zero", FEW | {"max_live_parameters": 0}),
    ("qwen3", "zero", FEW | {"data": 3, "reduce_bucket_size": 100_000}),
    ("qwen2", "zero", FEW | {"data": 3, "checkpoint": "block", "reduce_bucket_size": 1000}),
    ("mistral", "fp32", FEW | {"data": 3, "prefetch_bucket_size": 50_000}),
    ("llama", "zero", FEW | {"data": 4}),
    ("qwen3", "fp32", FEW | {"data": 4, "checkpoint": "block", "contiguous_gradients": False}),
    ("qwen2", "zero", {"data": 4, "micro_batches": 2}),
    ("llama", "zero", NONE | TORCHS),
    ("qwen2", "zero", FEW | TORCHS),
    ("qwen2", "fp32", NONE | TORCHS | {"data": 3}),
    ("llama", "zero", FEW | TORCHS | {"checkpoint": "block", "micro_batches": 2}),
    ("qwen3", "zero", {"prefetch_bucket_size": 0, "max_reuse_distance": 0} | TORCHS),
    ("mistral", "zero", NONE | TORCHS | {"checkpoint": "block"}),
    *((family, "zero", FEW) for family in ("gemma", "granite", "smollm3", "seed_oss", "olmo2")),
    ("gemma", "fp32", FEW | {"checkpoint": "block", "micro_batches": 2}),
    ("gemma", "zero", NONE | TORCHS),
    ("gemma", "zero", FEW | {"data": 3}),
    ("granite", "zero", NONE),
    ("granite", "fp32", FEW | {"data": 4, "checkpoint": "block"}),
    ("smollm3", "zero", FEW | {"data": 3, "max_live_parameters": 6000}),
    ("smollm3", "fp32", FEW | TORCHS | {"checkpoint": "block"}),
    ("seed_oss", "zero", NONE | {"prefetch_bucket_size": 9000, "micro_batches": 2}),
    ("seed_oss", "fp32", FEW | {"contiguous_gradients": False, "checkpoint": "block"}),
    ("olmo2", "zero", {"data": 4}),
    ("olmo2", "fp32", FEW | {"checkpoint": "block"}),
    ("olmo2", "zero", NONE | TORCHS),
)

# One rank alone: nothing is divided, and stage 3 gathers nothing.
ALONE: tuple[tuple[str, str, dict[str, Any]], ...] = tuple(
    (family, recipe, said | {"data": 1})
    for family, recipe, said in (
        ("llama", "zero", {"zero": 1}),
        ("llama", "zero", {"zero": 2}),
        ("llama", "fp32", {"zero": 2, "overlap_comm": True}),
        ("gpt2", "zero", {"zero": 2, "micro_batches": 3, "checkpoint": "block"}),
        ("qwen3", "zero", {"zero": 2, "contiguous_gradients": False}),
        ("llama", "zero", {}),
        ("llama", "zero", FEW),
        ("llama", "zero", NONE),
        ("qwen2", "zero", FEW | {"checkpoint": "block"}),
        ("qwen3", "fp32", FEW | {"micro_batches": 2}),
        ("llama", "zero", NONE | TORCHS),
    )
)

# What chapter 21 sets beside FSDP2: its model, weights that all stay gathered, and none of them.
BUCKET = {"reduce_bucket_size": 500_000}
CHAPTER: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("tiny-llama", "zero", BUCKET),
    ("tiny-llama", "zero", BUCKET | NONE),
)
FILES = {
    "third": (THIRD, "tests/deepspeed3.json"),
    "one": (ALONE, "tests/deepspeed1.json"),
    "chapter": (CHAPTER, "src/memlab/data/ranks/zero3.json"),
}


def question(family: str, recipe: str, said: dict[str, Any]) -> tuple[Model, str, Run]:
    """A model, a recipe and a run; two ranks unless it says otherwise."""
    named = Sharding.__annotations__
    devices = {"data": 2, "reduce_bucket_size": 4000} | {n: said[n] for n in named if n in said}
    run = {name: value for name, value in said.items() if name not in named}
    if family not in CONFIGS:
        ours = Run.cpu(batch=4, tokens=64, devices=Sharding(**devices), **run)
        return Model.preset(family), recipe, ours
    model = Model.from_config(CONFIGS[family])
    return model, recipe, Run.cpu(batch=2, tokens=16, devices=Sharding(**devices), **run)


def said_of(run: Run) -> dict[str, Any]:
    """What of a run, and of its devices, does not stand at its default."""
    usual, alone = Run.cpu().to_dict(), Sharding()
    said = {name: value for name, value in run.to_dict().items() if value != usual[name]}
    said["devices"] = {n: v for n, v in said["devices"].items() if v != getattr(alone, n)}
    return {"backend": "cpu"} | said


def held(questions: list[tuple[Model, str, Run]]) -> list[list[dict[str, Any]]]:
    """Of each question what each rank held; processes start once for all of as many ranks."""
    found: list[list[dict[str, Any]]] = [[] for _ in questions]
    for ranks in sorted({run.devices.data for *_, run in questions}):
        mine = [n for n, (*_, run) in enumerate(questions) if run.devices.data == ranks]
        asked = [questions[number] for number in mine]
        for rank in on_ranks(ranks, deepspeed_steps.several, asked, seconds=600):
            for number, told in zip(mine, rank, strict=True):
                found[number].append(told)
    return found


def main() -> None:
    """Print the record."""
    which = sys.argv[1] if sys.argv[1:] else None
    theirs = {"zero": 3, "library": "deepspeed"}
    third, file = FILES[which] if which else (ASKED, "tests/deepspeed.json")
    asked = [(f, r, theirs | said) for f, r, said in third] if which else list(ASKED)
    questions = [question(*each) for each in asked]
    runs = [
        {"config": CONFIGS.get(family, family), "recipe": recipe, "run": said_of(run)}
        | {"ranks": ranks}
        for (family, recipe, _), (*_, run), ranks in zip(
            asked, questions, held(questions), strict=True
        )
    ]
    command = " ".join(["python tools/deepspeed_runs.py", *sys.argv[1:], ">", file])
    document = {
        "command": command,
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
