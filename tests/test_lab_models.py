"""TinyGPT and TinyLlama: the shapes of Model, and the logits of transformers."""

import re
from collections import Counter

import pytest
import torch

from memlab import Model, presets
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.measure import Saved

IDS_BT = torch.tensor([[1, 5, 3, 250, 7, 7, 0, 12], [9, 8, 7, 6, 5, 4, 3, 2]])
LLAMA = dict(layers=2, d_model=32, d_ff=48, heads=4, kv_heads=2, vocab=256, positions=16)
GPT = dict(family="gpt2", layers=2, d_model=32, d_ff=128, heads=4, vocab=256, positions=16)

# Where memlab's name for a part differs from that of transformers.
LLAMA_NAMES = {
    "model.embed_tokens": "embedding",
    "model.norm": "final_norm",
    "model.layers": "layers",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "feed_forward_norm",
    "self_attn": "attention",
    "mlp": "feed_forward",
    "o_proj": "out",
    "_proj": "",
}
GPT_NAMES = {
    "transformer.wte": "embedding",
    "transformer.wpe": "positions",
    "transformer.ln_f": "final_norm",
    "transformer.h": "layers",
    "ln_1": "attention_norm",
    "ln_2": "feed_forward_norm",
    "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.out",
    "mlp.c_fc": "feed_forward.up",
    "mlp.c_proj": "feed_forward.down",
}


def on_meta(model):
    with torch.device("meta"):
        return (TinyGPT if model.family == "gpt2" else TinyLlama)(model)


def kinds(module):
    """Shapes by kind of tensor, named as Model.tensors() names them, with their counts."""
    short = re.compile(r"\.\d+\b|\.weight$")
    return Counter((short.sub("", n), tuple(p.shape)) for n, p in module.named_parameters())


OURS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


@pytest.mark.sample(19)
@pytest.mark.parametrize("name", [n for n in presets() if Model.preset(n).family in OURS])
def test_presets_have_the_tensors_of_the_model(name):
    model = Model.preset(name)
    module = on_meta(model)
    # Conv1D stores [inputs, outputs]; nn.Linear, used here, the transpose.
    turn = model.conv1d
    expected = Counter()
    for tensor in model.tensors():
        shape = tensor.shape[::-1] if turn and tensor.linear else tensor.shape
        expected[tensor.name, shape] += tensor.copies
    assert kinds(module) == expected
    assert sum(p.numel() for p in module.parameters()) == model.parameter_count


@pytest.mark.parametrize(
    "model",
    [
        Model(**LLAMA),
        Model(**LLAMA, tied=True, head_dim=10, qk_norm=True),
        Model(**LLAMA, out_bias=True, ff_bias=True, qkv_bias=True),
        Model(**LLAMA | {"family": "qwen2", "kv_heads": 4}),
        Model(**LLAMA | {"family": "mistral", "kv_heads": 1}),
        Model(**GPT, tied=False),
        Model(**GPT, head_dim=6),
    ],
    ids=repr,
)
def test_variants_have_the_parameters_of_the_model(model):
    assert sum(p.numel() for p in on_meta(model).parameters()) == model.parameter_count


def renamed(state, names):
    """A transformers state dict under memlab's names."""

    def rename(key):
        for theirs, ours in names.items():
            key = key.replace(theirs, ours)
        return key

    return {rename(key): value for key, value in state.items()}


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_tiny_llama_computes_what_transformers_computes(family, tied):
    import transformers

    model = Model(**LLAMA, family=family, tied=tied, head_dim=8)
    kind = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[family]
    config = getattr(transformers, f"{kind}Config")(
        num_hidden_layers=2,
        hidden_size=32,
        intermediate_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        vocab_size=256,
        max_position_embeddings=16,
        tie_word_embeddings=tied,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    check_against(
        getattr(transformers, f"{kind}ForCausalLM")(config), TinyLlama(model), LLAMA_NAMES
    )


@pytest.mark.parametrize("tied", [True, False])
def test_tiny_gpt_computes_what_transformers_computes(tied):
    import transformers

    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=4, vocab_size=256, n_positions=16, tie_word_embeddings=tied
    )
    check_against(
        transformers.GPT2LMHeadModel(config).eval(),  # no dropout
        TinyGPT(Model(**GPT, tied=tied)),
        GPT_NAMES,
        transposed=("qkv.weight", "out.weight", "up.weight", "down.weight"),
    )


def check_against(theirs, ours, names, transposed=()):
    torch.manual_seed(0)
    for parameter in theirs.parameters():  # large enough that a wrong part would show
        torch.nn.init.normal_(parameter, std=0.3)
    state = renamed(theirs.state_dict(), names)
    for name in state:
        if name.endswith(transposed or (" ",)):
            state[name] = state[name].T.contiguous()
    ours.load_state_dict(state, strict=True)
    with torch.no_grad():
        expected = theirs(IDS_BT, labels=IDS_BT)
        # fp32 sums in another order (one fused kernel or several): a few units in the 6th digit.
        torch.testing.assert_close(ours(IDS_BT), expected.logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(ours(IDS_BT, IDS_BT), expected.loss, rtol=1e-4, atol=1e-4)


def test_each_token_sees_only_the_past():
    for module in (TinyLlama(Model(**LLAMA)), TinyGPT(Model(**GPT))):
        changed = IDS_BT.clone()
        changed[:, 5:] += 1
        before, after = module(IDS_BT), module(changed)
        torch.testing.assert_close(before[:, :5], after[:, :5])
        assert not torch.allclose(before[:, 5:], after[:, 5:])


def test_dropout_is_off_unless_asked_for():
    module = TinyGPT(Model(**GPT))
    assert torch.equal(module(IDS_BT), module(IDS_BT))
    noisy = TinyGPT(Model(**GPT), dropout=0.5)
    assert not torch.equal(noisy(IDS_BT), noisy(IDS_BT))
    noisy.eval()
    assert torch.equal(noisy(IDS_BT), noisy(IDS_BT))


@pytest.mark.parametrize(
    "kind, model, more", [(TinyLlama, LLAMA, {}), (TinyGPT, GPT, {"dropout": 0.5})]
)
def test_a_checkpointed_model_learns_the_same_and_keeps_less(kind, model, more):
    """Layers are computed again in backward, with the same random numbers."""
    kept, gradients = [], []
    for again in (False, True):
        torch.manual_seed(0)
        module = kind(Model(**model), checkpoint=again, **more)
        with Saved(exclude=module) as saved:
            loss = module(IDS_BT, IDS_BT)
        loss.backward()
        kept.append(saved.bytes)
        gradients.append([parameter.grad for parameter in module.parameters()])
    assert kept[1] < kept[0] / 2
    for plain, again in zip(*gradients, strict=True):
        assert torch.equal(plain, again)


def test_rotary_tables_are_not_in_a_checkpoint():
    module = TinyLlama(Model(**LLAMA))
    assert [name for name, _ in module.named_buffers()] == ["cos_TH", "sin_TH"]
    assert not any("TH" in name for name in module.state_dict())


@pytest.mark.parametrize(
    "build, model, message",
    [
        (TinyLlama, Model.preset("tiny-gpt"), "family 'gpt2' is not built here; known: llama,"),
        (TinyGPT, Model.preset("tiny-llama"), "family 'llama' is not built here; known: gpt2"),
        (TinyLlama, Model(**LLAMA, gated=False), "gated=False is not built here"),
        (TinyLlama, Model(**LLAMA, norm="layernorm"), "norm='layernorm' is not built here"),
        (TinyGPT, Model(**GPT, embed_dim=16), "embed_dim=16 is not built here"),
        (TinyGPT, Model(**GPT, position_offset=2), "position_offset=2 is not built here"),
        (TinyGPT, Model(**GPT, kv_heads=2), "K=2: GPT-2 has a key/value head for each of N=4"),
    ],
)
def test_other_models_are_refused_by_name(build, model, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build(model)
