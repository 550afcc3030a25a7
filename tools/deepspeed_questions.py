"""What tools/deepspeed_runs.py asks DeepSpeed: models, recipes, and what of a run is unusual."""

from typing import Any

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
CONFIGS["gpt_oss"] = {"model_type": "gpt_oss", "tie_word_embeddings": False} | SMALL | HEADS
CONFIGS["gpt_oss"] |= {
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "sliding_window": 8,
    "intermediate_size": 64,
}
# Llamas that are written otherwise, none with a token of its own that is treated apart.
UNTIED = {"tie_word_embeddings": False} | dict.fromkeys(
    ("pad_token_id", "bos_token_id", "eos_token_id")
)
CONFIGS |= {
    family: {"model_type": family} | UNTIED | SMALL | HEADS
    for family in ("granite", "seed_oss", "olmo2", "starcoder2", "olmo", "glm4")
}
CONFIGS["phi3"] = {"model_type": "phi3"} | UNTIED | SMALL | {"num_key_value_heads": 2}
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
    ("llama", "zero", {"zero": 2, "clip": True, "micro_batches": 2}),
    ("qwen3", "fp32", {"zero": 1, "clip": True}),
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
    *(
        (family, recipe, said)
        for family in ("gpt2", "phi3", "starcoder2", "olmo", "glm4")
        for recipe, said in (
            ("zero", FEW),
            ("fp32", NONE | {"micro_batches": 2}),
            ("zero", FEW | {"checkpoint": "block", "data": 3}),
            ("zero", NONE | TORCHS),
        )
    ),
    ("llama", "zero", FEW | {"clip": True, "sub_group_size": 3000}),
    ("qwen3", "fp32", NONE | {"clip": True, "micro_batches": 2}),
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

# What chapter 25 sets beside FSDP2: its model, weights that all stay gathered, and none of them.
BUCKET = {"reduce_bucket_size": 500_000}
CHAPTER: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("tiny-llama", "zero", BUCKET),
    ("tiny-llama", "zero", BUCKET | NONE),
)
# Under Trainer, whose optimizer has two groups of parameters. "auto" stands for what it says.
AUTO = ("reduce_bucket_size", "prefetch_bucket_size", "param_persistence_threshold")
THEIRS = {"zero": 3, "library": "deepspeed"}
HOST = {"offload_optimizer": "cpu"}
TRAINER: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("llama", "zero", {"zero": 1}),
    ("llama", "zero", {"zero": 2}),
    ("llama", "fp32", {"zero": 1, "micro_batches": 2}),
    ("qwen2", "zero", {"zero": 2, "micro_batches": 3}),
    ("qwen2", "zero", {"zero": 1, "micro_batches": 3, "checkpoint": "block"}),
    ("qwen3", "fp32", {"zero": 2, "checkpoint": "block", "overlap_comm": True}),
    ("qwen3", "zero", {"zero": 2, "contiguous_gradients": False, "data": 3}),
    ("gpt2", "zero", {"zero": 2, "micro_batches": 2, "data": 4}),
    ("gpt2", "zero", {"zero": 1, "reduce_bucket_size": 100_000}),
    ("llama", "zero", {"zero": 2, "texts": "padded"}),
    ("llama", "zero", {"zero": 1, "auto": True}),
    ("qwen3", "zero", {"zero": 2, "auto": True, "micro_batches": 2}),
    ("gpt_oss", "zero", {"zero": 2}),
    ("llama", "zero", THEIRS),
    ("llama", "zero", THEIRS | FEW),
    ("llama", "fp32", THEIRS | NONE | {"micro_batches": 2}),
    ("qwen2", "zero", THEIRS | FEW | {"checkpoint": "block", "micro_batches": 2}),
    ("qwen2", "zero", THEIRS | FEW | {"sub_group_size": 3000, "data": 3}),
    ("qwen3", "zero", THEIRS | {"auto": True}),
    ("llama", "fp32", THEIRS | {"auto": True, "checkpoint": "block"}),
    ("mistral", "zero", THEIRS | NONE | TORCHS | {"checkpoint": "block"}),
    ("gemma", "zero", THEIRS | FEW | {"data": 4, "micro_batches": 3}),
    ("granite", "zero", THEIRS | FEW | {"contiguous_gradients": False}),
    ("gpt2", "zero", THEIRS | FEW),
    ("phi3", "zero", THEIRS | NONE | {"prefetch_bucket_size": 5000, "checkpoint": "block"}),
    # Beside an optimizer on the host.
    ("llama", "zero", {"zero": 1} | HOST),
    ("llama", "zero", {"zero": 2} | HOST),
    ("qwen3", "zero", {"zero": 2, "auto": True, "micro_batches": 3} | HOST),
    ("qwen2", "fp32", {"zero": 1, "micro_batches": 2} | HOST),
    ("gpt2", "zero", {"zero": 2, "data": 3, "checkpoint": "block"} | HOST),
    ("llama", "zero", THEIRS | FEW | HOST),
    ("qwen3", "fp32", THEIRS | NONE | {"micro_batches": 2} | HOST),
    ("phi3", "zero", THEIRS | {"auto": True, "data": 3, "checkpoint": "block"} | HOST),
)
