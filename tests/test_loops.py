"""What the loops of libraries hold: transformers.Trainer and trl.SFTTrainer on a CPU, counted."""

from pathlib import Path

import pytest
import torch
from compare import allocates_as_real, is_real
from mixtures import LATER, random_mixtures
from more_families import drawn
from real_steps import deep, random_configs, simulated
from real_trainers import derived, trained
from test_step_cuda import on_cuda, other, traced

from memlab import Model, Recipe, Run, estimate
from memlab.adapters import Lora
from memlab.lab.models.common import next_token_loss
from memlab.lab.train import build
from memlab.measure import trace
from memlab.step import simulate
from memlab.units import text

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.sample(6)
@pytest.mark.filterwarnings("ignore")  # of the libraries, about each other
@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("fp32", {"loop": "nanogpt", "micro_batches": 2}),
        ("autocast", {"loop": "nanogpt", "clip": False}),
        ("fp32", {"loop": "trainer", "micro_batches": 2}),
        ("bf16", {"loop": "trainer", "checkpoint": "block"}),
        ("autocast", {"loop": "sft", "checkpoint": "none"}),
        ("fp32", {"loop": "sft", "micro_batches": 2, "checkpoint": "block"}),
        ("fp32", {"loop": "dpo", "checkpoint": "none", "micro_batches": 2, "completion": 20}),
        ("bf16", {"loop": "dpo", "checkpoint": "block"}),
        ("autocast", {"loop": "dpo", "checkpoint": "none", "completion": 9}),
        (
            "fp32",
            {"loop": "dpo", "checkpoint": "none", "reference": "precomputed", "micro_batches": 2},
        ),
        ("fp32", {"loop": "grpo", "checkpoint": "none", "micro_batches": 2, "completion": 12}),
        ("bf16", {"loop": "grpo", "checkpoint": "block", "completion": 20}),
        ("autocast", {"loop": "grpo", "checkpoint": "none", "reference": "model", "completion": 9}),
        ("autocast", {"loop": "dpo", "lora": Lora(4), "checkpoint": "block"}),
    ],
    ids=str,
)
def test_a_programs_own_loop_takes_what_is_derived(tmp_path, precision, said):
    run = Run.cpu(batch=3, tokens=32, **said)
    assert trained(precision, run, tmp_path) == derived(precision, run)


KEPT = {"loop": "keeps-outputs", "checkpoint": "none"}
WINDOWS = ("gemma3_text", "cohere2", "ministral", "smollm3")
OUTPUTS = [
    *random_configs(deep(9), 41, families=("llama", "gpt2", "opt", "gpt_neox", "gemma")),
    *random_configs(deep(6), 42, families=("qwen2", "mistral", "qwen3"), windows=True),
    *drawn(deep(4), 43, WINDOWS),
    *random_mixtures(deep(4), 44, families=("qwen3_moe", "gpt_oss", "deepseek_v3", "llama4_text")),
]
OUTPUTS = [step.replace(**KEPT, micro_batches=1 + i % 2) for i, step in enumerate(OUTPUTS)]
OUTPUTS.insert(2, OUTPUTS[0].replace(lora=Lora(4)))
OUTPUTS.insert(3, OUTPUTS[1].replace(frozen=("embedding", "attention")))
OUTPUTS.insert(4, OUTPUTS[1].replace(checkpoint="block"))
OUTPUTS.insert(5, OUTPUTS[0].replace(checkpoint="block", lora=Lora(4)))


@pytest.mark.sample(12)
@pytest.mark.parametrize("step", OUTPUTS, ids=str)
def test_an_output_that_is_kept_is_there_in_the_next_forward_pass(step):
    """With its keys and values: at every moment of both steps what is held, and of what."""
    _, derived = is_real(step)
    allocates_as_real(step)
    config = step.config | {"use_cache": False}
    without = simulate(Model.from_config(config), step.recipe, step.run)
    keys = derived.rows.get("kv_cache", 0)
    assert (keys > 0) == (step.run.checkpoint == "none")
    for moment in ("after_backward", "between_steps"):
        assert derived.held[moment] == without.held[moment] + keys


@pytest.mark.sample(6)
@pytest.mark.parametrize("step", [*on_cuda(OUTPUTS)], ids=str)
def test_on_cuda_it_is_the_traced_one(step):
    """Where its flash kernel gives gradients in the order of memory of keys and values.

    Allocation by allocation, but for those that a trace has otherwise in a plain step, too: norms,
    gradients that meet, what is written into a part, masks of chunks.
    """
    step = step.replace(micro_batches=1)
    real, found = traced(step), simulated(step.replace(backend="cuda"), every_layer=True)
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)
    if step.family in LATER:
        return
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    made = [(each.op, size) for each, size, _ in events if size > 0]
    there = [(e.op, e.bytes) for e in real.timeline if e.kind == "alloc" and e.bytes]
    mine, theirs = (
        [size for op, size in each if not other(op) and op not in ("add", "aten.add.Tensor")]
        for each in (made, there)
    )
    assert mine == theirs


def test_a_config_without_a_cache_is_believed():
    step = OUTPUTS[0]
    off = step.replace(config=step.config | {"use_cache": False})
    real, found = is_real(off)
    assert found.held != simulated(step).held and real.peak.contents.get("kv_cache", 0) == 0


def test_loops_are_asked_at_every_door():
    model = Model.preset("Llama-3.2-1B")
    plain = estimate(model, "bf16", Run(batch=4, tokens=1024)).total()
    trainer = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="trainer")).total()
    assert trainer - plain == 8 * 4 * 1024 + 4 * 4 + 2  # labels, numbers
    kept = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="keeps-outputs")).total()
    # Keys and values are those that attention keeps: there is no second set at the peak.
    assert kept - plain == 2 * 4 * 1024 * model.vocab
    nanogpt = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="nanogpt")).total()
    # X and Y of the next batch, beside the X that the graph holds; of two losses one is dropped.
    assert nanogpt - kept == 2 * 8 * 4 * 1024
    sft = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="sft", checkpoint="none")).total()
    assert sft < plain  # fp32 logits cost more than the head's gradient in fp32


def test_the_page_repeats_what_is_derived():
    page = " ".join((ROOT / "book" / "loops.md").read_text(encoding="utf-8").split())
    model = Model.preset("Llama-3.2-1B")
    pairs = estimate(model, "bf16", Run(batch=2, tokens=1024, loop="dpo", checkpoint="none"))
    rows = {row.term: row.derived for row in pairs.rows}
    alone = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="sft", checkpoint="none"))
    assert f"2 pairs of 1,024 tokens take {text(pairs.total())} where" in page
    assert f"`SFTTrainer` takes {text(alone.total())} with 4 sequences" in page
    assert f"the second model, {text(rows['reference'])} that" in page
    said = Run(batch=4, tokens=1024, loop="grpo", checkpoint="none", completion=256)
    after, judged = (
        estimate(model, "bf16", run).total() for run in (said, said.replace(reference="model"))
    )
    assert f"prompts of 768 take {text(after)}, a little less" in page and after < alone.total()
    assert f"the step takes {text(judged)}; it judges" in page
    # Its rotary frequencies, twice; and no count of labels.
    assert pairs.total() - alone.total() == rows["reference"] + 256 - 4


def test_what_a_reference_costs_depends_on_how_it_is_asked():
    model = Model.preset("Llama-3.2-1B")
    said = Run(batch=2, tokens=1024, loop="dpo", checkpoint="none")
    second = estimate(model, "bf16", said).total()
    numbers = estimate(model, "bf16", said.replace(reference="precomputed")).total()
    whole = 2 * model.parameter_count
    assert second - numbers == whole + 256 - 2 * 2 * 4  # rotary frequencies, two numbers a pair
    adapted = said.replace(lora=Lora(8))
    assert {row.term for row in estimate(model, "bf16", adapted).rows}.isdisjoint({"reference"})
    beside = estimate(model, "bf16", adapted.replace(reference="model"))
    assert {row.term: row.derived for row in beside.rows}["reference"] == whole
    short = estimate(model, "bf16", said.replace(completion=100)).total()
    assert short < second  # the head computes what is learned


def test_what_a_loop_cannot_be_is_named():
    with pytest.raises(ValueError, match="loop='lamb' is not described; known: plain"):
        Run(tokens=8, loop="lamb")
    with pytest.raises(ValueError, match="loop='trainer' runs models of transformers"):
        Run(tokens=8, loop="trainer", implementation="memlab")
    with pytest.raises(ValueError, match="all logits are never there at once"):
        Run(tokens=8, loop="keeps-outputs", loss="chunked")
    with pytest.raises(ValueError, match="loop='nanogpt' with loss='chunked': all logits"):
        Run(tokens=8, loop="nanogpt", loss="chunked")
    with pytest.raises(ValueError, match="clip=False with loop='sft'"):
        Run(tokens=8, loop="sft", clip=False)
    with pytest.raises(ValueError, match="reference='model' is for loop='dpo' or 'grpo'"):
        Run(tokens=8, loop="sft", reference="model")
    with pytest.raises(ValueError, match="completion=8; of 8 tokens 1 to 7 can be the completion"):
        Run(tokens=8, loop="sft", completion=8)
    with pytest.raises(ValueError, match="reference='precomputed' is for loop='dpo'"):
        Run(tokens=8, loop="grpo", reference="precomputed")
    with pytest.raises(ValueError, match="in 'plain' every token is learned"):
        Run(tokens=8, completion=4)
    with pytest.raises(ValueError, match="loop='dpo' with loss='chunked'"):
        Run(tokens=8, loop="dpo", loss="chunked")
    opt = Model.preset("opt-125m")
    with pytest.raises(ValueError, match="dropout of opt in loop='dpo'"):
        simulate(opt, "bf16", Run(tokens=8, loop="dpo"))
    with pytest.raises(ValueError, match="TRL's fused head never has all logits at once"):
        estimate(opt, "bf16", Run(tokens=8, loop="sft", holds=("output",)))


def test_clipping_takes_two_numbers_a_parameter():
    model = Model.preset("tiny-llama")
    said = Run(tokens=16, optimizer_impl="fused")

    def after(run):
        log = simulate(model, "fp32", run, every_layer=True).log
        marks = log.marks
        span = log.events[marks["second.optimizer"] : marks["second.zero_grad"]]
        return (
            max([total for *_, total in span], default=0)
            - log.events[marks["second.optimizer"] - 1][2]
        )

    tensors = sum(tensor.copies for tensor in model.tensors())
    assert after(said.replace(clip=True)) == 2 * 4 * tensors + 4


@pytest.mark.parametrize("run", [Run(), Run.cpu()], ids=["cuda", "cpu"])
def test_a_fp32_copy_of_the_logits_that_is_kept_is_one_copy(run):
    """As torchtune's recipe of 2024-05 keeps what its model puts out: 16 bytes a logit, not 12."""
    model = Model.preset("tiny-llama").replace(vocab=8192)
    run = run.replace(batch=2, tokens=64, implementation="memlab")
    module, rows = build(model, Recipe.named("bf16")), 2 * 64

    def peak(keeps):
        def program(module):
            ids = torch.zeros(2, 64, dtype=torch.long, device=next(module.parameters()).device)
            logits = module(ids).float()
            loss = next_token_loss(logits, ids)
            if not keeps:
                del logits
            loss.backward()

        return trace(module, program, Run(backend=run.backend), optimizer=None, steps=1).peak

    kept = estimate(model, "bf16", run.replace(holds=("wide_logits",))).total()
    assert kept - estimate(model, "bf16", run).total() == 4 * rows * model.vocab
    assert peak(keeps=True) - peak(keeps=False) == 4 * rows * model.vocab
