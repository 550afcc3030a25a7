"""Calls in inference: simulated bytes against real calls of transformers' models, to the byte."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from real_inference import PHASES, autocast, real_call, traced_call  # noqa: E402
from real_steps import (  # noqa: E402
    FAMILIES,
    Question,
    build,
    deep,
    quiet,
    random_configs,
)

from memlab import Model, Recipe, Run  # noqa: E402
from memlab.base.gc_paused import no_garbage  # noqa: E402
from memlab.cli import main  # noqa: E402
from memlab.lab.train import one_thread  # noqa: E402
from memlab.measure.profiled import profiled  # noqa: E402
from memlab.step.calls import Reader, decode, prefill  # noqa: E402
from memlab.terms.kv_cache import growth, kv_cache, per_token  # noqa: E402

# One token less than a step of training has: the last position is left for the token after it.
DRAWN = [
    Question(
        step.config,
        step.precision,
        Run.cpu(
            phase="prefill",
            batch=step.run.batch,
            tokens=step.run.tokens - 1,
            attention=step.run.attention,
        ),
    )
    for step in random_configs(deep(27), 71, dropouts=(0.0,))
]


def simulated(step, *, every_layer=False):
    call = decode if step.run.phase == "decode" else prefill
    return call(step.model, step.recipe, step.run, every_layer=every_layer)


def each_phase(step, phases=PHASES):
    return [step.replace(**PHASES[phase]) for phase in phases]


def differences(step, real):
    """What a simulated call gets wrong, to the byte, at every allocation of the real one."""
    found, whole = simulated(step), simulated(step, every_layer=True)
    start = whole.log.marks["before"]
    compared = {
        "before": (found.held["before_call"], real.before),
        "after": (found.held["after_call"], real.after),
        "peak": (found.peak.bytes, real.peak),
        "peak, each layer": (whole.peak.bytes, real.peak),
        "kv_cache": (found.rows["kv_cache"], real.kept["kv_cache"]),
        "logits": (found.rows["logits"], real.kept["logits"]),
        "each allocation": (
            [(size, total) for _, size, total in whole.log.events[start:] if size > 0],
            real.totals,
        ),
    }
    for name in ("weights", "buffers", "inputs", "kv_cache", "logits"):
        compared[f"{name} at the peak"] = (
            found.peak.contents.get(name, 0),
            real.contents.get(name, 0),
        )
    rest = sum(found.peak.contents.get(name, 0) for name in ("activations", "other"))
    compared["the rest at the peak"] = (rest, real.contents.get("other", 0))
    return [name for name, (ours, theirs) in compared.items() if ours != theirs]


@pytest.mark.sample(14)
@pytest.mark.parametrize("step", DRAWN, ids=str)
def test_random_configs_are_exact(step):
    with quiet():
        module = build(step)
    for call in each_phase(step):
        assert differences(call, real_call(call, module)) == [], call


def test_the_configs_reach_every_option():
    assert {step.family for step in DRAWN} == set(FAMILIES)
    assert len({step.precision for step in DRAWN}) > 1
    for option in ("attention", "batch", "tokens"):
        assert len({getattr(step.run, option) for step in DRAWN}) > 1, option
    shared = {model.kv_heads < model.heads for model in map(Model.from_config, configs())}
    tied = {model.tied for model in map(Model.from_config, configs())}
    assert shared == tied == {True, False}


def configs():
    return [step.config for step in DRAWN]


def small(family, **keys):
    """Two layers of four heads, in the keys of the family."""
    sizes = {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4}
    if family == "gpt2":
        sizes = {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_inner": 80, "n_positions": 32}
    else:
        sizes["ffn_dim" if family == "opt" else "intermediate_size"] = 80
        sizes["max_position_embeddings"] = 32
    if family not in ("gpt2", "opt", "gpt_neox"):
        sizes |= {"num_key_value_heads": 2, "head_dim": 16}
    config = {"model_type": family, **sizes, "vocab_size": 61, **keys}
    return Question(config, "fp32", Run.cpu(phase="prefill", tokens=9, batch=3))


# What the configs above leave to chance.
CORNERS = {
    "a prompt of one token": [small(family).replace(tokens=1) for family in FAMILIES],
    "one sequence": [small(family).replace(batch=1) for family in FAMILIES],
    "many layers": [small("gpt2", n_layer=9)]
    + [small(family, num_hidden_layers=9) for family in FAMILIES if family != "gpt2"],
    "one head": [small("gpt2", n_head=1), small("opt", num_attention_heads=1)],
    "one key/value head": [small(f, num_key_value_heads=1) for f in ("llama", "qwen3", "gemma")],
    "no window": [small("mistral", sliding_window=None)],
    "just inside the window": [small("mistral", sliding_window=11)],
    "norm after": [small("opt", do_layer_norm_before=False, word_embed_proj_dim=24)],
    "sequential": [small("gpt_neox", use_parallel_residual=False)],
    "dropout is for training": [small("llama", attention_dropout=0.1), small("opt", dropout=0.2)],
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_are_exact(corner):
    variants = [("eager", "autocast-bf16"), ("sdpa", "bf16"), ("eager", "fp32")]
    for i, step in enumerate(CORNERS[corner]):
        for attention, precision in (variants[i % 3], variants[(i + 1) % 3]):
            drawn = step.replace(attention=attention, precision=precision)
            with quiet():
                module = build(drawn)
            for call in each_phase(drawn, ("prefill", "decode")):
                assert differences(call, real_call(call, module)) == [], call


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_one_byte_more_anywhere_is_noticed(family, monkeypatch):
    step = small(family).replace(attention="eager", precision="autocast-bf16")
    with quiet():
        module = build(step)
    for call in each_phase(step, ("prefill", "decode")):
        real = real_call(call, module)
        events = simulated(call, every_layer=True).log.events
        made = {r.op for r, size, _ in events if size > 0 and r.category != "weights"}
        for op in sorted(made):
            with monkeypatch.context() as patch:
                patch.setattr(Reader, "new", one_byte_more(op, Reader.new))
                assert differences(call, real), f"{op} in {call}"


def one_byte_more(op, new):
    def changed(self, name, *arguments):
        made = new(self, name, *arguments)
        if name == op:
            made.record.bytes += 1
            self.log.note(made.record, 1)
        return made

    return changed


@pytest.mark.parametrize("precision", ["fp32", "bf16", "autocast-bf16"])
def test_inference_mode_differs_only_under_autocast(precision):
    """No mode sees inside its operators, so this is what the allocator was asked for."""
    step = small("llama").replace(precision=precision)
    with quiet():
        module = build(step).eval()
    ids = torch.ones(step.run.batch, step.run.tokens, dtype=torch.long)
    asked, peaks = {}, {}
    for mode in (torch.no_grad, torch.inference_mode):
        with one_thread(), quiet(), no_garbage(), mode(), profiled() as seen:
            with autocast(step):
                cache = module(ids, use_cache=True).past_key_values
            with autocast(step):
                module(ids[:, :1], past_key_values=cache, use_cache=True)
            del cache
        asked[mode], peaks[mode] = seen.changes, seen.peak
    if precision == "autocast-bf16":
        # No copy of a weight is kept there, so what is narrow at once is far less.
        assert peaks[torch.inference_mode] < peaks[torch.no_grad]
    else:
        assert asked[torch.inference_mode] == asked[torch.no_grad]


@pytest.mark.parametrize("family", FAMILIES)
def test_under_inference_mode_autocast_forgets(family):
    # One sequence and eager attention: no operator makes a copy that the tracker cannot see.
    step = small(family).replace(batch=1, attention="eager", precision="autocast-bf16")
    with quiet():
        module = build(step)
    for call in each_phase(step):
        quick = call.replace(inference_mode=True)
        real, found = real_call(quick, module), simulated(quick)
        assert found.peak.bytes == real.peak < simulated(call).peak.bytes, call
        assert found.held == {"before_call": real.before, "after_call": real.after}


def shared_in_fp32(step):
    """Heads in fp32 that share keys: the one call on CUDA that is refused."""
    model = step.model
    shared = model.kv_heads < model.heads
    return shared and step.precision == "fp32" and step.run.attention == "sdpa"


@pytest.mark.parametrize("step", [s for s in DRAWN if shared_in_fp32(s)][:2], ids=str)
def test_shared_heads_in_fp32_on_cuda_are_refused(step):
    with pytest.raises(ValueError, match="shared key/value heads in fp32 on cuda"):
        simulated(step.replace(phase="decode", backend="cuda"))


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "step", [s for s in DRAWN[::2] + DRAWN[1::4] if not shared_in_fp32(s)], ids=str
)
def test_on_cuda_a_call_is_the_traced_one(step):
    with quiet():
        module = build(step)
    for call in each_phase(step.replace(backend="cuda")):
        real, found = traced_call(call, module), simulated(call)
        assert found.held == {"before_call": real.before, "after_call": real.after}, call
        assert found.peak.bytes == real.peak, call
        for name in ("kv_cache", "logits"):
            assert found.rows[name] == real.kept[name]
            assert found.peak.contents.get(name, 0) == real.contents.get(name, 0)


def test_what_the_cache_holds():
    model, L, K, H = Model.preset("llama-3-8b"), 32, 8, 128
    for recipe, format in (("fp32", "fp32"), ("bf16", "bf16"), ("autocast", "fp32")):
        one = prefill(model, recipe, Run.cpu(batch=4, tokens=1000))
        assert one.rows["kv_cache"] == kv_cache(
            L, kv_heads=K, head_dim=H, batch=4, tokens=1000, format=format
        )
        assert one.per_token == 4 * per_token(L, kv_heads=K, head_dim=H, format=format)
        found = decode(model, recipe, Run.cpu(batch=4, tokens=1000))
        assert found.held["after_call"] - found.held["before_call"] == (
            found.per_token + found.rows["logits"]
        )
    # At the peak of a token the keys or the values of the last layer are there twice.
    bf16 = decode(model, "bf16", Run.cpu(batch=4, tokens=1000)).peak
    assert bf16.contents["kv_cache"] == kv_cache(
        L, kv_heads=K, head_dim=H, batch=4, tokens=1001
    ) + growth(K, head_dim=H, batch=4, tokens=1001)


def test_learned_positions_let_autocast_narrow_the_cache():
    model = Model.preset("gpt2")
    found = prefill(model, "autocast", Run.cpu(batch=1, tokens=100))
    assert found.rows["kv_cache"] == kv_cache(
        12, kv_heads=12, head_dim=64, batch=1, tokens=100, format="bf16"
    )


def test_the_last_logits_alone():
    model = Model.preset("llama-3-8b")
    every, last = (
        prefill(model, "bf16", Run.cpu(phase="prefill", batch=2, tokens=500, logits=which))
        for which in ("all", "last")
    )
    assert every.rows["logits"] == 2 * 500 * 128256 * 2 and every.peak.moment == "logits"
    assert last.rows["logits"] == 2 * 128256 * 2 and last.peak.moment == "forward"


def test_the_allocator_takes_a_call():
    model = Model.preset("qwen3-0.6b")
    whole = decode(model, "bf16", Run(batch=2, tokens=300), every_layer=True)
    replay = whole.replay()
    assert whole.peak.bytes <= replay.peak_allocated <= replay.peak_reserved
    with pytest.raises(ValueError, match="layers are missing"):
        decode(model, "bf16", Run.cpu(batch=2, tokens=300)).replay()


def test_a_call_prints_itself():
    found = decode(Model.preset("gpt2"), "bf16", Run.cpu(batch=1, tokens=9))
    assert "kv_cache" in str(found) and "peak (" in str(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("phase", PHASES)
def test_the_shell_says_the_same(phase, tmp_path, capsys):
    step = DRAWN[3].replace(**PHASES[phase])
    (tmp_path / "config.json").write_text(json.dumps(step.config))
    told = {"batch": step.run.batch, "tokens": step.run.tokens, "precision": step.precision}
    told |= {"attention": step.run.attention, "backend": "cpu", **PHASES[phase]}
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    assert main(["estimate", str(tmp_path), *words, "--json"]) == 0
    said, real = json.loads(capsys.readouterr().out), real_call(step)
    assert said["held"] == {"before_call": real.before, "after_call": real.after}
    assert said["peak"]["bytes"] == real.peak == sum(said["peak"]["contents"].values())
    assert said["peak"]["first_step_bytes"] is None
    for name, size in real.kept.items():
        assert said["rows"][name] == size
    assert said["rows"]["gradients"] == said["rows"]["optimizer"] == 0
    new = step.run.batch * (1 if phase == "decode" else step.run.tokens)
    assert said["rows"]["other"] >= 8 * new  # the ids
    assert said["growth"]["per_token"] * step.run.tokens <= said["rows"]["kv_cache"]
    assert any("generate()" in line for line in said["leaves_out"])
    assert main(["estimate", str(tmp_path), *words]) == 0
    assert "each new token adds" in capsys.readouterr().out


def test_no_torch():
    code = (
        "import sys; from memlab.cli import main; "
        "main('estimate llama-3-8b --tokens 99 --phase decode'.split()); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("family", "keys", "more", "message"),
    [
        ("llama", {}, {"batch": 0}, "batch=0; at least 1 is needed"),
        ("llama", {}, {"tokens": 0}, "tokens=0; at least 1 is needed"),
        ("llama", {}, {"attention": "flash"}, "attention='flash' is CUDA's; on a CPU"),
        ("llama", {}, {"backend": "tpu"}, "backend='tpu' is not described; known: cuda, cpu"),
        ("gpt2", {"n_positions": 9}, {}, "10 tokens; gpt2 has 9 positions"),
        ("qwen3", {"head_dim": 264}, {}, "H=264 with shared key/value heads"),
        ("llama", {"hidden_act": "gelu"}, {}, "hidden_act='gelu' is not described"),
    ],
)
def test_what_is_not_described_is_named(family, keys, more, message):
    with pytest.raises(ValueError, match=message):
        simulated(small(family, **keys).replace(phase="decode", **more))


def test_recipes_that_no_call_has_are_named():
    with pytest.raises(ValueError, match="recipe 'fp16' .* is not described for a call"):
        prefill(
            Model.preset("gpt2"), Recipe(name="fp16", weights="fp16"), Run.cpu(batch=1, tokens=4)
        )
    with pytest.raises(ValueError, match="family 'nanochat' is not described"):
        prefill(Model.preset("nanochat-d26"), "bf16", Run.cpu(batch=1, tokens=4))
    with pytest.raises(ValueError, match="phase='train': real_steps.py runs steps"):
        real_call(small("gpt2").replace(phase="train"))
