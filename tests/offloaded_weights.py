"""DeepSpeed's offload_param: peaks on the card that rehearsals of its own code found.

test_deepspeed_rehearsed makes them again where DeepSpeed 0.19.8 is installed; test_zero3 holds the
description against them.
"""

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "vocab_size": 300,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "dtype": "bfloat16",
}
STATES = {"offload_optimizer": "cpu"}
# Ranks, keys, the peak in bytes, and the sub-groups, each of which has a step counter of 4 bytes
# that a description counts on the card and AdamW makes on the host.
FOUND = [
    (8, {"reduce_bucket_size": 4000}, 1_590_489, 1),
    (1, {"reduce_bucket_size": 4000, **STATES}, 1_393_696, 0),
    (
        2,
        {
            "reduce_bucket_size": 100,
            "prefetch_bucket_size": 3000,
            "param_persistence_threshold": 0,
            "max_live_parameters": 20_000,
        },
        2_173_041,
        1,
    ),
    (
        3,
        {
            "reduce_bucket_size": 4000,
            "sub_group_size": 3000,
            "param_persistence_threshold": 5000,
            "max_reuse_distance": 0,
        },
        1_918_637,
        7,
    ),
    (
        8,
        {
            "reduce_bucket_size": 100,
            "sub_group_size": 3000,
            "prefetch_bucket_size": 0,
            "param_persistence_threshold": 5000,
            **STATES,
        },
        1_385_896,
        0,
    ),
]
