"""Peaks of steps with every optimizer that is described, against real steps and traces."""

import shutil

import pytest
import torch
from linked import linked
from real_steps import Question, random_configs, real_step, simulated

from memlab import Model, Recipe, Run
from memlab.lab.optim import optimizer as made_optimizer
from memlab.lab.trace_run import trace_run
from memlab.measure.compiled import without_kernels
from memlab.measure.profiled import profiled
from memlab.recipe.resident import resident, stepped
from memlab.run.optimizer_loops import LOOPS, loop_of, step_name
from memlab.step import simulate
from memlab.step.core.moments import hills
from memlab.terms import optimizer_step
from memlab.terms.optimizer import QUANTIZED

# AdamW's steps are in many other tests, bitsandbytes' in tests/test_bnb_steps.py.
ON_A_CPU = [
    name
    for name, (_, backends) in LOOPS.items()
    if "cpu" in backends and name != "adamw" and not name.startswith("bnb")
]
EIGHT = {"optimizer": "muon", "states": ("int8/128",)}
WIDE = {"weights": "bf16", "gradients": "bf16", "states": ("fp32", "fp32")}
KINDS = {"muon8": EIGHT, "wide_adamw": WIDE}
DRAWN = random_configs(
    len(ON_A_CPU),
    seed=20,
    families=("gpt2", "llama", "qwen3", "gemma"),
    implementations=("transformers", "memlab"),
    dropouts=(0.0,),
)


def asked(number: int, name: str) -> Question:
    """The drawn step with this optimizer, in a loop that it has and that needs no compiler."""
    step = DRAWN[number]
    if step.family == "gemma":
        step = step.replace(implementation="transformers")
    loops = [loop for loop in LOOPS[name][0] if loop != "compiled"]
    loop = step.run.optimizer_impl if step.run.optimizer_impl in loops else loops[-1]
    return step.replace(precision=f"{step.precision}+{said(name)}", optimizer_impl=loop)


def said(name):
    """A step's name as a question says it: GaLore has a rank."""
    return "galore/8" if name == "galore" else name


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ON_A_CPU)
def test_the_peak_is_that_of_a_real_step(name):
    step = asked(ON_A_CPU.index(name), name)
    real, derived = real_step(step), simulated(step)
    assert derived.peak.bytes == real.peak.bytes
    assert derived.peak.first_step_bytes == real.first_peak.bytes
    assert derived.held == real.held
    assert derived.rows["optimizer"] == real.resident["optimizer"]


SMALL = {"model_type": "llama", "hidden_size": 96, "intermediate_size": 200, "vocab_size": 50}
SMALL |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["muon8", "galore/8", "galore/500"])
def test_the_labs_own_where_the_optimizer_is_the_peak(name, precision):
    step = Question(SMALL, f"{precision}+{name}", Run.cpu(batch=1, tokens=4))
    real, derived = real_step(step), simulated(step)
    assert derived.peak.moment == "optimizer"
    assert derived.peak.bytes == real.peak.bytes
    assert derived.peak.first_step_bytes == real.first_peak.bytes


@pytest.mark.parametrize("name", LOOPS)
def test_what_stays_is_the_resident_formula(name):
    model = Model(layers=7, d_model=128, d_ff=256, heads=4, kv_heads=2, vocab=5000, family="qwen3")
    recipe = Recipe(name=name, **KINDS.get(name, {"optimizer": said(name)}))
    step = simulate(model, recipe, Run(tokens=8))
    assert step.rows["optimizer"] == resident(model, recipe)["optimizer"]


TRACED = [
    (name, None) for name in ("sgd", "muon", "adafactor", "hf_adafactor", "galore/8", "muon8")
]
TRACED += [("momentum", "fused"), ("amsgrad", "foreach"), ("adafactor", "forloop")]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("name", "loop"), TRACED)
def test_cudas_graph_is_the_traced_one(name, loop):
    model = Model(layers=5, d_model=128, d_ff=256, heads=4, kv_heads=2, vocab=999, family="llama")
    recipe = Recipe.named("bf16").replace(**(EIGHT if name == "muon8" else {"optimizer": name}))
    run = Run(tokens=16, optimizer_impl=loop)
    assert simulate(model, recipe, run).peak.bytes == trace_run(model, recipe, run).peak


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize(("kind", "shape"), [("adamw8bit", (64, 96)), ("adamw_fp8", (32, 256))])
def test_a_compiled_step_takes_what_its_formula_says(kind, shape):
    """Counted by torch's profiler: what a compiled function allocates passes by no dispatch."""
    parameter = torch.nn.Parameter(torch.randn(shape))
    optimizer = made_optimizer(kind, {"weight": parameter})
    parameter.grad = torch.randn(shape)
    with linked():
        for _ in range(2):
            optimizer.step()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        optimizer.step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    derived = optimizer_step.low_bit_compiled(shape, kind=kind)
    assert derived <= peak <= derived + 12  # two numbers, which a stored compilation has not
    assert optimizer_step.low_bit_room(shape, kind=kind) == derived


@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore")  # of the compiler's own parts
@pytest.mark.parametrize("kind", sorted(QUANTIZED))
@pytest.mark.parametrize(("shape", "dtype"), [((32, 256), "bf16"), ((64, 96), "fp32")])
def test_the_program_of_a_compiled_step_has_these_buffers_without_its_kernels(kind, shape, dtype):
    """Counted in the program that Inductor writes; no C++ compiler is asked."""
    value = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    parameter = torch.nn.Parameter(torch.randn(shape).to(value))
    optimizer = made_optimizer(kind, {"weight": parameter})
    parameter.grad = torch.randn(shape).to(value)
    with without_kernels():
        optimizer.step()
        with profiled() as seen:
            optimizer.step()
    assert seen.peak == optimizer_step.low_bit_compiled(shape, kind=kind, format=dtype)


def test_muon_leaves_the_biases_of_experts_to_adamw():
    """They have two dimensions in gpt_oss; one of them is the experts."""
    model, recipe = Model.preset("gpt-oss-20b"), Recipe(optimizer="muon")
    step = simulate(model, recipe, Run(tokens=16))
    assert step.rows["optimizer"] == resident(model, recipe)["optimizer"]
    parameters = {
        "model.layers.0.mlp.experts.gate_up_proj_bias": torch.nn.Parameter(torch.ones(2, 3))
    }
    made = made_optimizer(
        "muon", parameters | {"a.mlp.up.weight": torch.nn.Parameter(torch.ones(2, 3))}
    )
    assert [len(group["params"]) for group in made.param_groups] == [1, 1]


def test_a_step_on_a_host_leaves_weights_gradients_and_small_states():
    """Derived from torchao's source: its class asks for CUDA, so no step of it ran here."""
    model, run = Model.preset("Llama-3.2-1B"), Run(tokens=16)
    step = simulate(model, Recipe(optimizer="offload_adamw"), run)
    norms = sum(t.copies for t in model.tensors() if t.component == "norm")
    assert step.rows["optimizer"] == norms * (2 * 4 * 2048 + 4)  # D is below 4,096
    both = [step.rows[term] for term in ("weights", "gradients")]
    assert both == [4 * model.parameter_count] * 2
    assert hills(step)["optimizer"].total() == step.held["after_backward"]


def test_a_loop_that_an_optimizer_does_not_have_is_refused():
    model = Model(layers=2, d_model=64, d_ff=128, heads=2, vocab=99)
    with pytest.raises(ValueError, match="'foreach': lion has forloop"):
        simulate(model, Recipe(optimizer="lion"), Run(tokens=8, optimizer_impl="foreach"))
    for name in ("zero", "megatron", "scaling-book"):
        with pytest.raises(ValueError, match=f"recipe '{name}': a step with wider copies"):
            trace_run(model, name, Run(tokens=8))
    with pytest.raises(ValueError, match="no compiled step can be traced"):
        trace_run(model, Recipe(optimizer="adamw8bit"), Run(tokens=8))


@pytest.mark.sample(19)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["adamw", "lion", "muon", "adafactor", "adamw8bit", "sgd"])
@pytest.mark.parametrize("preset", ["Llama-3.2-1B", "gpt2", "gemma-2-2b", "olmoe-1b-7b"])
def test_the_room_of_a_step_is_the_simulated_one(preset, name, precision):
    check_room(preset, Recipe.named(precision).replace(optimizer=name), precision)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("said", [{"optimizer": "galore/64"}, EIGHT], ids=str)
def test_the_room_of_the_labs_own(said, precision):
    check_room("Llama-3.2-1B", Recipe.named(precision).replace(**said), precision)


def check_room(preset, recipe, precision):
    model, run = Model.preset(preset), Run(tokens=16)
    log = simulate(model, recipe, run).log
    first, last = log.marks["second.optimizer"], log.marks["second.zero_grad"]
    before = log.events[first - 1][2]
    most = max([total for _, _, total in log.events[first:last]] or [before])
    room = optimizer_step.step_room(
        step_name(recipe), stepped(model), format=precision, loop=loop_of(recipe, run)
    )
    assert room == most - before
