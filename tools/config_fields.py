"""Walk through every field of a config.json, family by family, against real small models.

One field at a time is given another value. Parameters, the peak of a training step, of a prompt and
of one more token are counted on the real model and asked of memlab. A field is then

    described   the bytes change, and memlab says the same ones
    no byte     nothing changes, and memlab says so too
    refused     memlab names it, and what would be right
    fails       transformers itself fails, and memlab refuses
    accepted    transformers itself fails, but memlab answers
    MISMATCH    both answer, and not the same

Long, because half of it is what to try of each key.

    python tools/config_fields.py [--families gpt2,opt] [--keys dropout,sliding_window] [--all]
"""

import argparse
import copy
import dataclasses
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "real"))

from real_inference import real_call
from real_steps import Question, hugging_face, real_step

from memlab import Model, Run
from memlab.base.table import as_text
from memlab.families import config_types, record_of
from memlab.model.fields import HARMLESS, kinds
from memlab.step import simulate
from memlab.step.calls import decode, prefill

TOKENS, BATCH = 12, 2
# Of a small model, by the field of Model; and keys of families that no field says.
SIZES: dict[str, Any] = {"d_model": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8}
SIZES |= {"vocab": 61, "positions": 32, "d_ff": 48, "experts": 4, "experts_per_token": 2}
SIZES |= {"expert_ff": 24, "shared_ff": 24}
LATENT = {"num_key_value_heads": 4, "first_k_dense_replace": 1, "n_shared_experts": 1}
LATENT |= {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8}
LATENT |= {"v_head_dim": 16, "topk_group": 1}
BESIDE: dict[str, dict[str, Any]] = {
    "mixtral": {"head_dim": None},  # as its class has it
    "glm4_moe": {"n_shared_experts": 1},
    "deepseek_v2": LATENT | {"n_group": 2},
    "deepseek_v3": LATENT | {"n_group": 1},
}


def small(family: str) -> dict[str, Any]:
    """A config of a small model, whose padding token is in its vocabulary."""
    known = record_of(family)
    made = known.config(SIZES) | BESIDE.get(family, {})
    return made | ({"pad_token_id": None} if (known.padding or 0) >= SIZES["vocab"] else {})


SMALL = {family: small(family) for family in config_types()}
ROTARY = ("linear", "dynamic", "yarn", "longrope", "llama3", "proportional", "axial")
# What to try of a key, by its name; the others are changed by the type of what they have.
TRIED: dict[str, list[Any]] = {
    "num_key_value_heads": [1, 4, 3, None],
    "head_dim": [16, 7, None],
    "hidden_size": [48, 30],
    "n_embd": [48],
    "num_attention_heads": [2, 3],
    "n_head": [2],
    "vocab_size": [200],
    "hidden_act": ["gelu", "relu", "silu", "gelu_pytorch_tanh", "tanh"],
    "activation_function": ["gelu", "relu", "silu", "gelu_pytorch_tanh", "tanh"],
    "n_inner": [80],
    "word_embed_proj_dim": [24, 40],
    "max_position_embeddings": [16, 8, 2048],
    "n_positions": [16, 8],
    "rope_parameters": [
        None,
        "linear",
        *({"rope_type": kind, "rope_theta": 1e4, "factor": 2.0} for kind in ROTARY),
        {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        {"full_attention": {"rope_type": "linear", "factor": 2.0}},
        {"full_attention": {"rope_type": "dynamic", "factor": 2.0}},
        {"other": {"rope_type": "default"}},
    ],
    "rope_scaling": [None, 2, {"type": "linear", "factor": 2.0}],
    "rope_theta": [500000.0],
    "rotary_pct": [0.5, 1.0, -1, 5, float("inf")],
    "rotary_emb_base": [500],
    "partial_rotary_factor": [0.5, 1.0, -1, "half"],
    "sliding_window": [8, 64, None, -4, 1.5, True],
    "use_sliding_window": [True, "yes"],
    "max_window_layers": [0, 1],
    "layer_types": [None, ["full_attention"] * 2, ["sliding_attention"] * 2, ["full_attention"]]
    + [["chunked_attention", "full_attention"]],
    "pad_token_id": [0, 3, 61, 1000, None],
    "bos_token_id": [3, 1000, None],
    "eos_token_id": [3, 1000, [1, 2], None],
    "dtype": ["bfloat16", "float16", "float32"],
    "torch_dtype": ["bfloat16"],
    "attn_implementation": ["eager", "sdpa"],
    "_attn_implementation": ["eager"],
    "gradient_checkpointing": [True, False],
    "quantization_config": [{"quant_method": "gptq", "bits": 4}, None],
    "architectures": [["Other"]],
    "id2label": [{"0": "a", "1": "b", "2": "c"}],
    "label2id": [{"a": 0, "b": 1}],
    "problem_type": ["regression"],
    "transformers_version": ["4.0.0"],
    "summary_type": ["last"],
    "summary_activation": ["tanh"],
    "num_labels": [5],
    "is_decoder": [True],
    "pretraining_tp": [2],
    "n_ctx": [16],
    "hidden_activation": ["gelu"],
    "use_bidirectional_attention": [True, False],
    "per_layer_config": [None],
    "sliding_window_pattern": [1, 2, 0, 1.5],
    "attn_logit_softcapping": [None, 10.0, "x"],
    "final_logit_softcapping": [None, 10.0, "x"],
    "no_rope_layers": [None, [0, 0], [1, 0], [1, 0, 1], [2, 1], 1],
    "no_rope_layer_interval": [1, 2, 0, 1.5],
    "num_experts": [6, 2, 1, 0],
    "num_local_experts": [6, 2, 1, 0],
    "num_experts_per_tok": [1, 3, 0],
    "moe_intermediate_size": [32, 8],
    "shared_expert_intermediate_size": [32],
    "mlp_only_layers": [[0], [0, 1], [7], None, 1, ["0"]],
    "decoder_sparse_step": [2, 3, 0, None],
    "norm_topk_prob": [True, None],
    "n_routed_experts": [6, 2, 1, 0],
    "n_shared_experts": [2, 0, None],
    "n_group": [2, 4, 3, 0, None],
    "q_lora_rank": [8, None, 0, "8"],
    "kv_lora_rank": [24, None, 0],
    "qk_nope_head_dim": [12, None],
    "qk_rope_head_dim": [4, 7, None],
    "v_head_dim": [8, None, 0],
    "qk_head_dim": [16, 24],
    "intermediate_size_mlp": [56, None],
    "interleave_moe_layer_step": [2, 3, 0, None, 1.5],
    "moe_layers": [None, [0], [1, 7], [], 1, ["0"]],
    "attention_chunk_size": [8, 64, None, 0, 1.5],
    "attn_temperature_tuning": [False, None, 4],
    "floor_scale": [16],
    "attn_scale": [0.5],
    "topk_method": ["greedy", "group_limited_greedy", "noaux_tc", None],
    "mlp_bias": [True, False, None],
    "rope_interleave": [True, False, None, "yes"],
    "topk_group": [2, 0, None],
    "first_k_dense_replace": [0, 2, 9, -1, None],
    "use_qk_norm": [True, False, None],
    "num_mtp_layers": [3],
    "num_nextn_predict_layers": [3],
    "output_router_logits": [True, False],
    "router_aux_loss_coef": [0.5],
    "router_jitter_noise": [0.1],
    "clip_qkv": [1.0],
    "experts_implementation": ["eager", "batched_mm", "grouped_mm"],
    "_experts_implementation": ["eager"],
}


def tried(family: str) -> Iterator[tuple[str, Any]]:
    """(key, value): every field of the class, and every key that memlab's table has."""
    usual = {f.name: f.default for f in dataclasses.fields(config_class(family))}
    for key in sorted({*usual, *kinds(family)} - {"model_type"}):
        had = SMALL[family].get(key, usual.get(key))
        for value in TRIED.get(key, others(family, key, had)):
            if value != had or value is None or type(value) is not type(had):
                yield key, value


def config_class(family: str) -> Any:
    return type(hugging_face().AutoConfig.for_model(family))


def others(family: str, key: str, had: Any) -> list[Any]:
    """Other values of the same type, and one of another type where that is what people write."""
    if key in record_of(family).dropouts:
        return [0.0, 0.2, "x", None]
    if isinstance(had, bool):
        return [not had, None]
    if isinstance(had, int):
        return [2 * had, had + 1] if had else [1]
    if isinstance(had, float):
        return [had / 2 if had else 0.1]
    if key in HARMLESS:
        return [True]
    return [] if had is None else [f"{had}x"]


def real(config: dict[str, Any]) -> dict[str, int]:
    """Parameters and peaks of the real model."""
    # transformers adds to the objects that it is given.
    step = Question(copy.deepcopy(config), "fp32", Run.cpu(batch=BATCH, tokens=TOKENS), bare=True)
    run = real_step(step, in_place=False)
    found = {"parameters": run.parameters, "step": run.peak.bytes}
    for phase in ("prefill", "decode"):
        call = real_call(step.replace(phase=phase))
        found[phase] = call.peak
    return found


def told(config: dict[str, Any]) -> dict[str, int]:
    """The same as memlab says it, from the config alone."""
    model, run = Model.from_config(config), Run.cpu(batch=BATCH, tokens=TOKENS)
    return {
        "parameters": model.parameter_count,
        "step": simulate(model, None, run, in_place=False).peak.bytes,
        "prefill": prefill(model, None, run.replace(phase="prefill")).peak.bytes,
        "decode": decode(model, None, run.replace(phase="decode")).peak.bytes,
    }


def verdict(family: str, key: str, value: Any, usual: dict[str, int]) -> tuple[str, str]:
    """What becomes of one value, and the figures or the words behind it."""
    config = {"model_type": family, **SMALL[family], key: value}
    try:
        ours, refusal = told(config), ""
    except (ValueError, TypeError) as error:
        ours, refusal = {}, str(error)
    try:
        theirs, failure = real(config), ""
    except Exception as error:  # a model may fail in any way
        theirs, failure = {}, f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
    if not theirs:
        return ("fails", refusal) if refusal else ("accepted", failure)
    if refusal:
        return "refused", refusal
    apart = [f"{name} {size:,} -> {ours[name]:,}" for name, size in theirs.items()]
    apart = [line for line, name in zip(apart, theirs, strict=True) if theirs[name] != ours[name]]
    if apart:
        return "MISMATCH", "; ".join(apart)
    return ("no byte" if theirs == usual else "described"), ""


def walk(families: tuple[str, ...], keys: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """A row for each value: family, key, value, verdict, why."""
    for family in families:
        usual = real({"model_type": family, **SMALL[family]})
        gc.collect()
        gc.freeze()  # what imports made: each count of bytes collects, a whole torch otherwise
        for key, value in tried(family):
            if not keys or key in keys:
                shown = str(value) if isinstance(value, dict) else repr(value)
                yield [family, key, shown[:60], *verdict(family, key, value, usual)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", default=",".join(config_types()))
    parser.add_argument("--keys", default="")
    parser.add_argument("--all", action="store_true", help="every row, not only those to look at")
    chosen = parser.parse_args(arguments)
    keys = tuple(filter(None, chosen.keys.split(",")))
    rows = []
    for row in walk(tuple(chosen.families.split(",")), keys):
        rows.append(row)
        print(*row, sep="  ", file=sys.stderr, flush=True)
    wrong = [row for row in rows if row[3] in ("MISMATCH", "accepted")]
    print(as_text([["family", "key", "value", "verdict", "why"], *(rows if chosen.all else wrong)]))
    counts = {name: sum(row[3] == name for row in rows) for name in sorted({r[3] for r in rows})}
    print(f"{len(rows)} values: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
