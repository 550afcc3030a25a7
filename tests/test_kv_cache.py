"""KV cache: formulas against published numbers, and against caches that transformers fills."""

import pytest

torch = pytest.importorskip("torch")
tf = pytest.importorskip("transformers")

from memlab.measure import Tracker, storage_bytes  # noqa: E402
from memlab.model import Model  # noqa: E402
from memlab.terms import kv_cache as kv  # noqa: E402
from memlab.units import GiB  # noqa: E402

B, PROMPT, STEPS, L, WINDOW = 2, 9, 5, 3, 6
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": L,
    "vocab_size": 97,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LATENT, ROPE = 32, 8
DEEPSEEK = {
    **SMALL,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 24,
    "kv_lora_rank": LATENT,
    "qk_rope_head_dim": ROPE,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}


def grouped(kind, kv_heads, **more):
    return kind(**SMALL, num_attention_heads=4, num_key_value_heads=kv_heads, **more)


# name: (config, bytes of the cache after T tokens, in fp32)
FULL = {
    "llama, GQA": (
        grouped(tf.LlamaConfig, 2),
        lambda T: kv.kv_cache(L, kv_heads=2, head_dim=16, batch=B, tokens=T, format="fp32"),
    ),
    "llama, MQA": (
        grouped(tf.LlamaConfig, 1),
        lambda T: kv.kv_cache(L, kv_heads=1, head_dim=16, batch=B, tokens=T, format="fp32"),
    ),
    "gpt2, MHA": (
        tf.GPT2Config(
            n_embd=64, n_layer=L, n_head=4, vocab_size=97, bos_token_id=1, eos_token_id=2
        ),
        lambda T: kv.kv_cache(L, kv_heads=4, head_dim=16, batch=B, tokens=T, format="fp32"),
    ),
    "qwen3, H = 40 for D / N = 16": (
        grouped(tf.Qwen3Config, 2, head_dim=40),
        lambda T: kv.kv_cache(L, kv_heads=2, head_dim=40, batch=B, tokens=T, format="fp32"),
    ),
    "gemma, H = 48 for D / N = 16": (
        grouped(tf.GemmaConfig, 1, head_dim=48),
        lambda T: kv.kv_cache(L, kv_heads=1, head_dim=48, batch=B, tokens=T, format="fp32"),
    ),
    "deepseek_v2, MLA": (
        tf.DeepseekV2Config(**DEEPSEEK),
        lambda T: kv.mla_cache(L, latent=LATENT, rope=ROPE, batch=B, tokens=T, format="fp32"),
    ),
    "deepseek_v3, MLA": (
        tf.DeepseekV3Config(**DEEPSEEK),
        lambda T: kv.mla_cache(L, latent=LATENT, rope=ROPE, batch=B, tokens=T, format="fp32"),
    ),
}
WINDOWED = {
    "mistral": (grouped(tf.MistralConfig, 2, sliding_window=WINDOW), 2, 16, [WINDOW] * L),
    "gemma2": (
        grouped(tf.Gemma2Config, 2, head_dim=24, sliding_window=WINDOW),
        2,
        24,
        [WINDOW, None, WINDOW],
    ),
}


def held(cache):
    """True bytes of a cache: the storages behind its tensors, each counted once."""
    found = []
    for layer in cache.layers:
        for value in vars(layer).values():
            found += value if isinstance(value, tuple) else [value]
    # Not kept tokens: each windowed layer holds its W as a tensor too.
    window = [getattr(layer, "_sliding_window_tensor", None) for layer in cache.layers]
    return storage_bytes(
        [t for t in found if isinstance(t, torch.Tensor) and not any(t is w for w in window)]
    )


def generated(config, cache=None):
    """The cache, and its bytes after the prompt and after each of the tokens that follow."""
    torch.manual_seed(0)
    network = tf.AutoModelForCausalLM.from_config(config).eval()
    ids, sizes = torch.randint(3, 97, (B, PROMPT)), []
    with torch.no_grad():
        for _ in range(1 + STEPS):
            out = network(ids, past_key_values=cache, use_cache=True)
            cache, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)
            sizes.append(held(cache))
    return cache, sizes


@pytest.mark.parametrize("name", FULL)
def test_equal_to_a_real_cache_at_every_step(name):
    config, formula = FULL[name]
    assert generated(config)[1] == [formula(PROMPT + step) for step in range(1 + STEPS)]


@pytest.mark.parametrize("name", WINDOWED)
def test_a_window_saves_nothing_until_the_step_after_a_long_prompt(name):
    config, heads, width, windows = WINDOWED[name]
    first, *rest = generated(config)[1]
    # The slice that DynamicCache keeps is a view of the whole prompt's keys.
    assert first == kv.kv_cache(
        L, kv_heads=heads, head_dim=width, batch=B, tokens=PROMPT, format="fp32"
    )
    derived = [
        kv.windowed_cache(
            windows, kv_heads=heads, head_dim=width, batch=B, tokens=PROMPT + step, format="fp32"
        )
        for step in range(1, 1 + STEPS)
    ]
    assert rest == derived


def test_a_static_cache_is_full_from_the_first_token():
    config = FULL["llama, GQA"][0]
    sizes = generated(config, tf.StaticCache(config=config, max_cache_len=20))[1]
    assert sizes == [
        kv.static_cache(L, kv_heads=2, head_dim=16, batch=B, longest=20, format="fp32")
    ] * (1 + STEPS)


def test_a_static_cache_with_windows():
    config, heads, width, windows = WINDOWED["gemma2"]
    sizes = generated(config, tf.StaticCache(config=config, max_cache_len=20))[1]
    derived = (
        kv.windowed_cache(
            windows, kv_heads=heads, head_dim=width, batch=B, tokens=20, format="fp32"
        )
        + 8 * L
    )
    assert sizes == [derived] * (1 + STEPS)


def test_a_quantized_cache():
    config = FULL["llama, GQA"][0]
    sizes = generated(config, tf.QuantizedCache("fp8", config))[1]
    # One fp32 scale for all keys of a layer and one for all its values, fixed by the prompt.
    scales = 2 * L * 4
    assert sizes == [
        kv.kv_cache(L, kv_heads=2, head_dim=16, batch=B, tokens=PROMPT + step, format="fp8_e4m3")
        + scales
        for step in range(1 + STEPS)
    ]


def test_a_quantized_cache_is_read_in_full_precision():
    """Beside the old cache of a layer: a longer one, two fp32 copies of the values, bf16 keys."""
    layer, past, heads, width = tf.cache_utils.Fp8QuantizedLayer(), 64, 2, 16
    layer.update(*torch.randn(2, B, heads, past, width, dtype=torch.bfloat16))
    fresh = torch.randn(2, B, heads, 1, width, dtype=torch.bfloat16)
    with Tracker() as tracker:
        tracker.label(fresh, "inputs")
        tracker.label([*layer._quantized_keys, *layer._quantized_values], "kv_cache")
        before = tracker.current
        layer.update(*fresh)
    values, new = B * heads * (past + 1) * width, B * heads * width
    longer, upcast, scaled, keys = 2 * values, 4 * values, 4 * values, 2 * values
    assert tracker.peak - before == longer + upcast + scaled + keys + 2 * new


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("new", [1, 4])
def test_growing_keeps_the_old_copy_of_one_tensor(dtype, new):
    cache, heads, width = tf.DynamicCache(), 2, 16
    value, after = getattr(torch, dtype), PROMPT + new

    def fed(tokens):
        return [torch.ones(2, B, heads, tokens, width, dtype=value) for _ in range(L)]

    for layer, (k, v) in enumerate(fed(PROMPT)):
        cache.update(k, v, layer)
    fresh = fed(new)
    with Tracker() as tracker:
        tracker.label(fresh, "inputs")
        tracker.label([[layer.keys, layer.values] for layer in cache.layers], "kv_cache")
        given = tracker.contents()["inputs"]
        for layer, (k, v) in enumerate(fresh):
            cache.update(k, v, layer)
    resident = kv.kv_cache(L, kv_heads=heads, head_dim=width, batch=B, tokens=after, format=dtype)
    assert tracker.current - given == resident
    assert tracker.peak - given == resident + kv.growth(
        heads, head_dim=width, batch=B, tokens=after, new=new, format=dtype
    )


def test_published_bytes_per_token():
    # DeepSeek-AI 2025, "Insights into DeepSeek-V3", arXiv:2505.09343, table 1, in kB: 70.272,
    # 327.680 and 516.096.
    assert kv.mla_cache(61, latent=512, rope=64, batch=1, tokens=1) == 70_272
    assert kv.per_token(80, kv_heads=8, head_dim=128) == 327_680  # Qwen2.5-72B
    assert kv.per_token(126, kv_heads=8, head_dim=128) == 516_096  # Llama-3.1-405B
    # Kwon et al. 2023, arXiv:2309.06180, section 3: "800 KB" a token of OPT-13B, in fp16.
    assert kv.per_token(40, kv_heads=40, head_dim=128, format="fp16") == 800 * 1024
    # vLLM 0.11, attention/backends/mla/flashmla_sparse.py: "each token's KV cache is 656 Bytes":
    # 512 values in FP8, a fp32 scale for every 128 of them, and 64 rotary values in bf16.
    assert (
        kv.mla_cache(
            1, latent=512, rope=64, batch=1, tokens=1, format="fp8_e4m3/128", rope_format="bf16"
        )
        == 656
    )


def test_published_savings():
    # Jiang et al. 2023, arXiv:2310.06825: on 32k tokens the rolling buffer of 4,096 saves 8x.
    rolling = kv.windowed_cache([4096] * 32, kv_heads=8, head_dim=128, batch=1, tokens=32768)
    assert kv.kv_cache(32, kv_heads=8, head_dim=128, batch=1, tokens=32768) == 8 * rolling
    # Llama-2-7B at 4,096 tokens: 2 GiB; Llama-3-8B has a quarter of the heads.
    assert kv.kv_cache(32, kv_heads=32, head_dim=128, batch=1, tokens=4096) == 2 * GiB
    assert kv.kv_cache(32, kv_heads=8, head_dim=128, batch=1, tokens=8192) == 1 * GiB


def test_the_head_width_is_the_models_own():
    m = Model.preset("qwen3-4b")
    own = kv.per_token(m.layers, kv_heads=m.kv_heads, head_dim=m.head_dim)
    assert (
        own * (m.d_model // m.heads)
        == kv.per_token(m.layers, kv_heads=m.kv_heads, head_dim=80) * m.head_dim
    )
    assert own == 147_456


def test_blocks_restart_at_each_head():
    # 80 values in blocks of 32: three scales a head, the last for 16 values only.
    assert kv.per_token(1, kv_heads=4, head_dim=80, format="int8/32:bf16") == 2 * 4 * (80 + 3 * 2)
    assert kv.kv_cache(
        2, kv_heads=4, head_dim=80, batch=3, tokens=7, format="int4/row:fp16"
    ) == 2 * 2 * 4 * 3 * 7 * (40 + 2)


def test_pages():
    lengths = [1, 16, 17, 100, 0]
    assert kv.paged_cache(4, kv_heads=2, head_dim=16, lengths=lengths) == kv.paged_cache(
        4, kv_heads=2, head_dim=16, lengths=lengths, block=16
    )
    assert kv.growth(2, head_dim=16, batch=3, tokens=14) == 3 * 13 * 2 * 16 * 2
    assert [kv.pages(n) for n in lengths] == [1, 1, 2, 7, 0]
    whole = kv.paged_cache(4, kv_heads=2, head_dim=16, lengths=lengths, block=16)
    assert whole == kv.kv_cache(4, kv_heads=2, head_dim=16, batch=11, tokens=16)
    waste = whole - kv.kv_cache(4, kv_heads=2, head_dim=16, batch=1, tokens=sum(lengths))
    assert waste == kv.kv_cache(4, kv_heads=2, head_dim=16, batch=1, tokens=15 + 0 + 15 + 12)
    assert waste < len(lengths) * kv.kv_cache(4, kv_heads=2, head_dim=16, batch=1, tokens=16)


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="tokens=-1 is negative"):
        kv.kv_cache(1, kv_heads=1, head_dim=1, batch=1, tokens=-1)
    with pytest.raises(TypeError, match="kv_heads=2.0 is a float"):
        kv.per_token(1, kv_heads=2.0, head_dim=8)
    with pytest.raises(ValueError, match="unknown format 'fp9'; known: "):
        kv.per_token(1, kv_heads=2, head_dim=8, format="fp9")
    with pytest.raises(ValueError, match="window=0; a token attends at least to itself"):
        kv.windowed_cache([None, 0], kv_heads=1, head_dim=8, batch=1, tokens=4)
    with pytest.raises(ValueError, match="block=0; a page holds"):
        kv.paged_cache(1, kv_heads=1, head_dim=8, lengths=[3], block=0)
    with pytest.raises(ValueError, match="new=5 of tokens=4"):
        kv.growth(1, head_dim=8, batch=1, tokens=4, new=5)
