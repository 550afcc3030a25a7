"""Padded and packed rows, for real: the mask that SDPA is given, what a loop holds beside it."""

from pathlib import Path

import pytest
from compare import is_real
from mixtures import MIXTURES, random_mixtures
from more_families import MORE, drawn
from real_steps import Question, random_configs, real_step, simulated
from real_trainers import derived, trained
from test_step_cuda import on_cuda

from memlab import Model, Run, estimate
from memlab.adapters import Prompt
from memlab.families import proven
from memlab.lab.trace_run import trace_run
from memlab.step import simulate
from memlab.units import text

ROOT = Path(__file__).resolve().parent.parent
SHAPE = {
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
    "max_position_embeddings": 64,
}
NEAR = {"sliding_window": 16}
SOME_NEAR = NEAR | {"use_sliding_window": True, "max_window_layers": 1}
MODEL = Model.from_config({"model_type": "llama"} | SHAPE | {"head_dim": 16})


def question(family, precision, texts, config=None, **said):
    shape = {"model_type": family} | SHAPE | (config or {})
    return Question(shape, precision, Run.cpu(batch=3, tokens=40, texts=texts, **said))


@pytest.mark.sample(9)
@pytest.mark.parametrize("texts", ["padded", "packed"])
@pytest.mark.parametrize(
    ("family", "precision", "config", "said"),
    [
        ("llama", "fp32", {}, {"loop": "keeps-outputs", "dropout": 0.1}),
        ("llama", "bf16", {}, {"checkpoint": "block"}),
        ("qwen2", "autocast-bf16", {}, {"attention": "eager"}),
        ("mistral", "bf16", NEAR, {"micro_batches": 2}),
        ("qwen3", "autocast-bf16", SOME_NEAR, {}),
        ("gemma", "bf16", {}, {}),
        ("olmo2", "autocast-bf16", {}, {"attention": "eager"}),
        ("granite", "bf16", {}, {}),
    ],
    ids=str,
)
def test_a_step_with_a_mask_is_counted_to_the_byte(texts, family, precision, config, said):
    step = question(family, precision, texts, config, **said)
    real, found = real_step(step), simulated(step)
    assert found.peak.bytes == real.peak.bytes
    assert found.peak.first_step_bytes == real.first_peak.bytes
    assert found.held == real.held


# Those with parts of their own, with dropout too; every one of them both padded and packed.
GPTS = ("gpt2", "opt", "gpt_neox")
OF_GPTS = [
    step.replace(texts=texts, tokens=min(step.run.tokens, 12), attention=attention)
    for seed, texts, attention in (
        (71, "padded", "sdpa"),
        (72, "packed", "sdpa"),
        (73, "padded", "eager"),
        (74, "packed", "eager"),
    )
    for step in random_configs(3, seed, families=GPTS, checkpoints=("none", "block"))
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("step", OF_GPTS, ids=str)
def test_a_step_of_the_gpts_is_counted_to_the_byte(step):
    is_real(step)


def test_packed_texts_of_opt_see_each_other():
    """Its mask is made without the positions: what transformers' own code gives a later text."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    shape = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "vocab_size": 50}
    heard = {}
    for family, own in (("opt", {"ffn_dim": 32, "word_embed_proj_dim": 32}), ("gpt_neox", {})):
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(family, **shape, **own)
        module = transformers.AutoModelForCausalLM.from_config(config).eval()
        positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])
        first, second = torch.arange(8)[None], torch.arange(8)[None].clone()
        second[0, 0] = 40  # of the first text alone
        said = [
            module(ids, position_ids=positions, use_cache=False).logits for ids in (first, second)
        ]
        heard[family] = not torch.equal(said[0][0, 4:], said[1][0, 4:])
    assert heard == {"opt": True, "gpt_neox": False}


# Every family whose rows can have a mask, a random model of each: padded, then packed, in turn.
OTHERS = [
    step.replace(texts=("padded", "packed")[i % 2], tokens=min(step.run.tokens, 40))
    for i, step in enumerate([*drawn(len(MORE), 21), *random_mixtures(len(MIXTURES), 21)])
]


@pytest.mark.sample(12)
@pytest.mark.parametrize("step", OTHERS, ids=str)
def test_a_step_of_every_other_family_is_counted_to_the_byte(step):
    is_real(step)


@pytest.mark.sample(7)
@pytest.mark.parametrize("step", [*on_cuda([*OTHERS[::2], *OF_GPTS[:3], *OF_GPTS[6:9]])], ids=str)
def test_cudas_graph_of_padded_rows_is_the_traced_one(step):
    run = step.run.replace(backend="cuda", micro_batches=1)
    recipe = "autocast" if step.precision.startswith("autocast") else step.precision
    traced, found = trace_run(step.model, recipe, run), simulate(step.model, recipe, run)
    assert found.held == traced.held
    assert found.peak.bytes == traced.peak


def test_every_family_that_is_described_is_tried():
    tried = {"llama", "mistral", "qwen2", "qwen3", "gemma", *MORE, *MIXTURES, *GPTS}
    assert tried == set(proven("texts"))


@pytest.mark.parametrize("texts", ["padded", "packed"])
def test_masks_are_made_as_the_library_makes_them(texts):
    """Every allocation of the step, one after the other, in bytes and in what is held then."""
    from real_steps import allocations

    derived, real = allocations(question("qwen3", "bf16", texts, SOME_NEAR))
    assert derived == real


@pytest.mark.sample(2)
@pytest.mark.parametrize("recipe", ["bf16", "fp32", "autocast"])
def test_cudas_graph_has_another_kernel_for_a_mask(recipe):
    for checkpoint in ("none", "block"):
        run = Run(batch=2, tokens=48, texts="padded", checkpoint=checkpoint)
        traced, found = trace_run(MODEL, recipe, run), simulate(MODEL, recipe, run)
        assert found.peak.bytes == traced.peak
        assert found.held == traced.held
    biased = {
        texts: any(
            row.kept_by.endswith("attn_bias")
            for row in simulate(MODEL, recipe, Run(batch=2, tokens=48, texts=texts)).saved.rows
        )
        for texts in ("full", "padded")
    }
    assert biased == {"full": False, "padded": True}


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore")  # of the libraries, about each other
@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("fp32", {"loop": "trainer", "texts": "padded", "micro_batches": 2}),
        ("autocast", {"loop": "trainer", "texts": "packed"}),
        ("bf16", {"loop": "sft", "checkpoint": "none", "texts": "padded", "completion": 30}),
        ("fp32", {"loop": "sft", "checkpoint": "none", "texts": "packed", "micro_batches": 2}),
        ("fp32", {"loop": "dpo", "checkpoint": "none", "texts": "padded", "completion": 20}),
    ],
    ids=str,
)
def test_a_programs_own_rows_take_what_is_derived(tmp_path, precision, said):
    run = Run.cpu(batch=3, tokens=32, **said)
    assert trained(precision, run, tmp_path) == derived(precision, run)


def test_each_layer_keeps_the_mask_as_numbers():
    full = Run(batch=2, tokens=48)
    kept = {
        texts: simulate(MODEL, "bf16", full.replace(texts=texts)).rows["activations"]
        for texts in ("full", "padded", "packed")
    }
    repeated = 2 * 2 * 48 * (4 - 2) * 16 * 2  # keys and values of two more heads
    widths = 2 * 4 * 48 * 4  # the log-sum-exp of each query, padded to a multiple of 32
    mask = 2 * 48 * 48 * 2
    wide = 2 * 4 * 64 * 4
    seed = 8  # flash keeps two numbers of its random state where the other one keeps one
    assert kept["padded"] - kept["full"] == 3 * (mask + repeated + wide - widths - seed)
    angles = 2 * (96 - 48) * 16 * 2  # cosines and sines, of a row twice as long
    longer = 3 * (96 * 96 * 2 - mask + 4 * 96 * 4 - wide) + angles
    assert kept["packed"] - kept["padded"] == longer


def test_what_rows_cannot_be_is_named():
    for said, words in (
        ({"loop": "nanogpt"}, "loop='nanogpt'"),
        ({"loop": "grpo"}, "loop='grpo'"),
        ({"loss": "chunked"}, "loss='chunked'"),
        ({"texts": "packed", "loop": "dpo"}, "loop='dpo'"),
        ({"texts": "packed", "loop": "sft", "completion": 4}, "completion=4"),
        ({"texts": "ragged"}, "known: full, padded, packed"),
        ({"phase": "prefill"}, "texts='padded' is for training"),
    ):
        with pytest.raises(ValueError, match=words):
            Run(**{"texts": "padded", "tokens": 16} | said)
    run = Run(batch=2, tokens=16, texts="padded")
    with pytest.raises(ValueError, match="of packed texts flash_attention_2"):
        simulate(MODEL, "bf16", run.replace(attention="flash"))
    with pytest.raises(ValueError, match="not described for memlab llama"):
        simulate(MODEL, "bf16", run.replace(implementation="memlab"))
    with pytest.raises(ValueError, match="beside prompt tuning"):
        simulate(MODEL, "bf16", run.replace(adapter=Prompt(4)))
    with pytest.raises(ValueError, match="texts='packed' cannot be traced"):
        trace_run(MODEL, "bf16", run.replace(texts="packed"))


def test_the_page_repeats_what_is_derived():
    page = " ".join((ROOT / "book" / "loops.md").read_text(encoding="utf-8").split())
    model, run = Model.preset("Llama-3.2-1B"), Run(batch=4, tokens=1024)
    full, padded, packed = (
        text(estimate(model, "bf16", run.replace(texts=texts)).total())
        for texts in ("full", "padded", "packed")
    )
    assert f"1,024 tokens take {full} when they are full and {padded} when one" in page
    assert f"they take {packed}, because the mask grows" in page
    flash = run.replace(texts="packed", attention="flash_attention_2")
    told = text(estimate(model, "bf16", flash).total())
    assert f"there is no mask, and the packed row takes {told}" in page
