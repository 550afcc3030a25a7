"""Words that people bring from other programs, and what they are here: tables, and one look-up.

One rule: a word that is another spelling of one that is known, and means nothing else, is taken
(SAME, `taken`); of a word that means something else, or several things, it is said what is meant,
and whoever asked types it (FLAGS, VALUES, NEAREST).
"""

from __future__ import annotations

import argparse
import re

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable

# Options: what is typed here, first what most commands have; and what transformers, TRL, vLLM,
# llama.cpp, torchrun and papers call it.
FLAGS = {
    ("--tokens", "--max-model-len"): """seq-len seqlen seq-length sequence-length max-length
        max-seq-len max-seq-length max-len context context-length context-len ctx ctx-size n-ctx
        cutoff-len block-len""",
    ("--batch",): """batch-size batchsize bs bsz b per-device-train-batch-size
        per-device-batch-size micro-batch-size mbs""",
    ("--micro-batches",): "gradient-accumulation-steps grad-accum grad-acc accumulation accumulate",
    ("--precision",): "dtype torch-dtype bf16 fp16 fp32 half mixed-precision amp autocast",
    ("--lora-rank R --lora-base nf4", "--quantization"): """load-in-4bit qlora nf4 4bit bits
        quantize quant""",
    ("--quantization",): "load-in-8bit int8 8bit load-format",
    ("--lora-rank",): "lora lora-r lora-alpha rank",
    ("--lora-targets",): "target-modules lora-target-modules lora-target",
    ("--lora-dtype",): "autocast-adapter-dtype",
    ("--optimizer",): "optim opt",
    ("--checkpoint",): """gradient-checkpointing activation-checkpointing grad-checkpoint
        recompute activation-checkpoint ac""",
    (
        "--attention",
    ): "attn attn-implementation attention-implementation flash-attn flash-attention",
    ("--loop",): "trainer",
    ("--tensor-parallel", "--fsdp"): "tp tensor-parallel-size tp-size tensor-model-parallel-size",
    ("--pipeline",): "pp pipeline-parallel-size pp-size pipeline-model-parallel-size",
    ("--context-parallel",): "cp context-parallel-size cp-size",
    ("--expert",): "ep expert-parallel expert-parallel-size ep-size",
    ("--cards", "--ranks", "--gpus"): """num-gpus n-gpus gpus nproc-per-node nproc world-size
        num-processes devices data-parallel dp""",
    ("--zero",): "zero-stage stage",
    ("--fsdp",): "fsdp2 full-shard",
    ("--cpu-offload",): "offload-params",
    ("--on", "--fits"): "card device gpu vram gpu-memory memory",
    ("--kv-dtype",): "kv-cache-dtype cache-type-k cache-type-v",
    ("--max-num-seqs", "--batch"): "concurrency users max-batch-size",
    ("--compile",): "torch-compile",
    ("--phase",): "inference generate task mode",
    ("--seen",): "actual observed measured",
}
# Values, by the option's name: what is typed here in the place of what is brought.
QLORA = "--lora-rank R --lora-base nf4"
SERVED = "`memlab serve CONFIG --on CARD --quantization"
_NAMES = {"mixed": "autocast-bf16", "amp": "autocast-bf16"}
_NAMES |= {"mixed_precision": "autocast-bf16", "bf16_mixed": "autocast-bf16"}
_PACKED = {"nf4": QLORA, "4bit": QLORA, "int4": QLORA, "qlora": QLORA, "lora": "--lora-rank R"}
_PACKED |= {"int8": f"{SERVED} gptq-int8`", "8bit": f"{SERVED} gptq-int8`"}
_PACKED |= {"awq": f"{SERVED} awq`", "gptq": f"{SERVED} gptq`", "fp8": f"{SERVED} fp8`"}
# Trainers of other versions of TRL, of its experiments and of other libraries.
_OTHERS = "ppo cpo simpo ipo online_dpo nash_md xpo prm bco".split()
_OWN = "`memlab rehearse -- python train.py`, which runs your own script"
_LAYERS = {"qkv_proj": "q,k,v", "query_key_value": "q,k,v", "c_proj": "out,down"}
_LAYERS |= {"all_linear": "q,k,v,out,gate,up,down", "all": "q,k,v,out,gate,up,down"}
VALUES = {
    "precision": _NAMES | _PACKED,
    "recipe": _PACKED
    | {"mixed": "autocast", "amp": "autocast", "adamw": "fp32"}
    | {"fp16": "--precision fp16", "fsdp": "--fsdp N", "deepspeed": "zero", "adam": "fp32"},
    "optimizer": {"adam": "adamw", "adamw_hf": "adamw", "paged_adamw": "bnb_paged_adamw"}
    | {"galore_adamw": "galore/128", "adamw_torch_xla": "adamw", "sgd_momentum": "momentum"}
    | {"adamw_torch_npu_fused": "adamw --optimizer-impl fused", "lion_32bit": "lion"},
    "attention": {"flash_attn": "flash", "flashattention": "flash", "fa2": "flash_attention_2"}
    | {"flash2": "flash_attention_2", "xformers": "sdpa", "vanilla": "eager"},
    "checkpoint": {"full": "block", "true": "block", "yes": "block", "layer": "block"}
    | {"all": "block", "false": "none", "no": "none", "unsloth": "block"},
    "phase": {"inference": "decode", "generate": "decode"}
    | {"generation": "decode", "infer": "decode", "forward": "prefill"},
    "lora_targets": _LAYERS,
    "loop": dict.fromkeys(_OTHERS, _OWN),
    "kv_dtype": {"int8": "int8_per_token_head"},
    "quantization": {"gptq_marlin": "gptq", "awq_marlin": "awq", "gptq_int4": "gptq"}
    | {"4bit": "nf4", "bitsandbytes": "nf4", "bnb": "nf4", "int8": "gptq-int8", "int4": "awq"},
}
# What is written otherwise and is the same, by the option's name: taken as it is meant.
_DTYPES = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32"}
_DTYPES |= {"float": "fp32"}
SAME = {
    "precision": _DTYPES,
    "recipe": {"bfloat16": "bf16", "float32": "fp32"},
    # transformers.training_args.OptimizerNames
    "optimizer": {"adamw_torch_fused": "adamw --optimizer-impl fused", "adamw_torch": "adamw"}
    | {"adam8bit": "bnb_adamw8bit", "adamw_8bit": "bnb_adamw8bit"}
    | {"adamw_bnb_8bit": "bnb_adamw8bit", "paged_adamw_8bit": "bnb_paged_adamw8bit"}
    | {"paged_adamw_32bit": "bnb_paged_adamw", "adamw_torch_8bit": "adamw8bit"}
    | {"adamw_torch_4bit": "adamw4bit"},
    "phase": {"training": "train"},
    "optimizer_impl": {"single_tensor": "forloop"},
    "lora_targets": {"q_proj": "q", "k_proj": "k", "v_proj": "v", "o_proj": "out"}
    | {"gate_proj": "gate", "up_proj": "up", "down_proj": "down", "c_attn": "qkv", "c_fc": "up"},
    "lora_dtype": _DTYPES,
    "teacher_weights": _DTYPES,
    "kv_dtype": _DTYPES | {"fp8_e4m3": "fp8"},
}
# Optimizers of transformers that are not described, less their bits and pages, and the one that is
# which keeps as many values for each parameter (grokadamw and ademamix keep three of its shape).
NEAREST = {"adagrad": "momentum", "rmsprop": "momentum", "schedule_free_sgd": "momentum"}
NEAREST |= {"lion": "lion", "adamw_anyprecision": "adamw", "stable_adamw": "adamw"}
NEAREST |= {"schedule_free_adamw": "adamw", "schedule_free_radam": "adamw", "lomo": "sgd"}
NEAREST |= {"ademamix": "amsgrad", "grokadamw": "amsgrad", "adalomo": "adafactor"}
NEAREST |= {"galore_adamw": "galore/128", "galore_adafactor": "galore/128"}
NEAREST |= {"apollo_adamw": "galore/128"}
AROUND = re.compile(r"^paged_|_bnb(?=_|$)|_(8|32)bit|_layerwise$")
# Cards without a reading of their own: another one with as much memory, or the size on the box.
CARDS = {"h800": "'H100 80GB'", "h203e": "H200", "mi350x": "'288 GB'", "mi355x": "'288 GB'"}
CARDS |= {"rtx4090laptop": "'16 GB'", "rtx5090laptop": "'24 GB'", "rtx5080laptop": "'16 GB'"}
CARDS |= {"rtx5050": "'8 GB'", "rtx5060": "'8 GB'"}
VALUES["on"] = VALUES["fits"] = CARDS


def flag_meant(flag: str) -> tuple[str, ...]:
    """What an option of another program may be here, first what most commands have."""
    word = _folded(flag)
    for here, theirs in FLAGS.items():
        if word in map(_folded, theirs.split()):
            return here
    return ()


def taken(dest: str, value: str) -> str:
    """A value in the words that are known here; as it was given where no other spelling of it is.

    dest        its name among the options
    Shapes      "adamw_torch_fused" -> "adamw --optimizer-impl fused", another option beside it
    """
    if dest in VALUES and VALUES[dest] is CARDS or dest in ("seen", "posted"):
        return _size(dest, value)
    known = SAME.get(dest, {})  # adamw8bit is torchao's, adamw_8bit transformers' word for another
    parts = value.split(",") if dest == "lora_targets" else [value]
    return ",".join(known.get(part.lower().replace("-", "_"), part) for part in parts)


def _size(dest: str, value: str) -> str:
    """24 gb, 24gib and, of a card, 24G: its unit as it is written here."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([mgt])(i?)(b?)\s*", value.lower())
    if found is None or not (found[3] or found[4] or VALUES.get(dest) is CARDS):
        return value
    return f"{found[1]} {found[2].upper()}{found[3]}B"


def value_meant(option: str, dest: str, value: str) -> str:
    """What to type in the place of a value, or "" where nothing is known.

    option      as it was typed: --precision
    dest        its name among the options
    """
    known = {_folded(word): meant for word, meant in VALUES.get(dest, {}).items()}
    parts = [_folded(part) for part in value.split(",")]
    if not any(part in known for part in parts):
        return _several(option, dest, value)
    said = dict.fromkeys(known.get(_folded(part), part) for part in value.split(","))
    meant = ",".join(said)
    return meant if meant[0] in "-`" else f"{option} {meant}"


def nearest(dest: str, value: str) -> str:
    """The optimizer that is described and keeps as much as one that is not, or ""."""
    name = re.sub(r"[\s-]", "_", value.lower())
    near = NEAREST.get(AROUND.sub("", name), "") if dest == "optimizer" else ""
    return "" if near == name else near


def _several(option: str, dest: str, value: str) -> str:
    """Two cards in the place of one, 2x4090; a card of a size that it is not read with, 12GB."""
    if VALUES.get(dest) is not CARDS:
        return ""
    found = re.fullmatch(r"(\d+)\s*[x×*]\s*(.*\D.*|\d{4})", value)
    if found is not None:
        return f"{option} '{found[2]}' --cards {found[1]}, or --fsdp {found[1]}"
    found = re.fullmatch(r"\D.*\D(\d+) ?GB", value, re.IGNORECASE)
    if found is None or _read(value):
        return ""
    return f"{option} '{found[1]} GB'"


def _read(card: str) -> bool:
    """Whether there is a reading of this card's bytes."""
    from ..devices import device  # who names no card needs none
    from ..engines.apple import mac

    try:
        return bool(mac(card) or device(card))
    except ValueError:
        return False


def count(words: str) -> int:
    """A whole number, with or without commas between thousands.

    Raises      ArgumentTypeError for anything else, with what it may have meant
    """
    if re.fullmatch(r"[+-]?(\d+|\d{1,3}([,_]\d{3})+)", words):
        return int(words.replace(",", "").replace("_", ""))
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(k|m|e(\d))", words.lower())
    meant = ""
    if found:
        number = float(found[1])
        sizes = {"k": (10**3, 2**10), "m": (10**6, 2**20)}
        scales: Iterable[int] = sizes.get(found[2]) or (10 ** int(found[3]),)
        meant = "; say " + " or ".join(str(int(number * scale)) for scale in scales)
    raise argparse.ArgumentTypeError(f"{words!r} is not a whole number{meant}")


def _folded(word: str) -> str:
    return re.sub(r"[\s_-]", "", word.lower())
