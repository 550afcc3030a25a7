"""What PEFT's comparison says of each method that memlab traces, beside that method's defaults.

The name as the readings have it, the kind, and the fields of its adapter_config.json that change
what the configuration class does by itself.
"""

from typing import Any

LAYERS = "layers"  # in the place of a number: that of the traced model
QV = ["q_proj", "v_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]
TOKEN: dict[str, Any] = {
    "token_dim": 3072,
    "num_attention_heads": 24,
    "num_transformer_submodules": 1,
}
TOKEN |= {"num_layers": LAYERS, "encoder_hidden_size": 3072}
BLOCKS: dict[str, Any] = {"target_modules_bd_a": ["o_proj", "down_proj"], "nblocks": 2}
BLOCKS |= {"target_modules_bd_b": ["q_proj", "v_proj", "k_proj", "up_proj", "gate_proj"]}
ADALORA = {"init_r": 64, "target_r": 32, "tinit": 200, "tfinal": 500, "total_step": 5000}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "adalora--llama-3.2-3B-rank32": ("ADALORA", ADALORA),
    "adaptionprompt--llama-3.2-3B-lr_0.0005": (
        "ADAPTION_PROMPT",
        {"adapter_layers": LAYERS, "adapter_len": 100},
    ),
    "beft--llama-3.2-3B-target-v_proj": ("BEFT", {"target_modules": ["v_proj"]}),
    "boft--llama-3.2-3B-default": ("BOFT", {}),
    "c3a--llama-3.2-3B-default": (
        "C3A",
        {"block_size": 64, "init_weights": False, "target_modules": QV},
    ),
    "deft--llama-3.2-3B-rank32-para": (
        "DEFT",
        {"r": 32, "decomposition_method": "qr", "para": True},
    ),
    "deft--llama-3.2-3B-rank32": ("DEFT", {"r": 32, "alpha": 128}),
    "delora--llama-3.2-3B-rank32": ("DELORA", {"r": 32}),
    "fourierft--llama-3.2-3B-default": ("FOURIERFT", {"scaling": 300, "target_modules": QV}),
    "fourierft--llama-3.2-3B-n_frequency-5000": (
        "FOURIERFT",
        {"scaling": 300, "n_frequency": 5000, "target_modules": QV},
    ),
    "glora--llama-3.2-3B-default": ("GLORA", {"target_modules": QV}),
    "glora--llama-3.2-3B-vector-paths": (
        "GLORA",
        {"config_A_B": "vector", "config_C": "vector", "target_modules": QV},
    ),
    "gralora--llama-3.2-3B-rank32": ("GRALORA", {}),
    "hira--llama-3.2-3B-rank32-lr4.5e-3": ("HIRA", {"target_modules": QV}),
    "lily--llama-3.2-3B-rank140-mlp-a2-b2-s8.0": (
        "LILY",
        {"r": 140, "scaling": 8.0, "stride_A": 14, "target_modules": MLP},
    ),
    "lily--llama-3.2-3B-rank896-a2-b2-s2.0": (
        "LILY",
        {"r": 896, "scaling": 2.0, "stride_A": 14, "target_modules": QV},
    ),
    "loha--llama-3.2-3B-rank32": ("LOHA", {"r": 32, "alpha": 64, "target_modules": QV}),
    "lokr--llama-3.2-3B-rank32-factor4-lr0.003": (
        "LOKR",
        {"r": 32, "alpha": 64, "decompose_factor": 4, "target_modules": QV},
    ),
    "lora--llama-3.2-3B-rank14-target-mlp-bdlora": (
        "LORA",
        {"r": 14, "lora_alpha": 28, "target_modules": MLP, "use_bdlora": BLOCKS},
    ),
    "miss--llama-3.2-3B-bat": ("MISS", {"init_weights": "bat"}),
    "miss--llama-3.2-3B-default": ("MISS", {}),
    "miss--llama-3.2-3B-mini": ("MISS", {"init_weights": "mini", "mini_r": 64}),
    "oft--llama-3.2-3B-rank32": ("OFT", {"r": 32, "oft_block_size": 0, "target_modules": QV}),
    "peanut--llama-3.2-3B-rank1-relu-depth0-s32.0": (
        "PEANUT",
        {"r": 1, "scaling": 32.0, "target_modules": QV},
    ),
    "peanut--llama-3.2-3B-rank32-relu-depth0-s2.0": (
        "PEANUT",
        {"r": 32, "scaling": 2.0, "target_modules": QV},
    ),
    "prefixtuning--llama-3.2-3B-lr_0.001": ("PREFIX_TUNING", TOKEN | {"num_virtual_tokens": 200}),
    "prefixtuning--llama-3.2-3B-tokens50-init_prefix-lr_0.005": (
        "PREFIX_TUNING",
        TOKEN | {"num_virtual_tokens": 50},
    ),
    "ptuning--llama-3.2-3B-default": ("P_TUNING", TOKEN | {"num_virtual_tokens": 20}),
    "pvera--llama-3.2-3B-default": ("PVERA", {"r": 256}),
    "pvera--llama-3.2-3B-rank64": ("PVERA", {"r": 64}),
    "randlora--llama-3.2-3B-default": ("RANDLORA", {"r": 32}),
    "road--llama-3.2-3B-lr_0.001": ("ROAD", {"variant": "road_2"}),
    "shira--llama-3.2-3B-lr_0.0003-random_seed_42": ("SHIRA", {"r": 32, "random_seed": 42}),
    "tinylora--llama-3.2-3B-default": ("TINYLORA", {"r": 2, "u": 64}),
    "tinylora--llama-3.2-3B-weight-tying": ("TINYLORA", {"r": 2, "u": 64, "weight_tying": 1.0}),
    "trainable_tokens--llama-3.2-3B-sos+eos": (
        "TRAINABLE_TOKENS",
        {"token_indices": [128000, 128001]},
    ),
    "unilora--llama-3.2-3B-default": ("UNILORA", {"r": 32, "target_modules": QV}),
    "vblora--llama-3.2-3B-default": ("VBLORA", {"target_modules": QV}),
    "waveft--llama-3.2-3B-n_frequency-5000": (
        "WAVEFT",
        {"n_frequency": 5000, "target_modules": QV},
    ),
}
# The same configuration once more: other learning rates, other values to begin with.
SAME = {
    "adaptionprompt--llama-3.2-3B-lr_5e-3": "adaptionprompt--llama-3.2-3B-lr_0.0005",
    "prefixtuning--llama-3.2-3B-lr_0.005_zero_init": "prefixtuning--llama-3.2-3B-lr_0.001",
}
