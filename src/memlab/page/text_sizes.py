"""Sizes of a text whose config leaves them out: those of its class in transformers.

A config of its own must say them (memlab.families.REQUIRED); the text_config of a model that reads
images or audio says what differs from its class, or from what the whole's class takes (OF_WHOLES).
tools/text_sizes.py writes the tables.
"""

from __future__ import annotations

SIZES: dict[str, str] = {
    "arcee": (
        "hidden_size=2560 intermediate_size=18432 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=32000"
    ),
    "cohere2": (
        "hidden_size=8192 intermediate_size=22528 num_attention_heads=64 num_hidden_layers=40 "
        "vocab_size=256000"
    ),
    "deepseek_v2": (
        "hidden_size=4096 intermediate_size=11008 moe_intermediate_size=1407 "
        "n_routed_experts=64 num_attention_heads=32 num_hidden_layers=32 vocab_size=102400"
    ),
    "deepseek_v3": (
        "hidden_size=7168 intermediate_size=18432 moe_intermediate_size=2048 "
        "n_routed_experts=256 num_attention_heads=128 num_experts_per_tok=8 "
        "num_hidden_layers=61 vocab_size=129280"
    ),
    "gemma": (
        "hidden_size=3072 intermediate_size=24576 num_attention_heads=16 num_hidden_layers=28 "
        "vocab_size=256000"
    ),
    "gemma2": (
        "hidden_size=2304 intermediate_size=9216 num_attention_heads=8 num_hidden_layers=26 "
        "vocab_size=256000"
    ),
    "gemma3_text": (
        "hidden_size=2304 intermediate_size=9216 num_attention_heads=8 num_hidden_layers=26 "
        "vocab_size=262208"
    ),
    "glm4": (
        "hidden_size=4096 intermediate_size=13696 num_attention_heads=32 num_hidden_layers=40 "
        "vocab_size=151552"
    ),
    "glm4_moe": (
        "hidden_size=4096 intermediate_size=10944 moe_intermediate_size=1408 "
        "n_routed_experts=128 num_attention_heads=96 num_experts_per_tok=8 "
        "num_hidden_layers=46 vocab_size=151552"
    ),
    "gpt2": "n_embd=768 n_head=12 n_layer=12 vocab_size=50257",
    "gpt_neox": (
        "hidden_size=6144 intermediate_size=24576 num_attention_heads=64 num_hidden_layers=44 "
        "vocab_size=50432"
    ),
    "gpt_oss": (
        "hidden_size=2880 intermediate_size=2880 num_attention_heads=64 num_experts_per_tok=4 "
        "num_hidden_layers=36 num_local_experts=128 vocab_size=201088"
    ),
    "granite": (
        "hidden_size=4096 intermediate_size=11008 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=32000"
    ),
    "llama": (
        "hidden_size=4096 intermediate_size=11008 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=32000"
    ),
    "llama4_text": (
        "hidden_size=5120 intermediate_size=8192 intermediate_size_mlp=16384 "
        "num_attention_heads=40 num_experts_per_tok=1 num_hidden_layers=48 "
        "num_local_experts=16 vocab_size=202048"
    ),
    "ministral": (
        "hidden_size=4096 intermediate_size=14336 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=32000"
    ),
    "mistral": (
        "hidden_size=4096 intermediate_size=14336 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=32000"
    ),
    "mixtral": (
        "hidden_size=4096 intermediate_size=14336 num_attention_heads=32 num_experts_per_tok=2 "
        "num_hidden_layers=32 num_local_experts=8 vocab_size=32000"
    ),
    "olmo": (
        "hidden_size=4096 intermediate_size=11008 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=50304"
    ),
    "olmo2": (
        "hidden_size=4096 intermediate_size=11008 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=50304"
    ),
    "olmoe": (
        "hidden_size=2048 intermediate_size=2048 num_attention_heads=16 num_experts=64 "
        "num_experts_per_tok=8 num_hidden_layers=16 vocab_size=50304"
    ),
    "opt": (
        "ffn_dim=3072 hidden_size=768 num_attention_heads=12 num_hidden_layers=12 vocab_size=50272"
    ),
    "phi3": (
        "hidden_size=3072 intermediate_size=8192 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=32064"
    ),
    "qwen2": (
        "hidden_size=4096 intermediate_size=22016 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=151936"
    ),
    "qwen2_moe": (
        "hidden_size=2048 intermediate_size=5632 moe_intermediate_size=1408 "
        "num_attention_heads=16 num_experts=60 num_experts_per_tok=4 num_hidden_layers=24 "
        "shared_expert_intermediate_size=5632 vocab_size=151936"
    ),
    "qwen3": (
        "hidden_size=4096 intermediate_size=22016 num_attention_heads=32 num_hidden_layers=32 "
        "vocab_size=151936"
    ),
    "qwen3_moe": (
        "hidden_size=2048 intermediate_size=6144 moe_intermediate_size=768 "
        "num_attention_heads=32 num_experts=128 num_experts_per_tok=8 num_hidden_layers=24 "
        "vocab_size=151936"
    ),
    "seed_oss": (
        "hidden_size=4096 intermediate_size=27648 num_attention_heads=80 num_hidden_layers=64 "
        "vocab_size=155136"
    ),
    "smollm3": (
        "hidden_size=2048 intermediate_size=11008 num_attention_heads=16 num_hidden_layers=36 "
        "vocab_size=128256"
    ),
    "starcoder2": (
        "hidden_size=3072 intermediate_size=12288 num_attention_heads=24 num_hidden_layers=30 "
        "vocab_size=49152"
    ),
}
OF_WHOLES: dict[str, str] = {
    "glmasr": (
        "hidden_size=2048 intermediate_size=6144 max_position_embeddings=8192 "
        "num_attention_heads=16 num_hidden_layers=28 num_key_value_heads=4 vocab_size=59264"
    ),
    "voxtral": (
        "head_dim=128 hidden_size=3072 intermediate_size=8192 max_position_embeddings=131072 "
        "num_hidden_layers=30 num_key_value_heads=8 vocab_size=131072"
    ),
}
