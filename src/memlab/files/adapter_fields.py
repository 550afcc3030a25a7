"""The fields of peft's LoraConfig: which are read, which change no byte, which are not described.

Apart from what reads them, because the page's engine needs them too: MicroPython's Python.

Source      peft, tuners/lora/config.py
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

READ = tuple(
    (
        "r target_modules exclude_modules lora_dropout rank_pattern peft_type layers_to_transform "
        "layers_pattern modules_to_save task_type use_dora target_parameters"
    ).split()
)
# Where values come from, how they begin, how they are scaled: no byte of a step is another one.
NO_BYTE = tuple(
    (
        "auto_mapping peft_version base_model_name_or_path revision inference_mode lora_alpha "
        "alpha_pattern use_rslora fan_in_fan_out megatron_core loftq_config eva_config "
        "corda_config lora_ga_config qalora_group_size runtime_config init_lora_weights"
    ).split()
)
# What is described of each is its default alone; nothing at all says the same.
REFUSED: dict[str, Any] = {
    "bias": "none",
    "ensure_weight_tying": False,
    "lora_bias": False,
    "use_qalora": False,
    "trainable_token_indices": None,
    "megatron_config": None,
    "velora_config": None,
    "alora_invocation_tokens": None,
    "monteclora_config": None,
    "layer_replication": None,
    "use_bdlora": None,
    "arrow_config": None,
    "kasa_config": None,
}
