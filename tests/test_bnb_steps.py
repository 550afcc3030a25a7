"""bitsandbytes' AdamW on a CPU, operator by operator: in a loop of one's own and in Trainer's."""

import contextlib
import itertools

import pytest
import torch
from real_steps import build, module_vocab, quiet, random_configs

from memlab import Model, Recipe, Run
from memlab.base.gc_paused import no_garbage
from memlab.lab.subject import DTYPES
from memlab.lab.train import one_thread
from memlab.lab.trainers import CONFIG, highest
from memlab.measure import storage_bytes
from memlab.measure.step_tracker import StepTracker
from memlab.recipe.resident import resident
from memlab.run.optimizer_loops import loop_of
from memlab.step import simulate
from memlab.step.core.engine import Engine
from memlab.step.optimizers.bnb import bnb_adamw8bit
from memlab.terms import optimizer as terms

pytestmark = pytest.mark.filterwarnings("ignore")  # of bitsandbytes, about what a CPU lacks
CLASSES = {"bnb_adamw8bit": "AdamW8bit", "bnb_adamw": "AdamW"}


@pytest.fixture
def bnb(monkeypatch):
    """bitsandbytes without a memory of earlier models, its CPU code in the tracker's sight.

    torch.library calls a kernel below every dispatch mode; called by its name, the same function
    is seen operator by operator.
    """
    with quiet():
        library = pytest.importorskip("bitsandbytes")
        from bitsandbytes.backends.cpu import ops

    def in_8_bits(*given, gnorm_scale, **more):
        ops._optimizer_update_8bit_blockwise_cpu(*given, gnorm_scale, **more)

    def in_32_bits(name, g, p, s1, b1, eps, step, lr, s2, b2, b3, alpha, decay, scale, norm, **_):
        told = (name, g, p, s1, s2, norm, 0.0, 0.0, b1, b2, b3, alpha, eps, decay, step, lr, scale)
        ops._optimizer_update_32bit_cpu(*told)

    functions = library.optim.optimizer.F
    monkeypatch.setattr(functions, "optimizer_update_8bit_blockwise", in_8_bits)
    monkeypatch.setattr(functions, "optimizer_update_32bit", in_32_bits)
    monkeypatch.setattr(library.optim.GlobalOptimManager, "_instance", None)
    return library


def peaks(step, make):
    """The peaks of two real steps with this optimizer, and what it holds."""
    found = []
    with one_thread(), quiet(), no_garbage():
        module = build(step)
        optimizer = make(list(module.parameters()))
        ids = torch.randint(module_vocab(module), (step.run.batch, step.run.tokens))
        tracker = StepTracker()
        with tracker:
            tracker.label(module)
            tracker.label(list(optimizer.name2qmap.values()), "optimizer")
            tracker.label(ids, "inputs")
            for _ in range(2):
                tracker.reset_peak()
                with contextlib.ExitStack() as stack:
                    if step.recipe.autocast:
                        stack.enter_context(torch.autocast("cpu", torch.bfloat16))
                    loss = module(ids, labels=ids).loss
                loss.backward()
                del loss
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                found.append(tracker.peak)
    return found, storage_bytes([optimizer.state, list(optimizer.name2qmap.values())])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("number", range(3))
def test_a_step_takes_what_is_derived(bnb, name, number):
    step = random_configs(3, seed=8, families=("gpt2", "llama", "qwen3"), dropouts=(0.0,))[number]
    step = step.replace(precision=f"{step.precision}+{name}", optimizer_impl=None)
    derived = simulate(step.model, step.recipe, step.run)
    for paged in ("", "Paged"):  # a CPU pages nothing
        made = getattr(bnb.optim, paged + CLASSES[name])
        assert peaks(step, made) == (
            [derived.peak.first_step_bytes, derived.peak.bytes],
            derived.rows["optimizer"],
        )
    assert derived.rows["optimizer"] == resident(step.model, step.recipe)["optimizer"]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_profiler_counts_the_same_below_the_dispatcher(dtype):
    """The library's kernel as it is called, not by its name: two states in 8 bits, one matrix."""
    with quiet():
        library = pytest.importorskip("bitsandbytes")
    p = torch.nn.Parameter(torch.randn(64, 97, dtype=DTYPES[dtype]))
    optimizer = library.optim.AdamW8bit([p])
    p.grad = torch.randn_like(p)
    optimizer.step()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with one_thread(), torch.profiler.profile(activities=activities, profile_memory=True) as seen:
        optimizer.step()
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    f = Engine()
    f.parameter("gate", (64, 97), dtype)
    bnb_adamw8bit(f, lambda: iter(f.parameters), "forloop")
    first, held = len(f.log.events), f.log.total
    bnb_adamw8bit(f, lambda: iter(f.parameters), "forloop")
    derived = max(total for _, _, total in f.log.events[first:]) - held
    wrapped = 8 + 4  # Python's number beside a tensor: no storage of the step's own (see simulate)
    assert max(itertools.accumulate(sizes)) == derived + wrapped
    assert sum(sizes) == 0


@pytest.mark.parametrize(("precision", "tied"), [("fp32", False), ("bf16", True)])
def test_trainer_keeps_the_states_of_embeddings_in_fp32(bnb, tmp_path, precision, tied):
    config = CONFIG | {"tie_word_embeddings": tied}
    model = Model.from_config(config)
    recipe = Recipe.named(precision).replace(optimizer="bnb_adamw8bit")
    run = Run.cpu(batch=1, tokens=4, loop="trainer")
    derived = simulate(model, recipe, run)
    assert derived.peak.moment == "optimizer"
    real = highest(precision, run, tmp_path, config, optim="adamw_bnb_8bit")
    assert real == derived.peak.bytes
    plain = simulate(model, recipe, run.replace(loop="plain"))
    words = model.vocab * model.d_model
    more = terms.bnb_adamw((words,)) - terms.bnb_adamw8bit((words,))
    assert derived.rows["optimizer"] - plain.rows["optimizer"] == more


def test_trainers_own_adamw_is_fused(tmp_path):
    model, run = Model.from_config(CONFIG), Run.cpu(batch=1, tokens=4, loop="trainer")
    assert loop_of(Recipe.named("fp32"), run) == run.optimizer_loop == "fused"
    derived = simulate(model, "fp32", run).peak.bytes
    assert highest("fp32", run, tmp_path) == derived
    assert simulate(model, "fp32", run.replace(optimizer_impl="forloop")).peak.bytes > derived


@pytest.mark.parametrize("bits", ["", "8bit"])
def test_paged_states_are_not_torchs(bits):
    """On CUDA; what a reader's card holds of them the driver decides."""
    model = Model(layers=6, d_model=256, d_ff=512, heads=4, vocab=999, family="qwen3")
    paged, plain = (Recipe(optimizer=f"bnb_{word}adamw{bits}") for word in ("paged_", ""))
    steps = [simulate(model, recipe, Run(tokens=8)) for recipe in (paged, plain)]
    away = sum(
        terms.managed(paged.optimizer, shape=tensor.shape) * tensor.copies
        for tensor in model.tensors()
    )
    each = 1 if bits else 4
    large = 2 * 999 * 256 + 6 * (3 * 256 * 512)  # q, k, v and out have fewer than 100,000 values
    assert away == 2 * each * large
    assert steps[1].rows["optimizer"] - steps[0].rows["optimizer"] == away
    assert steps[0].rows["optimizer"] == resident(model, paged)["optimizer"]
    assert steps[1].peak.bytes - steps[0].peak.bytes == away
    with pytest.raises(ValueError, match=f"pages nothing on a CPU; .* is bnb_adamw{bits} there"):
        simulate(model, paged, Run.cpu(tokens=8))
    with pytest.raises(ValueError, match="'foreach': bnb_adamw.* has fused on cuda"):
        simulate(model, plain, Run(tokens=8, optimizer_impl="foreach"))
