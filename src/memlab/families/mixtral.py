"""Mixtral: a mistral whose feed-forward layers are mixtures of experts."""

from . import REQUIRED, effects, like

FAMILY = like(
    "mistral",
    shape={
        "experts": ("num_local_experts", REQUIRED),
        "experts_per_token": ("num_experts_per_tok", REQUIRED),
        "expert_ff": ("intermediate_size", REQUIRED),
    },
    # The weights of the experts always add to one: the class has no norm_topk_prob.
    effects=effects(
        step="output_router_logits",
        nothing="router_aux_loss_coef",
        only="experts_implementation _experts_implementation router_jitter_noise",
    ),
    other_names={"num_local_experts": "num_experts"},
    network=("experts", "Mixtral"),
    windows="all",
    window=None,
    proven="texts adapters expert_parallel tensor_parallel pipeline",
    tables={},
    expert_names={
        "gate": "gate.weight",
        "w1": "gate_up_proj",
        "w3": "gate_up_proj",
        "w2": "down_proj",
    },
)
