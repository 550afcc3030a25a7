"""What formats, adapters and devices come to when every file of a run has been read.

transformers' Trainer, and what is made from it, leaves devices to accelerate: one file may say
bf16, another one FSDP. So both wait here until all are read.

Source      accelerate, utils/fsdp_utils.py: fsdp2_prepare_model (bf16 is a policy, and what is
            trained is upcast); transformers, integrations/deepspeed.py: trainer_config_process
"""

from __future__ import annotations

from ..documents import shown
from .rules import one_of, truth, whole
from .said import Said

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

AUTOCAST = (
    "bf16 weights are counted without the autocast that the trainer has around them: it leaves "
    "their matrix products as they are"
)
DOUBLE = (
    "double quantization is counted as plain nf4: at most 0.373 bits too many for each value of "
    "the base; --lora-base nf4-dq is rehearsed and exact"
)
EVALUATION = "an evaluation between steps is not counted; --eval-batch N does"
# Options that say the same in other words: one that is typed ends those of a file.
DEVICES = (
    *("fsdp", "zero", "deepspeed", "deepspeed_config", "tensor_parallel", "pipeline_parallel"),
    "context_parallel",
)
FORMATS = ("precision", "recipe")
ADAPTERS = ("adapter", "ia3", "vera_rank", "prompt_tokens")


def settle(said: Said) -> None:
    """Make options of the facts that are left."""
    if not any(option in said.given for option in DEVICES):
        _devices(said)
    if not any(option in said.given for option in FORMATS):
        _formats(said)
    if any(option in said.given for option in ADAPTERS):
        for option in [name for name in said.options if name.startswith("lora_")]:
            del said.options[option]


def _devices(said: Said) -> None:
    sharded, ranks = said.facts.get("fsdp"), said.ranks
    config = said.facts.get("deepspeed")
    if sharded is None and config is None:
        if ranks is not None and ranks > 1:
            said.put("ranks", ranks)
        return
    if sharded is not None and config is not None:
        said.problem("FSDP and DeepSpeed are both said; give one of them")
        return
    if ranks is None:
        said.problem("the file does not say on how many devices it is launched; give --ranks N")
        return
    if config is not None:
        said.put("deepspeed_config" if isinstance(config, str) else "_deepspeed", config)
        said.put("ranks", ranks)
        return
    assert sharded is not None
    said.options.pop("ranks", None)
    said.put("fsdp", ranks, *sharded["keys"])
    if sharded["offload"]:
        said.put("cpu_offload", sharded["offload"], *sharded["keys"])
    if not sharded["reshard"]:
        said.put("no_reshard", True, *sharded["keys"])
    if sharded["checkpoint"]:
        said.put("checkpoint", "block", *sharded["keys"])
    if said.options.get("loop") == "trainer" and said.options.get("micro_batches", 1) > 1:
        said.put("gradient_sync", "last")


def _formats(said: Said) -> None:
    """The weights that are loaded, and the format in which the trainer computes."""
    weights, mixed = said.facts.get("weights"), said.facts.get("mixed")
    if weights is None and mixed is None and "deepspeed" not in said.facts:
        return
    keys = said.facts.get("format_keys", ())
    if "deepspeed" in said.facts and not any(option in said.given for option in DEVICES):
        narrow = mixed or (weights if weights != "fp32" else None)
        said.put("recipe", "zero" if narrow else "fp32", *keys)
        if narrow == "fp16":
            said.note("fp16 under DeepSpeed is counted as bf16, without its check for overflow")
        return
    if weights is None:
        weights = _published(said) if mixed else None
    if "fsdp" in said.facts and "fsdp" in said.options:
        adapted = "lora_rank" in said.options
        said.put("precision", (weights or "fp32") if adapted or not mixed else "fp32", *keys)
        if mixed:
            said.put("param_dtype", mixed, *keys)
        return
    if weights == "fp32" and mixed:
        said.put("precision", f"autocast-{mixed}", *keys)
    elif weights:
        said.put("precision", weights, *keys)
        if mixed:
            said.note(AUTOCAST)


def _published(said: Said) -> str:
    """The format in which the trainer loads the model, dtype="auto"."""
    try:
        model = said.shape()
    except ValueError:
        return "fp32"
    dtype = str(model.config.get("dtype") or model.config.get("torch_dtype") or "")
    words = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    return words.get(dtype.rpartition(".")[2]) or getattr(model, "published", None) or "fp32"


def fsdp(said: Said, section: dict[str, Any], *keys: str, version: Any = None) -> None:
    """The section of accelerate, Trainer or axolotl that says how FSDP divides.

    Raises      ValueError for version 1, whose flat parameters are not described, and for a value
                that is none
    """
    plain = {key.removeprefix("fsdp_"): value for key, value in section.items()}
    number = plain.get("version", version)
    if whole(1 if number is None else number) != 2:
        raise ValueError("FSDP 1 is not described: fsdp_version: 2 is, which accelerate converts")
    known = {"version", "offload_params", "reshard_after_forward", "activation_checkpointing"}
    aside = """
        cpu_ram_efficient_loading sync_module_states state_dict_type use_orig_params
        final_state_dict_type auto_wrap_policy transformer_layer_cls_to_wrap backward_prefetch
        backward_prefetch_policy forward_prefetch limit_all_gathers
        cpu_offload_pin_memory""".split()
    for key, value in plain.items():
        if key == "sharding_strategy" and str(value).upper() in ("FULL_SHARD", "1"):
            continue  # which fully_shard does
        if key == "auto_wrap_policy" and str(value).upper() in ("SIZE_BASED_WRAP", "NO_WRAP"):
            raise ValueError(f"{key}: {shown(value)}; TRANSFORMER_BASED_WRAP is described")
        if key not in known and key not in aside and value not in (None, False, "", "None"):
            raise ValueError(f"{key}: {shown(value)} of FSDP is not described")
    resharded = plain.get("reshard_after_forward")
    if isinstance(resharded, str) and resharded.upper() in ("FULL_SHARD", "SHARD_GRAD_OP"):
        resharded = resharded.upper() == "FULL_SHARD"
    pins = plain.get("cpu_offload_pin_memory")
    where = "pinned" if pins is None or truth(pins) else "pageable"
    said.facts.setdefault(
        "fsdp",
        {
            "keys": [said.told(key) for key in keys],
            "offload": where if truth(plain.get("offload_params") or False) else None,
            "reshard": True if resharded is None else truth(resharded),
            "checkpoint": truth(plain.get("activation_checkpointing") or False),
        },
    )


def mixed(said: Said, bf16: Any, fp16: Any, *keys: str) -> None:
    """What autocast casts to: bf16, fp16 or nothing."""
    words = {True: True, False: False, "auto": True, "full": True}
    narrow = None
    if fp16 not in (None, False) and one_of(words, fp16):
        narrow = "fp16"
    if bf16 not in (None, False) and one_of(words, bf16):
        narrow = "bf16"
    if narrow:
        said.facts.setdefault("mixed", narrow)
    said.facts.setdefault("format_keys", [said.told(key) for key in keys])
