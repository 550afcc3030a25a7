"""Inference peaks: derived bytes against every storage of a forward pass without gradients."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from memlab.lab.generate import Cache, GrowingCache, generate, read  # noqa: E402
from memlab.lab.models import TinyGPT, TinyLlama  # noqa: E402
from memlab.ledger import Ledger  # noqa: E402
from memlab.measure import Tracker  # noqa: E402
from memlab.model import Model  # noqa: E402
from memlab.step.closed.own_calls import decode, prefill  # noqa: E402
from memlab.step.closed.working_set import moments  # noqa: E402
from memlab.terms.kv_cache import growth, kv_cache, per_token  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# Each shape has its peak somewhere else: in the feed-forward layer, the norm, attention, the head.
SHAPES = {
    "llama": {"d_model": 32, "d_ff": 80, "heads": 4, "kv_heads": 2, "vocab": 24},
    "llama, wide attention": {
        "d_model": 24,
        "d_ff": 16,
        "heads": 4,
        "kv_heads": 4,
        "head_dim": 24,
        "vocab": 24,
    },
    "llama, many words": {"d_model": 16, "d_ff": 24, "heads": 4, "kv_heads": 1, "vocab": 600},
    "llama, narrow": {"d_model": 64, "d_ff": 16, "heads": 2, "head_dim": 8, "vocab": 24},
    "qwen2": {"d_model": 32, "d_ff": 48, "heads": 4, "kv_heads": 2, "vocab": 24},
    "qwen3": {
        "d_model": 32,
        "d_ff": 40,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 16,
        "vocab": 24,
        "tied": True,
    },
    "qwen3, one key/value head": {
        "d_model": 24,
        "d_ff": 16,
        "heads": 6,
        "kv_heads": 1,
        "head_dim": 20,
        "vocab": 31,
    },
    "mistral": {"d_model": 48, "d_ff": 200, "heads": 6, "kv_heads": 3, "vocab": 24},
    "gpt2": {"d_model": 32, "d_ff": 40, "heads": 4, "vocab": 24},
    "gpt2, wide": {"d_model": 32, "d_ff": 300, "heads": 2, "vocab": 24},
    "gpt2, many words": {"d_model": 16, "d_ff": 40, "heads": 4, "vocab": 700, "tied": False},
}


def shape(name, layers=3):
    return Model(**SHAPES[name], family=name.split(",")[0], name=name, layers=layers, positions=64)


def built(model, format):
    torch.manual_seed(0)
    kind = TinyGPT if model.family == "gpt2" else TinyLlama
    return kind(model).to(DTYPES[format]).eval()


def measured(tracker, model, rows):
    """What the tracker saw at the peak, in the terms of the ledger."""
    figures = dict.fromkeys(["weights", "buffers", "inputs", "kv_cache"], 0)
    figures |= {"activations": 0, "logits": 0}
    for record, size in tracker.alive("peak"):
        # [rows, V], as the head's product makes it; no other tensor has this width.
        head = record.category == "other" and record.shape == (rows, model.vocab)
        category = "logits" if head else record.category
        figures["activations" if category == "other" else category] += size
    return Ledger.of("measured", figures)


def compare(derived, tracker, model, rows):
    assert derived.total() == tracker.peak
    both = derived.beside(measured(tracker, model, rows))
    assert [row.difference for row in both.rows] == [0] * 6, str(both)


def every_moment(made, tracker):
    """Moments that are not the peak are right too: their totals occur, one after the other."""
    fixed = ("weights", "buffers", "inputs")
    base = sum(e.bytes for e in tracker.timeline if tracker.records[e.ident].category in fixed)
    totals = iter([event.total - base for event in tracker.timeline])
    missing = [moment for moment in made if moment.bytes not in totals]
    assert not missing, missing


@pytest.mark.sample(39)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize(("B", "T"), [(2, 16), (1, 5), (3, 33)])
def test_a_forward_pass_without_gradients(name, format, B, T):
    model = shape(name)
    net, ids = built(model, format), torch.randint(model.vocab, (B, T))
    with torch.no_grad(), Tracker() as tracker:
        tracker.label(net)
        tracker.label(ids, "inputs")
        net(ids)
    compare(prefill(model, batch=B, tokens=T, format=format), tracker, model, B * T)
    every_moment(moments(model, B, T, format), tracker)


def filled(model, format, B, T, cache, capacity):
    net, ids = built(model, format), torch.randint(model.vocab, (B, T))
    dtype = DTYPES[format]
    if cache == "growing":
        return net, ids, GrowingCache(model, B, dtype=dtype)
    return net, ids, Cache(model, B, capacity, dtype=dtype)


def watched(net, ids, cache):
    """A tracker that saw the tokens read; new tensors of a growing cache are labelled too."""
    with Tracker() as tracker:
        tracker.label(net)
        tracker.label(ids, "inputs")
        tracker.label([cache.keys, cache.values], "kv_cache")
        append = cache.append

        def labelled(layer, k, v):
            made = append(layer, k, v)
            tracker.label([cache.keys[layer], cache.values[layer]], "kv_cache")
            return made

        cache.append = labelled
        read(net, ids, cache)
        cache.append = append
    return tracker


@pytest.mark.sample(19)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("format", ["fp32", "bf16"])
@pytest.mark.parametrize("cache", ["preallocated", "growing"])
def test_reading_a_prompt_and_one_more_token(name, format, cache):
    model, B, T = shape(name), 2, 17
    capacity = 40 if cache == "preallocated" else None
    net, ids, held = filled(model, format, B, T, cache, capacity)
    how = {"format": format, "cache": cache, "capacity": capacity}
    tracker = watched(net, ids, held)
    compare(prefill(model, batch=B, tokens=T, **how), tracker, model, B)
    every_moment(moments(model, B, T, **how), tracker)
    for past in range(T, T + 3):
        tracker = watched(net, ids[:, -1:].clone(), held)
        compare(decode(model, batch=B, tokens=past, **how), tracker, model, B)
        every_moment(moments(model, B, 1, past=past, **how), tracker)


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "family": st.sampled_from(["llama", "qwen2", "qwen3", "gpt2"]),
            "layers": st.integers(1, 2),
            "kv_heads": st.integers(1, 3),
            "group": st.integers(1, 3),
            "half": st.integers(1, 16),
            "d_model": st.integers(1, 48),
            "d_ff": st.integers(1, 96),
            "vocab": st.integers(2, 300),
            "batch": st.integers(1, 3),
            "tokens": st.integers(1, 20),
            "format": st.sampled_from(list(DTYPES)),
        }
    )
)
def test_any_shape(s):
    group = 1 if s["family"] == "gpt2" else s["group"]
    model = Model(
        family=s["family"],
        layers=s["layers"],
        d_model=s["d_model"],
        d_ff=s["d_ff"],
        heads=s["kv_heads"] * group,
        kv_heads=s["kv_heads"],
        head_dim=2 * s["half"],
        vocab=s["vocab"],
        positions=32,
    )
    net = built(model, s["format"])
    ids = torch.randint(model.vocab, (s["batch"], s["tokens"]))
    with torch.no_grad(), Tracker() as tracker:
        tracker.label(net)
        tracker.label(ids, "inputs")
        net(ids)
    derived = prefill(model, batch=s["batch"], tokens=s["tokens"], format=s["format"])
    assert derived.total() == tracker.peak


@pytest.mark.parametrize("name", ["qwen3", "llama", "gpt2"])
def test_a_cache_changes_no_token(name):
    model = shape(name)
    net, ids = built(model, "fp32"), torch.randint(model.vocab, (2, 9))
    plain = ids
    with torch.no_grad():
        for _ in range(12):
            plain = torch.cat((plain, net(plain)[:, -1].argmax(-1, keepdim=True)), -1)
    for cache in (Cache(model, 2, 20), GrowingCache(model, 2)):
        assert torch.equal(generate(net, ids, cache, tokens=12), plain)
        assert cache.length == 20


def test_only_the_cache_differs_between_two_tokens():
    model = Model.preset("llama-3-8b")
    one, two = (decode(model, batch=4, tokens=n, cache="growing") for n in (1000, 1001))
    # At the peak of each the cache of the last layer grows: one tensor of it is there twice.
    step = 4 * per_token(model.layers, kv_heads=model.kv_heads, head_dim=model.head_dim)
    step += growth(model.kv_heads, head_dim=model.head_dim, batch=4, tokens=2)
    assert [b.derived - a.derived for a, b in zip(one.rows, two.rows, strict=True)] == [
        step if term == "kv_cache" else 0 for term in one
    ]


def test_logits_of_the_last_token_alone():
    model = Model.preset("llama-3-8b")
    every = moments(model, 1, 8192)[-1].logits
    last = moments(model, 1, 8192, cache="growing")[-1].logits
    assert (every, last) == (8192 * 128256 * 2, 128256 * 2)
    assert moments(model, 1, 8192, cache="growing")[-1].kv_cache == kv_cache(
        32, kv_heads=8, head_dim=128, batch=1, tokens=8192
    )


def test_no_torch():
    code = "import sys, memlab.step.closed.own_calls; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_wrong_input_fails_by_name():
    model = shape("llama")
    neox = model.__class__(family="gpt_neox", layers=1, d_model=8, d_ff=8, heads=2, vocab=9)
    with pytest.raises(ValueError, match="family 'gpt_neox' is not known here; known: llama"):
        prefill(neox, batch=1, tokens=4)
    with pytest.raises(ValueError, match="gated=False is not known here; in the llama family it"):
        prefill(model.replace(gated=False), batch=1, tokens=4)
    with pytest.raises(ValueError, match="format='int8' is not one to compute in; known: fp32"):
        prefill(model, batch=1, tokens=4, format="int8")
    with pytest.raises(ValueError, match="unknown cache 'paged'; known: none, preallocated"):
        prefill(model, batch=1, tokens=4, cache="paged")
    with pytest.raises(ValueError, match="tokens=0; a whole number above zero"):
        prefill(model, batch=1, tokens=0)
    with pytest.raises(ValueError, match="T=65 is above the 64 positions of llama"):
        decode(model, batch=1, tokens=64)
    with pytest.raises(ValueError, match="capacity=4 is below the 5 tokens"):
        decode(model, batch=1, tokens=4, capacity=4)
    with pytest.raises(ValueError, match="a growing cache has none"):
        decode(model, batch=1, tokens=4, cache="growing", capacity=9)
    with pytest.raises(ValueError, match="cache='none': without one"):
        decode(model, batch=1, tokens=4, cache="none")
    net, ids = built(model, "fp32"), torch.zeros(1, 4, dtype=torch.long)
    with pytest.raises(ValueError, match="4 tokens for a cache with room for 3"):
        read(net, ids, Cache(model, 1, 3))
    cache = GrowingCache(model, 1)
    read(net, ids, cache)
    with pytest.raises(ValueError, match="4 tokens after 4: read the prompt at once"):
        read(net, ids, cache)
    with pytest.raises(ValueError, match="70 tokens; the model has 64 positions"):
        read(net, torch.zeros(1, 70, dtype=torch.long), GrowingCache(model, 1))
