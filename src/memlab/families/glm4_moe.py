"""GLM 4.5: experts in groups, and shared ones."""

from . import EXPERTS_OF_LAYERS, REQUIRED, effects, like

FAMILY = like(
    "qwen3_moe",
    shape={
        "experts": ("n_routed_experts", REQUIRED),
        "shared_ff": ("n_shared_experts", 1),  # of them; each is as wide as any other expert
        "qk_norm": ("use_qk_norm", False),
        "out_bias": None,
    },
    defaults={"kv_heads": 8, "positions": 131072},
    # Of num_mtp_layers the class builds none.
    effects=effects(
        shape="first_k_dense_replace",
        step="partial_rotary_factor n_group topk_group",
        nothing="routed_scaling_factor num_mtp_layers num_nextn_predict_layers",
        only="sliding_window output_router_logits",
        gone="mlp_only_layers decoder_sparse_step use_sliding_window",
    ),
    other_names={"n_routed_experts": "num_local_experts"},
    groups=(1, 1),
    first_dense=1,
    flags={"qk_norm": False},
    network=("glm4_moe", "Glm4Moe"),
    turned=0.5,
    windows="",
    proven="texts adapters expert_parallel tensor_parallel pipeline",
    tables={"layers": ("1-0",)},
    expert_names=EXPERTS_OF_LAYERS,
)
