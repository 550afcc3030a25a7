"""States of the page's calculator: random ones, most of which can be, and hostile ones."""

import random

from memlab.engines.apple import mac
from memlab.families import record_of, tabled
from memlab.page.adapter_controls import START as ADAPTERS
from memlab.page.adapter_tables import TARGETS
from memlab.page.controls import CHOICES, NUMBERS
from memlab.page.loop_controls import LABELS
from memlab.page.serve_controls import START as SERVING
from memlab.run.loops import HEADED

COUNTED = tuple(tabled())
FIXED_HEADS = tuple(name for name in COUNTED if "kv_heads" not in record_of(name).shape)
APART = (
    SERVING | ADAPTERS | {"loop": "plain", "completion": 0, "param_dtype": "own"}
)  # asked by states of their own, below


def states(count, seed=0):
    """So many random states, the same for a seed."""
    chance = random.Random(seed)
    return [state(chance) for _ in range(count)]


def state(chance):
    made = {}
    for name, _, values in [each for each in CHOICES if each[0] not in APART]:
        if chance.random() < 0.7:
            # Of Apple's GPUs, which run no CUDA, tests/test_asked.py has states.
            made[name] = chance.choice([each for each in values if not mac(each[0])])[0]
    for name, _, least, _ in [each for each in NUMBERS if each[0] not in APART]:
        if chance.random() < 0.4:
            made[name] = least * 2 ** chance.randrange(4)
    if chance.random() < 0.7:  # else the data that tensor and pipeline divide hide the step
        made["tensor"] = made["pipeline"] = 1
        made["zero"] = chance.randrange(2)
    made["tokens"] = chance.choice((16, 100, 512, 2048, 8191))
    made["batch"] = chance.choice((1, 1, 2, 7, 32))
    if chance.random() < 0.6:
        made |= {"model": "config", "config": config(chance)}
    return made


def adapted(count, seed=0):
    """So many random states that train adapters alone, on one device."""
    chance, found = random.Random(f"adapters {seed}"), []
    for _ in range(count):
        made = state(chance) | {"trained": chance.choice(("lora", "qlora"))}
        made |= {"targets": chance.choice(TARGETS), "rank": chance.choice((1, 8, 16, 100))}
        if made.get("model") == "config" or chance.random() < 0.8:
            made |= {"model": "config", "config": config(chance, tabled("adapters"))}
        alone = {"data": 1, "zero": 0, "tensor": 1, "pipeline": 1}
        found.append(made | (alone if chance.random() < 0.95 else {}))
    return found


def looped(count, seed=0):
    """So many random states in named loops, with adapters or without, on one device."""
    chance, found = random.Random(f"loops {seed}"), []
    for _ in range(count):
        made = state(chance) | {"loop": chance.choice(list(LABELS)[1:]), "loss": "plain"}
        families = COUNTED if made["loop"] == "trainer" else ("llama", "qwen2", "qwen3")
        made |= {"model": "config", "config": config(chance, families)}
        made |= {"data": 1, "zero": 0, "tensor": 1, "pipeline": 1}
        if made.get("precision") == "zero":
            made["precision"] = "bf16"
        if chance.random() < 0.5 and made["loop"] in ("trainer", *HEADED):
            made |= {"trained": chance.choice(("lora", "qlora"))}
            made |= {"targets": chance.choice(TARGETS), "rank": chance.choice((1, 8, 16, 100))}
        if chance.random() < 0.5:
            made["completion"] = chance.choice((0, 1, 7, 15))
        if made["loop"] != "trainer" and chance.random() < 0.9:
            made["attention"] = "sdpa"
        found.append(made)
    return found


def sharded(count, seed=0):
    """So many random states under FSDP2."""
    chance, found = random.Random(f"sharded {seed}"), []
    for _ in range(count):
        made = state(chance) | {"data": chance.choice((2, 3, 8, 64, 500)), "zero": 3, "tensor": 1}
        families = ("llama", "qwen2", "qwen3", "gemma2", "mistral")
        made |= {"pipeline": 1, "loss": "plain", "attention": "own"}
        made |= {"model": "config", "config": config(chance, families)}
        made["optimizer"] = chance.choice(("adamw", "sgd", "momentum", "lion"))
        if made.get("precision") == "zero":
            made["precision"] = "bf16"
        if len(found) % 13 == 12:  # which no table has
            made |= {"precision": "fp32", "param_dtype": "bf16"}
        found.append(made)
    return found


def config(chance, families=COUNTED):
    """A config.json of a random family and size; now and then an impossible one."""
    family = chance.choice(sorted(families))
    heads, width = chance.choice((1, 2, 6, 8, 16)), chance.choice((8, 20, 64, 128, 320))
    groups = chance.choice((1, 2, 2, 2, heads, 3 if chance.random() < 0.1 else 1))
    square = family in SQUARE or chance.random() < 0.3
    d_model = heads * width if square else chance.choice((64, 250, 1024, 4096))
    if d_model % heads and chance.random() < 0.8:  # which many families ask for
        d_model = heads * 128
    sizes = {
        "layers": chance.choice((1, 4, 6, 17, 17 if family in SLOW else 80)),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": max(1, heads // groups),
        "head_dim": width,
        "vocab": chance.choice((64, 1000, 50257, 256000)),
        "d_ff": chance.choice((64, 1000, 4 * d_model)),
        "positions": chance.choice((512, 8192, 131072)),
        "tied": chance.random() < (0.8 if family in TIED else 0.5),
        "experts": chance.choice((4, 64)),
        "experts_per_token": chance.choice((2, 4)),
        "expert_ff": chance.choice((64, 768)),
        "shared_ff": 1 if record_of(family).groups else 512,
    }
    made = {"model_type": family, "pad_token_id": None}  # a class's own may be beyond a vocabulary
    if record_of(family).latent:
        sizes["kv_heads"] = heads
        made |= {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
        made["v_head_dim"] = chance.choice((128, 64))
    if family == "llama4_text":
        sizes |= {"experts_per_token": 1, "shared_ff": sizes["expert_ff"]}
    for field, (key, _) in record_of(family).shape.items():
        if field in sizes and chance.random() < 0.97:
            made[key] = sizes[field]
    own = chance.choice(OWN.get(family, ({},)))
    made |= {} if "rope_scaling" in own and width != 64 else own  # a factor for two of a head
    if chance.random() < 0.15:
        made |= chance.choice(ODD)
    return made


SQUARE = (*FIXED_HEADS, "phi3", "olmoe")  # D = N · H
SLOW = ("smollm3", "cohere2", "gemma3_text", "glm4_moe", "gemma2", "gpt_oss", "qwen2_moe")
SLOW += ("deepseek_v2", "deepseek_v3", "llama4_text")
TIED = tuple(name for name in COUNTED if record_of(name).counted("ties") == ("tied",))
# What configs of a family say of its step.
WINDOWS = ({"sliding_window": 100}, {"sliding_window": 512}, {"sliding_window": 4096})
LONG = {"type": "longrope", "short_factor": [1.5] * 32, "long_factor": [2.5] * 32}
OWN = dict.fromkeys(("mistral", "ministral", "gemma2", "gpt_oss"), WINDOWS)
OWN |= {
    "phi3": (*WINDOWS, {"rope_scaling": LONG}),
    "starcoder2": (
        *WINDOWS,
        {"residual_dropout": 0.1, "attention_dropout": 0.1, "embedding_dropout": 0.1},
    ),
    "seed_oss": ({}, {"attention_dropout": 0.0, "residual_dropout": 0}),
    "smollm3": ({}, {"no_rope_layer_interval": 3}, {"no_rope_layer_interval": 2}),
    "gemma3_text": tuple(w | {"sliding_window_pattern": n} for w in WINDOWS for n in (6, 2)),
    "cohere2": tuple(w | {"sliding_window_pattern": n} for w in WINDOWS for n in (4, 3)),
    "qwen3_moe": ({"norm_topk_prob": True, "mlp_only_layers": []}, {}),
    "glm4_moe": tuple(
        {"attention_bias": True, "use_qk_norm": normed, "first_k_dense_replace": dense}
        for normed in (True, False)
        for dense in (1, 3)
    ),
    "deepseek_v3": (
        {"q_lora_rank": 1536, "n_group": 2, "topk_group": 1},
        {"q_lora_rank": None, "n_group": 1, "topk_group": 1},
    ),
    "deepseek_v2": (
        {"q_lora_rank": 1536, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1}
        | {"topk_method": "group_limited_greedy"},
        {"q_lora_rank": None, "first_k_dense_replace": 1},
    ),
    "olmo": ({}, {"clip_qkv": 8.0}),
    "llama4_text": (
        {},
        {"attention_chunk_size": 100},
        {"use_qk_norm": False, "interleave_moe_layer_step": 2},
    ),
}
ODD = (
    {"hidden_act": "relu"},
    {"attention_bias": True},
    {"norm_topk_prob": True},
    {"layer_types": ["full_attention"] * 17},
    {"attention_dropout": 0.1},
    {"attn_pdrop": 0.0},
    {"dropout": 0.0},
    {"gradient_checkpointing": True},
    {"quantization_config": {"quant_method": "gptq"}},
    {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0, "dropout": 0.0},
    {"hidden_dropout": 0.1, "attention_dropout": 0.1},
    {"attn_implementation": "eager"},
    {"rope_scaling": {"rope_type": "llama3", "factor": 8}},
    {"rope_scaling": {"rope_type": "dynamic"}},
    {"rope_scaling": {"type": "linear"}},
    {"rope_scaling": "linear"},
    {"use_sliding_window": True},
    {"sliding_window": 100},
    {"sliding_window": None},
    {"activation_function": "gelu"},
    {"use_parallel_residual": False},
    {"_name_or_path": "a/model"},
    {"num_hidden_layers": 3.5},
    {"hidden_size": "wide"},
    {"vocab_size": True},
    {"tie_word_embeddings": 1},
)

# What was not counted of two families, and what cannot be, which a draw seldom meets.
_SIZES = {"hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 4}
_SIZES |= {"num_hidden_layers": 12, "intermediate_size": 1024, "vocab_size": 1000}
_SIZES |= {"pad_token_id": None}
_WIDE = {"model_type": "gemma3_text", "head_dim": 128}
_ODD_HEADS = {"model_type": "llama", "hidden_size": 60}
_UNEVEN = {"model_type": "mistral", "hidden_size": 510}
_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True}
RARE = [
    {"model": "config", "tokens": 512, "config": _SIZES | more}
    for more in (_WIDE, {"model_type": "olmoe"} | _EXPERTS, _ODD_HEADS, _UNEVEN)
]

# What somebody may put into the address or make a page do: each is answered by one line.
MARKUP = "<img src=x onerror=alert(1)>"
HOSTILE = [
    [],
    None,
    "text",
    {"batch": -1},
    {"batch": 0},
    {"batch": 10**15},
    {"batch": 1.5},
    {"batch": "1"},
    {"batch": True},
    {"tokens": None},
    {"tokens": [4096]},
    {"model": MARKUP},
    {"model": "__proto__"},
    {"model": ["llama-3-8b"]},
    {"card": {"name": "H100 80GB"}},
    {"card": MARKUP * 1000},
    {"constructor": 1},
    {MARKUP: 1},
    {"model": "config"},
    {"model": "config", "config": MARKUP},
    {"model": "config", "config": {"model_type": MARKUP}},
    {"model": "config", "config": {"model_type": 7}},
    {"model": "config", "config": {"model_type": "llama"}},
    *(
        {"model": "config", "config": {"model_type": "llama", "hidden_size": value}}
        for value in (-1, 0, 10**12, 1e300, "4096", None, True, [4096], {"a": 1}, MARKUP)
    ),
    {"model": "config", "config": {"model_type": "llama", "rope_scaling": MARKUP}},
    {"tensor": 3},
    {"pipeline": 1000},
    {"loss": "chunked", "tokens": 2},
]

# Of types that memlab does not describe: each sentence that the page has about them, once.
_PHI = {"model_type": "phi", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128}
_PHI |= {"num_hidden_layers": 4, "intermediate_size": 96}
_LISTED = {"model_type": "olmo3", "num_hidden_layers": 4}
_TEXT = {"model_type": "gemma3_text", "sliding_window": 1024, "hidden_size": 2560}
_WRAPPER = {"model_type": "gemma3", "text_config": _TEXT}
TYPED = [
    {"model": "config", "tokens": 512, **more}
    for more in (
        {"config": _PHI},
        {"config": _PHI | {"rotary": 1}},
        {"config": _PHI, "optimizer": "muon"},
        {"config": _PHI, "data": 2},
        {"config": _PHI, "micro_batches": 2},
        {"config": _PHI | {"architectures": ["PhiForSequenceClassification"]}},
        {"config": _PHI | {"num_attention_heads": 5}},
        {"config": _PHI | {"num_hidden_layers": 10_001}},
        {"config": _PHI | {"vocab_size": 0}},
        {"config": _PHI | {"vocab_size": None}},
        {"config": _LISTED | {"layer_types": ["full_attention"]}},
        {"config": _LISTED | {"layer_types": ["linear_attention"] * 4}},
        {"config": {"model_type": "gemma3"}},
        {"config": _WRAPPER},
        {"config": {"model_type": "gemma3", "text_config": {"sliding_window": 4096}}},
        {"config": {"model_type": "rwkv"}},
        {"config": {"model_type": "internlm3"}},
    )
]

# What is asked about serving: each of its sentences once, what the engines refuse among them.
_PHI3 = {"model_type": "phi3", "sliding_window": 2047, "hidden_size": 3072}
_PHI3 |= {"num_attention_heads": 32, "num_hidden_layers": 32, "intermediate_size": 8192}
_PHI3 |= {"vocab_size": 32064, "max_position_embeddings": 131072}
_LLAMA4 = {"model_type": "llama4_text", "hidden_size": 512, "num_attention_heads": 8}
_LLAMA4 |= {"num_key_value_heads": 2, "num_hidden_layers": 4, "intermediate_size": 1024}
_LLAMA4 |= {"vocab_size": 1000, "num_local_experts": 4, "intermediate_size_mlp": 1024}
_LLAMA4 |= {"num_experts_per_tok": 1, "pad_token_id": None}
_ODD_FF = _PHI | {"model_type": "llama", "num_key_value_heads": 1, "intermediate_size": 98}
SERVED = [
    {"use": "serve", "users": 8} | state
    for state in (
        {},
        {"users": 1, "model": "llama-3.1-8b", "context": 32768, "card": "RTX 4090"},
        {"model": "gpt-oss-20b", "card": "RTX 4090", "context": 32768},
        {"model": "gpt-oss-20b", "card": "RTX 4090", "context": 32768, "loaded": 13700},
        {"users": 200},
        {"users": 200, "cards": 8},
        {"users": 60, "share": 80, "kv": "int8_per_token_head"},
        {"users": 60},
        {"users": 60000, "context": 128},
        {"users": 60000, "engine": "sglang", "share": 95, "kv": "fp8", "cards": 8},
        {"users": 58, "engine": "sglang"},
        {"model": "llama-3-70b"},
        {"model": "qwen3-0.6b", "context": 32768, "card": "T4", "dtype": "fp16"},
        {"dtype": "nf4", "loaded": 5400, "users": 70},
        {"dtype": "nf4"},
        {"dtype": "awq", "model": "qwen3-32b", "card": "RTX 4090", "users": 1},
        {"dtype": "gptq", "model": "qwen2.5-72b", "cards": 2},
        {"dtype": "fp8-block", "model": "qwen3-30b-a3b", "cards": 4},
        {"dtype": "fp8-channel", "engine": "none", "users": 100},
        {"model": "gpt-oss-20b", "card": "RTX 4090"},
        {"model": "gpt-oss-20b", "dtype": "bf16"},
        {"model": "gpt-oss-120b", "engine": "none"},
        {"model": "deepseek-v3", "cards": 8, "card": "H200"},
        {"dtype": "awq", "engine": "none", "model": "config", "config": _PHI},
        {"dtype": "fp32", "card": "other", "gib": 48},
        {"engine": "none"},
        {"engine": "none", "dtype": "nf4", "users": 100},
        {"engine": "none", "dtype": "nf4", "model": "config", "config": _PHI},
        {"engine": "none", "dtype": "fp32", "model": "gpt2", "context": 1024},
        {"engine": "none", "model": "gpt2"},
        {"context": 100_000},
        {"cards": 3},
        {"cards": 4, "context": 512, "model": "config", "config": _ODD_FF},
        {"model": "nanochat-d26", "context": 2048},
        {"model": "deepseek-v2-lite", "kv": "int8_per_token_head"},
        {"model": "config", "config": _PHI},
        {"engine": "none", "model": "config", "config": _PHI},
        {"engine": "none", "model": "config", "config": _PHI, "dtype": "fp32", "users": 1},
        {"model": "config", "config": _PHI3, "context": 4096},
        {"model": "config", "config": _PHI3, "context": 4096, "engine": "sglang"},
        {"model": "config", "config": _LLAMA4, "context": 512},
        {"engine": "none", "model": "config", "config": _LLAMA4, "context": 512},
        {"engine": "none", "model": "config", "config": {"model_type": "rwkv"}},
    )
]

# What is asked about adapters: each sentence that the page has about them, once.
_GPT2 = {"model": "gpt2", "tokens": 512}
ADAPTED = [
    {"trained": "qlora"} | state
    for state in (
        {},
        {"trained": "lora"},
        {"trained": "lora", "card": "RTX 3060", "tokens": 256},
        {"trained": "lora", "card": "RTX 3060", "targets": "qv", "rank": 64, "tokens": 2048},
        {"targets": "attention", "rank": 8},
        {"targets": "qv", "rank": 64},
        {"model": "qwen3-0.6b", "lora_dropout": 5},
        {"data": 2},
        {"precision": "zero"},
        {"precision": "autocast"},
        {"optimizer": "bnb_paged_adamw8bit"},
        {"model": "mixtral-8x7b"},
        {"model": "config", "config": _PHI},
        {"model": "config", "config": _ODD_FF},
        {"model": "phi-4"},
        _GPT2,
        _GPT2 | {"trained": "lora"},
    )
]

# What is asked about loops and about several devices: each of their sentences, once.
LOOPED = [
    {"loop": "sft"},
    {"loop": "sft", "completion": 5000},
    {"loop": "sft", "completion": 1000, "trained": "qlora", "batch": 2},
    {"loop": "sft", "loss": "chunked"},
    {"loop": "sft", "precision": "zero"},
    {"loop": "sft", "attention": "eager"},
    {"loop": "sft", "trained": "lora", "precision": "fp32"},
    {"loop": "sft", "model": "olmo-2-1b"},
    {"loop": "trainer", "model": "qwen3-4b", "trained": "lora", "card": "RTX 4090"},
    {"loop": "trainer", "optimizer": "bnb_paged_adamw8bit"},
    {"loop": "trainer", "data": 8},
    {"loop": "nanogpt"},
    {"loop": "keeps-outputs"},
    {"loop": "keeps-outputs", "trained": "lora"},
    {"loop": "keeps-outputs", "model": "mistral-7b-v0.1", "tokens": 2048},
    {"loop": "dpo"},
    {"loop": "dpo", "batch": 2, "micro_batches": 4},
    {"loop": "grpo", "completion": 512, "micro_batches": 8},
    {"loop": "distillation"},
    {"loop": "gkd", "data": 8},
    {"loop": "distillation", "data": 8, "zero": 3},
    {"loop": "distillation", "teacher": "gpt2"},
    {"loop": "sft", "data": 8, "zero": 3},
    {"loop": "sft", "tensor": 8},
]
SHARDED = [
    {"data": 8, "zero": 3},
    {"data": 8, "zero": 3, "precision": "zero"},
    {"data": 8, "zero": 3, "optimizer": "muon"},
    {"data": 8, "zero": 3, "loss": "chunked"},
    {"data": 8, "zero": 3, "attention": "eager"},
    {"data": 8, "zero": 3, "model": "olmo-2-1b"},
    {"data": 8, "zero": 3, "precision": "fp32", "param_dtype": "bf16"},
    {"data": 8, "zero": 2},
    {"data": 8, "zero": 0},
    {"tensor": 8},
    {"pipeline": 4},
    {"data": 2, "tensor": 2},
    {"model": "llama-3-8b", "card": "RTX 4090"},
    {"model": "qwen3-4b", "card": "L40S"},
    {"data": 8, "zero": 3, "trained": "lora"},
    {"data": 8, "zero": 3, "trained": "qlora"},
    {"tensor": 8, "trained": "lora"},
    {"model": "gemma-2-2b", "loss": "chunked"},
]
RARELY = {"model": "gemma-2-2b", "attention": "sdpa", "tokens": 512}
# Small enough for the card: of a model that is not, the verdict gives no reason.
LOOPED = [{"model": "qwen3-0.6b"} | each for each in LOOPED] + [RARELY]
SHARDED = [{"model": "qwen3-0.6b"} | each for each in SHARDED]
