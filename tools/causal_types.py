"""Ask memlab about every type of causal language model that the installed transformers has.

Each type is made small (a few layers, 64 wide), traced on tensors without values, and run for real
on this CPU: two steps of AdamW. A type is then

    closed form    memlab.step describes it
    traced         its own code ran on tensors without values; the difference to the real step
    refused        for the reason that a person gets

    python tools/causal_types.py [TYPE ...]          print a line each
    python tools/causal_types.py --write [TYPE ...]  all of them, or these anew, into
                                                     book/causal_types.json

The small sizes are said here: a config class's own defaults are those of some published model.
"""

import argparse
import json
import logging
import re
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from routed import Routed, is_assumed

from memlab import Run
from memlab.base.gc_paused import no_garbage
from memlab.families import has_config
from memlab.lab.causal import Causal
from memlab.lab.quiet import quiet
from memlab.lab.subject import DTYPES
from memlab.lab.trace_run import trace_run
from memlab.lab.tracked_steps import watch
from memlab.measure import CannotTrace
from memlab.measure.traced import Trace

OUT = Path(__file__).resolve().parent.parent / "book" / "causal_types.json"
BATCH, TOKENS = 2, 32


def _each(names: str, size: int) -> dict[str, int]:
    return dict.fromkeys(names.split(), size)


# Sizes at most, by the names that configs have for them.
SIZES: dict[str, int] = {
    **_each("hidden_size n_embd d_model dim embedding_size model_dim lru_width", 64),
    **_each("num_attention_heads n_head num_heads n_heads decoder_attention_heads", 4),
    **_each("encoder_attention_heads num_encoder_attention_heads", 4),
    **_each("num_key_value_heads n_kv_heads num_kv_heads", 2),
    **_each("num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers", 4),
    **_each("intermediate_size ffn_dim n_inner d_ff ffn_hidden_size decoder_ffn_dim", 96),
    **_each("encoder_ffn_dim intermediate_size_mlp dense_intermediate_size", 96),
    **_each("moe_intermediate_size shared_expert_intermediate_size", 48),
    **_each("head_dim d_head hidden_size_per_layer_input", 16),
    **_each("vocab_size vocab_size_per_layer_input", 128),
    **_each("max_position_embeddings n_positions n_ctx max_seq_len max_target_positions", 256),
    **_each("num_experts num_local_experts n_routed_experts moe_num_experts", 4),
    **_each("num_experts_per_tok num_experts_per_token moe_k", 2),
    "n_shared_experts": 1,
}
GONE = "id2label label2id transformers_version architectures dtype per_layer_config _name_or_path"
IDS = (
    "pad_token_id bos_token_id eos_token_id sep_token_id decoder_start_token_id image_token_id "
    "unk_token_id cls_token_id"
)
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
# What the rules above do not get right, type by type; None leaves the key to the class.
_LATENT: dict[str, Any] = (  # attention through a latent; experts in one group
    {"num_key_value_heads": 4, "head_dim": None, "q_lora_rank": 16, "kv_lora_rank": 16}
    | {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
    | {"n_group": 1, "topk_group": 1, "num_experts_per_tok": 2}
)
_HEADS = {"head_dim": 16, "num_key_value_heads": 2}
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_expand": 2, "mamba_d_state": 16}
_ROTARY = {"rope_type": "default", "rope_theta": 10000.0}
OWN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            *("axk1", "axk2", "beam", "deepseek_v2", "deepseek_v3", "youtu"),
            *("deepseek_v32", "dots3_note_text", "glm_moe_dsa", "glm4_moe_lite", "minicpm3"),
        ),
        _LATENT,
    ),
    "longcat_flash": _LATENT
    | {"moe_topk": 2, "zero_expert_num": 2, "expert_ffn_hidden_size": 48, "head_dim": 8}
    | {"qk_head_dim": 24},
    **dict.fromkeys(("codegen", "gptj"), {"rotary_dim": 8}),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral", "nemotron"), _HEADS),
    **dict.fromkeys(("bamba", "granitemoehybrid"), _MAMBA),
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": _ROTARY, "sliding_attention": _ROTARY}
    },
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0},
        "ffn_config": {"hidden_size": 64, "ffn_hidden_size": 96, "moe_num_experts": 4},
    },
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "gemma3n_text": {"num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0] * 4},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8, "head_dim": 16, "n_groups": 1, "state_size": 16},
    "marian": {"decoder_vocab_size": 128, "pad_token_id": 1, "decoder_start_token_id": 1},
    "reformer": {"is_decoder": True, "axial_pos_embds_dim": [16, 48], "axial_pos_shape": [4, 8]}
    | {"attention_head_size": 16, "feed_forward_size": 96, "attn_layers": ["local", "lsh"]}
    | {"local_attn_chunk_length": 16, "lsh_attn_chunk_length": 16, "num_buckets": 4}
    | {"num_hidden_layers": 2},
    "qwen4_exp_text": {"indexer_budget": 32, "indexer_compress_ratio": 4, "indexer_n_heads": 4}
    | {"indexer_kv_heads": 1, "indexer_head_dim": 16, "ngram_vocab_size_base": 512},
    "bailing_hybrid": _LATENT
    | {"num_expert_group": 1, "linear_num_heads": 4, "linear_head_dim": 16},
    "xlm": {"emb_dim": 64},
    "xlstm": {"embedding_dim": 64, "num_blocks": 4, "num_heads": 4},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"layers_block_type": ["linear_attention", "hybrid"] * 2, "n_mamba_heads": 2}
    | {"attention_hidden_size": 128, "attention_head_dim": 32, "mamba_dt_rank": 4},
    "zamba2": {"layers_block_type": ["linear_attention", "hybrid"] * 2}
    | {"attention_hidden_size": 128, "attention_head_dim": 32, "mamba_headdim": 16}
    | {"hybrid_layer_ids": [1, 3], "kv_channels": 16, "num_query_groups": 4, "adapter_rank": 8},
}


def small(family: str) -> dict[str, Any]:
    """A config.json of this type whose model runs in a moment."""
    import transformers

    try:
        usual = transformers.AutoConfig.for_model(family).to_dict()
    except Exception:  # some classes refuse their own defaults, each with an error of its own
        usual = {}
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

    made = _shrunk(usual | {"model_type": family})
    if usual.get("is_decoder") is False or usual.get("is_encoder_decoder"):
        made["architectures"] = [CAUSAL[family]]  # an encoder's causal form, and a decoder alone
    return made


def _shrunk(usual: dict[str, Any]) -> dict[str, Any]:
    layers = next((usual[key] for key in LAYERS if isinstance(usual.get(key), int)), 0)
    made: dict[str, Any] = {}
    for key, value in usual.items():
        if key in GONE.split():
            continue
        if key in IDS.split() and isinstance(value, int):
            value = min(value, 1)
        elif isinstance(value, dict) and key.endswith("_config"):
            value = _shrunk(value)
        elif isinstance(value, list) and layers > SIZES["n_layer"] and len(value) == layers:
            value = SIZES["d_ff"] if key == "intermediate_size" else None  # else: kinds of layers
        elif key in SIZES and isinstance(value, int):
            value = min(value, SIZES[key])
        made[key] = value
    made |= OWN.get(str(usual.get("model_type")), {})
    return {key: value for key, value in made.items() if value is not None}


def asked(family: str) -> dict[str, Any]:
    """What memlab says of one type, beside a real step: bytes, or the reason of a refusal."""
    found: dict[str, Any] = {"type": family}
    began = time.perf_counter()
    try:
        with quiet():
            model = Causal(small(family))
        traced = trace_run(model, "fp32", Run.cpu(batch=BATCH, tokens=TOKENS))
        on_cuda = _on_cuda(model)
    except (ValueError, CannotTrace) as error:
        return found | {"how": "refused", "why": _line(error), "seconds": _since(began)}
    found |= {"how": "closed form" if has_config(family) else "traced", "traced": traced.peak}
    found |= {"cuda": on_cuda.peak, "held": traced.held["after_forward"]}
    try:
        # Where a routing was assumed, the real step is made to choose the same.
        with Routed() if is_assumed(traced) else nullcontext():
            found["real"] = real(model)
    except Exception as error:  # the model's own code: what it raises is the finding
        found["why"] = f"a real step fails: {_line(error)}"
    return found | {"seconds": _since(began)}


def _on_cuda(model: Causal) -> Trace:
    """In bf16, or in fp32 where its code does not run in bf16."""
    run = Run(batch=BATCH, tokens=TOKENS)
    try:
        return trace_run(model, "bf16", run)
    except ValueError as error:
        if "scalar type" not in str(error):
            raise
        return trace_run(model, "fp32", run)


def real(model: Causal, precision: str = "fp32") -> int:
    """The peak of the second real step of AdamW on this CPU."""
    torch.manual_seed(0)
    with quiet(), no_garbage():
        module: Any = model.module(Run.cpu(), DTYPES[precision]).train()
        vocab = min(module.get_input_embeddings().weight.shape[0], SIZES["vocab_size"])
        passages = (torch.randint(2, vocab, (BATCH, TOKENS)) for _ in range(2))  # nobody keeps them
        return watch(module, passages, foreach=False).peaks[-1]


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 1)


def _line(error: Exception) -> str:
    """Its words in one line, and no folder of this machine."""
    words = re.sub(r"/\S*/site-packages/", "", ": ".join(str(error).splitlines()))
    words = " ".join(words.split())
    return words[:300] or type(error).__name__


def names() -> list[str]:
    """Every type of causal language model, in alphabetical order."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("types", nargs="*", metavar="TYPE")
    parser.add_argument("--write", action="store_true", help=f"into {OUT.name}")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # torch's, about speed
    logging.disable(logging.CRITICAL)  # torch logs what it then raises, and transformers greets
    rows = []
    for family in options.types or names():
        row = asked(family)
        rows.append(row)
        apart = row["traced"] - row["real"] if "real" in row else None
        said = row.get("why", "") if apart is None else f"{apart:+,} B of {row['real']:,}"
        print(f"{family:28} {row['how']:12} {row['seconds']:6.1f} s  {said}", flush=True)
    answered = sum(row["how"] != "refused" for row in rows)
    print(f"{answered} of {len(rows)} answered")
    if options.write:
        kept = json.loads(OUT.read_text(encoding="utf-8")) if options.types else []
        found = {row["type"]: row for row in [*kept, *rows]}
        said = json.dumps([found[name] for name in sorted(found)], indent=1)
        OUT.write_text(said + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
