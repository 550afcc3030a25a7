"""Model: construction, copies, presets and the one line that describes it."""

import pytest

from memlab.model import Model, presets

SHAPE = {"layers": 2, "d_model": 64, "d_ff": 96, "heads": 32, "vocab": 100}


def test_defaults_are_filled_in():
    model = Model(**SHAPE)
    assert (model.name, model.family, model.kv_heads, model.head_dim) == ("llama", "llama", 32, 2)
    assert not model.tied and model.gated and model.norm == "rmsnorm"
    assert hash(model) == hash(Model(**SHAPE))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"kv_heads": 5}, ValueError, r"N=32 is not a multiple of K=5 \(query heads per"),
        ({"kv_heads": 0}, ValueError, "kv_heads=0; at least 1"),
        ({"d_model": 100}, ValueError, "D=100 is not a multiple of N=32"),
        ({"layers": 0}, ValueError, "layers=0; at least 1"),
        ({"vocab": -3}, ValueError, "vocab=-3 is negative"),
        ({"heads": True}, TypeError, "heads=True is a bool"),
        ({"kv_heads": True}, TypeError, "kv_heads=True is a bool"),
        ({"d_ff": 96.0}, TypeError, "d_ff=96.0 is a float"),
        ({"head_dim": "2"}, TypeError, "head_dim='2' is a str"),
        ({"tied": 1}, TypeError, "tied=1 is a int; a bool"),
        ({"norm": "batchnorm"}, ValueError, "unknown norm 'batchnorm'; known: rmsnorm"),
        ({"name": 7}, TypeError, "name=7 is a int"),
        ({"family": "t5"}, ValueError, "unknown family 't5'; known: arcee, cohere2"),
        ({"family": "gpt2"}, ValueError, "positions is missing: gpt2 learns one"),
        ({"n_groups": 4}, TypeError, "n_groups"),
    ],
)
def test_impossible_shapes_are_named(changes, error, message):
    with pytest.raises(error, match=message):
        Model(**{**SHAPE, **changes})


def test_a_missing_field_is_named():
    with pytest.raises(TypeError, match="vocab"):
        Model(layers=2, d_model=64, d_ff=96, heads=32)  # type: ignore[call-arg]


def test_replace_lets_derived_fields_follow():
    gpt2 = Model.preset("gpt2")
    small = gpt2.replace(d_model=96, heads=6)
    assert (small.kv_heads, small.head_dim, small.embed_dim) == (6, 16, 96)
    assert small.name == small.replace(layers=1).name == "gpt2 (changed)"
    assert gpt2.replace(layers=1, name="short").name == "short"
    assert Model.preset("qwen3-0.6b").replace(d_model=512).head_dim == 128, "chosen, so kept"
    with pytest.raises(ValueError, match="family sets all other flags"):
        gpt2.replace(family="llama")
    with pytest.raises(ValueError, match="N=12 is not a multiple of K=5"):
        gpt2.replace(kv_heads=5)


def test_presets_are_listed_and_described_in_one_line():
    assert {"gpt2", "llama-3-8b", "nanochat-d26", "tiny-llama"} < set(presets())
    assert str(Model.preset("llama-3-8b")) == (
        "Model llama-3-8b, llama family: 8,030,261,248 parameters, "
        "L=32 D=4096 F=14336 N=32 K=8 H=128 V=128256, untied"
    )
    with pytest.raises(ValueError, match="unknown preset 'gpt5'; known: tiny-gpt, tiny-llama"):
        Model.preset("gpt5")
    with pytest.raises(ValueError, match="unknown preset 5"):
        Model.preset(5)
    assert Model.preset("Llama-3-8B") == Model.preset("llama-3-8b")


def test_a_slip_of_the_keyboard_is_no_width():
    with pytest.raises(ValueError, match="d_ff=10,000,000,000,000; at most 1,000,000,000 are"):
        Model.preset("tiny-llama").replace(d_ff=10**13)


def test_a_slip_of_the_keyboard_is_no_depth():
    deep = Model.preset("tiny-llama").replace(layers=1000)
    assert deep.parameter_count > 10**8
    for layers in (1001, 10**9, 2**70):
        with pytest.raises(ValueError, match=f"layers={layers:,} is more than 1,000"):
            deep.replace(layers=layers)


def test_tiny_models_sit_on_both_sides_of_4096_values():
    for name in ("tiny-gpt", "tiny-llama"):
        model = Model.preset(name)
        assert all((t.numel >= 4096) == (len(t.shape) > 1) for t in model.tensors())
