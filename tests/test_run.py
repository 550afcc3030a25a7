"""Run: one value, checked in one place; what it says is honoured at every door, or refused."""

import functools
import json
import pickle
import random
import re

import pytest

from memlab import Model, Run, Sharding
from memlab.adapters import Ia3, Prompt, Vera
from memlab.estimate import estimate
from memlab.explain.explanation import explain, predicted
from memlab.fit import largest_batch, longest_sequence
from memlab.run.fields import KNOWN, OF_TRAINING, TABLE
from memlab.run.loops import TAUGHT
from memlab.run.run import FIELDS
from memlab.run.teacher import Teacher
from memlab.step import Lora, simulate
from memlab.step.calls import decode, prefill

HOLDS, OFFLOAD = ({f.name: f.known for f in TABLE}[name] for name in ("holds", "offload"))

TINY = Model.preset("tiny-llama")
TEACHER = Teacher(TINY.replace(layers=9, vocab=1500), "fp32")
TARGETS = ("q", "k", "v", "out", "gate", "up", "down")


def drawn(rng):
    """Any field that the phase has, at any value, whether they go together or not."""
    phase = rng.choice(["train", "train", "prefill", "decode"])
    said = {name: rng.choice(words) for name, words in KNOWN.items() if rng.random() < 0.3}
    numbers = {"batch": 9, "tokens": 99, "micro_batches": 5, "window": 50, "loss_chunks": 9}
    said |= {name: rng.randint(1, most) for name, most in numbers.items() if rng.random() < 0.4}
    if rng.random() < 0.2:
        said["completion"] = rng.randint(1, 20)
    if said.get("loop") == "trainer":
        said |= {"eval_batch": rng.randint(1, 9), "eval_logits": rng.randint(0, 9)}
    if said.get("loop") in TAUGHT:
        said["teacher"] = TEACHER
    flags = ("step_in_backward", "inference_mode", "clip")
    said |= {name: rng.random() < 0.5 for name in flags if rng.random() < 0.2}
    if rng.random() < 0.2:
        said["dropout"] = rng.choice([0, 0.1, 0.5])
    if rng.random() < 0.3:
        base = rng.choice([None, "nf4"])
        more = rng.choice([{}, {"dtype": "fp32"}, {"saved": ("lm_head",)}])
        said["lora"] = Lora(rng.randint(1, 9), tuple(rng.sample(TARGETS, 2)), base, **more)
    elif rng.random() < 0.2:
        said["adapter"] = rng.choice([Ia3(("q",), ()), Vera(3, ("up",)), Prompt(7)])
    if rng.random() < 0.3:
        said["devices"] = Sharding(data=rng.randint(1, 8), zero=rng.randint(0, 3))
    for name, known in {"holds": HOLDS, "offload": OFFLOAD, "frozen": ("norm",)}.items():
        if rng.random() < 0.2:
            said[name] = tuple(rng.choices(known, k=rng.randint(1, 2)))
    others = ("logits", "inference_mode") if phase == "train" else OF_TRAINING
    return {name: value for name, value in said.items() if name not in others} | {"phase": phase}


def runs(count, seed=0):
    """Random runs, of which each is allowed."""
    rng, found = random.Random(f"runs {seed}"), []
    while len(found) < count:
        try:
            found.append(Run(**drawn(rng)))
        except ValueError:
            continue
    return found


RUNS = runs(500, seed=2)


def test_random_runs_reach_every_field():
    for name in FIELDS:
        assert any(name in run.said() for run in RUNS), name


def test_it_is_json_both_ways():
    for run in RUNS:
        assert Run.from_json(run.to_json()) == run
        assert Run.from_dict(run.to_dict()) == run
        assert list(json.loads(run.to_json())) == list(FIELDS)
        said = {name: value for name, value in run.to_dict().items() if name in run.said()}
        assert Run.from_dict(said) == run  # what is not named stands at its default
        assert pickle.loads(pickle.dumps(run)) == run


def test_it_is_frozen_and_a_key():
    for run in RUNS:
        again = Run(**run.said())
        assert again == run and hash(again) == hash(run) and {run: 1}[again] == 1
        for name in FIELDS:
            with pytest.raises(AttributeError):
                setattr(run, name, None)
    assert len({run.to_json() for run in RUNS}) == len(set(RUNS))


def test_lists_become_tuples_so_that_it_stays_a_key():
    run = Run(tokens=8, holds=["graph", "graph"], frozen=["norm"])
    assert run.holds == ("graph", "graph") and run.frozen == ("norm",)
    assert hash(run) == hash(Run(tokens=8, holds=("graph", "graph"), frozen=("norm",)))


def test_a_copy_is_checked_like_a_new_one():
    run = Run(batch=2, tokens=8)
    assert run.replace(batch=3) == Run(batch=3, tokens=8) and run.batch == 2
    with pytest.raises(ValueError, match="batch=0"):
        run.replace(batch=0)
    with pytest.raises(TypeError, match="batches"):
        run.replace(batches=3)


def test_the_defaults_are_what_a_gpu_user_gets():
    run = Run()
    assert (run.backend, run.optimizer_loop, run.implementation) == (
        "cuda",
        "foreach",
        "transformers",
    )
    assert (run.kernel, run.attention, run.dropout, run.chunks) == ("auto", None, None, 0)
    assert run.said() == {} and run.devices.ranks == 1
    ours = Run.cpu(batch=3)
    assert (ours.backend, ours.optimizer_loop, ours.said()) == (
        "cpu",
        "forloop",
        {"backend": "cpu", "batch": 3},
    )
    assert (
        Run.cpu(backend="cuda") == Run()
        and Run.cpu(optimizer_impl="fused").optimizer_loop == "fused"
    )
    assert Run(tokens=9, loss="chunked").chunks == 8
    assert Run(tokens=9, loss="chunked", loss_chunks=3).chunks == 3
    assert Run(batch=3, tokens=9).rows == 27 and Run(batch=3).rows == 0


# Each wrong value, and what the error says of it: at least the field and the value.
# Of adapters a message says what a title would.
TOLD = {"lora": "LoRA r=4 on q,v", "adapter": "a prompt of 4 trained tokens"}
WRONG = [
    *(
        ({name: "x"}, f"{name}='x' is not described; known: {words[0]}")
        for name, words in KNOWN.items()
    ),
    *(({name: 1}, f"{name}=1 is not described") for name in KNOWN),
    *(({name: None}, f"{name}=None") for name in ("phase", "backend", "kernel", "loss")),
    *(({name: 0}, f"{name}=0; at least 1") for name in ("batch", "micro_batches")),
    *(({name: -1}, f"{name}=-1") for name in ("batch", "tokens", "micro_batches", "window")),
    *(({name: 1.5}, f"{name}=1.5") for name in ("batch", "tokens", "micro_batches", "window")),
    *(({name: "2"}, f"{name}='2'") for name in ("batch", "tokens", "micro_batches", "window")),
    *(({name: True}, f"{name}=True") for name in ("batch", "tokens", "micro_batches", "window")),
    *(({name: 10**9 + 1}, f"{name}=1,000,000,001; at most") for name in ("batch", "tokens")),
    ({"tokens": 0}, "tokens=0; at least 2"),
    ({"tokens": 1}, "tokens=1; at least 2"),
    ({"micro_batches": 4097}, "micro_batches=4,097; at most 4,096"),
    ({"dropout": 1.0}, "dropout=1.0 is not a probability"),
    ({"dropout": -0.1}, "dropout=-0.1"),
    ({"dropout": float("nan")}, "dropout=nan"),
    ({"dropout": "0.1"}, "dropout='0.1'"),
    ({"dropout": True}, "dropout=True"),
    *(({name: "graph"}, f"{name}='graph'; a tuple") for name in ("frozen", "offload", "holds")),
    *(({name: (3,)}, f"{name}=(3,); a tuple of names") for name in ("frozen", "offload", "holds")),
    *(({name: ("x",)}, f"{name}='x' is not described") for name in ("offload", "holds")),
    ({"holds": ("graph",) * 4097}, "holds has 4,097 names"),
    *(({name: 1}, f"{name}=1; True or False") for name in ("step_in_backward", "inference_mode")),
    ({"lora": 8}, "lora=8; a Lora or None"),
    ({"adapter": 8}, "adapter=8; an Ia3, a Vera, a Prompt or None"),
    ({"adapter": Vera(4), "lora": Lora(4)}, "lora beside adapter (VeRA r=4 on q,v); one kind"),
    ({"devices": 8}, "devices=8; a Sharding"),
    ({"loss_chunks": 4}, "loss_chunks=4 without loss='chunked'"),
    ({"tokens": 8, "loss": "chunked", "loss_chunks": 0}, "loss_chunks=0; at least 1"),
    ({"tokens": 8, "loss": "chunked", "loss_chunks": 9}, "loss_chunks=9; between 1 and 8"),
    ({"backend": "cpu", "attention": "flash"}, "attention='flash' is CUDA's"),
    ({"backend": "cpu", "kernel": "math"}, "kernel='math' is a choice of CUDA"),
    ({"implementation": "memlab", "attention": "eager"}, "attention='eager' is in transformers"),
    ({"logits": "last"}, "logits='last' is for prefill"),
    ({"inference_mode": True}, "inference_mode=True is for prefill and decode"),
    ({"step_in_backward": True, "micro_batches": 2}, "step_in_backward with 2 micro-batches"),
    ({"offload": ("gradients",)}, "offload of gradients is for an optimizer that steps there"),
    (
        {"offload": ("optimizer", "states"), "implementation": "memlab"}
        | {"optimizer_impl": "forloop"},
        "offload of states and of the optimizer",
    ),
    (
        {"offload": ("optimizer",), "step_in_backward": True},
        "offload of the optimizer: it steps after",
    ),
    (
        {"offload": ("optimizer",), "optimizer_impl": "foreach"},
        "offload of the optimizer with optimizer_impl",
    ),
    (
        {"offload": ("optimizer", "gradients"), "micro_batches": 2},
        "offload of gradients with 2 micro-batches",
    ),
    ({"phase": "decode"}, "phase='decode' needs tokens"),
    ({"phase": "decode", "tokens": 9, "logits": "last"}, "logits='last' is for prefill; decode"),
    *(
        (
            {"phase": "prefill", "tokens": 9, name: value},
            f"{name}={TOLD.get(name, repr(value))} is for training",
        )
        for name, value in {
            "micro_batches": 2,
            "dropout": 0.0,
            "checkpoint": "block",
            "loss": "chunked",
            "optimizer_impl": "fused",
            "step_in_backward": True,
            "lora": Lora(4),
            "adapter": Prompt(4),
            "frozen": ("norm",),
            "offload": ("saved",),
            "holds": ("model",),
        }.items()
    ),
]


@pytest.mark.parametrize("said, words", WRONG, ids=lambda value: str(value)[:60])
def test_every_wrong_value_is_refused_by_name(said, words):
    with pytest.raises((ValueError, TypeError), match="^" + re.escape(words)):
        Run(**said)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"batches": 3}, "run has no field 'batches'; known: phase, batch"),
        ({"lora": {"rank": 4, "alpha": 8}}, "lora has no field 'alpha'; known: rank"),
        ({"devices": {"gpus": 8}}, "devices has no field 'gpus'; known: data"),
        ({"batch": 0}, "batch=0"),
        ({"lora": {"rank": 0}}, "rank=0"),
        ({"adapter": {"kind": "boft"}}, "adapter has kind='boft'; known: ia3, vera, prompt"),
        ({"adapter": {"kind": "ia3", "rank": 4}}, "adapter ia3 has no field 'rank'; known: targ"),
        ({"holds": "graph"}, "holds='graph'"),
        ([], "an object is needed"),
    ],
)
def test_json_of_no_run_is_refused_by_name(given, words):
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        Run.from_json(json.dumps(given))
    with pytest.raises(ValueError, match="Expecting"):
        Run.from_json("{")


# One value of each field that is not its default, and what must stand with it.
OTHERS = {
    "phase": [{"phase": "prefill"}, {"phase": "decode"}],
    "batch": [{"batch": 3}],
    "tokens": [{"tokens": 48}],
    "micro_batches": [{"micro_batches": 2}],
    "implementation": [{"implementation": "memlab"}],
    "backend": [{"backend": "cpu"}],
    "attention": [{"attention": "eager"}, {"attention": "flash"}],
    "kernel": [{"kernel": "math"}],
    "dropout": [{"dropout": 0.25, "attention": "eager"}],  # flash keeps no mask
    "window": [{"window": 8}, {"window": 8, "implementation": "memlab"}],
    "compile": [{"compile": "aot_eager_decomp_partition"}],
    "checkpoint": [{"checkpoint": "block"}],
    "loop": [{"loop": "trainer"}, {"loop": "dpo"}, {"loop": "nanogpt"}, {"loop": "grpo"}]
    + [{"loop": "distillation"}, {"loop": "gkd"}],
    "clip": [{"clip": True}],
    "texts": [{"texts": "padded"}, {"texts": "packed"}],
    "eval_batch": [{"eval_batch": 8, "loop": "trainer"}],
    "eval_logits": [{"eval_logits": 64, "eval_batch": 8, "loop": "trainer"}],
    "completion": [{"completion": 5, "loop": "dpo"}],
    "reference": [{"reference": "precomputed", "loop": "dpo"}],
    "teacher": [{"teacher": TEACHER, "loop": loop} for loop in TAUGHT],
    "loss": [{"loss": "chunked"}],
    "loss_chunks": [{"loss": "chunked", "loss_chunks": 1}],
    "optimizer_impl": [{"optimizer_impl": "fused"}],
    "step_in_backward": [{"step_in_backward": True}],
    "lora": [{"lora": Lora(4)}, {"lora": Lora(4, dropout=0.1)}],
    "adapter": [{"adapter": Ia3()}, {"adapter": Vera(4)}, {"adapter": Prompt(4)}],
    "frozen": [{"frozen": ("feed_forward",)}],
    "offload": [
        {"offload": ("saved",), "implementation": "memlab"},
        {"offload": ("states",), "implementation": "memlab", "optimizer_impl": "forloop"},
        {"offload": ("optimizer",)},
        {"offload": ("optimizer", "gradients")},
    ],
    "holds": [{"holds": (what,)} for what in HOLDS],
    "logits": [{"phase": "prefill", "logits": "last"}],
    "inference_mode": [{"phase": "prefill", "inference_mode": True}],
    "devices": [{"devices": Sharding(data=2, zero=3)}],
}
CASES = [(field, said) for field, cases in OTHERS.items() for said in cases]
SIZES = ({"batch": 2, "tokens": 16}, {"batch": 2, "tokens": 1024})  # optimizer, activations
SMALL = TINY.replace(layers=4, positions=20_000, vocab=1500)


def of_simulate(recipe, run):
    step = simulate(SMALL, recipe, run)
    return step.rows, step.held, step.peak.bytes, step.peak.contents


def of_call(call):
    def asked(recipe, run):
        found = call(SMALL, recipe, run)
        return found.rows, found.held, found.peak.bytes

    return asked


def of_estimate(recipe, run):
    return {row.term: row.derived for row in estimate(SMALL, recipe, run).rows}


def of_fit(search):
    """Where the smallest step is too large, and where many fit."""
    return lambda recipe, run: [search(SMALL, recipe, run, on=on) for on in ("544 MiB", "580 MiB")]


def of_explain(recipe, run):
    """What it begins with: its search would take a second for each of these runs."""
    return {row.term: row.derived for row in predicted(SMALL, recipe, run).rows}


def of_trace_run(recipe, run):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from memlab.lab.trace_run import trace_run

    found = trace_run(SMALL, recipe, run)
    return found.rows, found.held, found.peak


def of_trace(recipe, run):
    torch = pytest.importorskip("torch")
    from memlab.lab.models import TinyLlama
    from memlab.measure import trace

    ids = torch.zeros(2, 16, dtype=torch.long)
    found = trace(lambda: TinyLlama(SMALL).bfloat16(), (ids, ids), run)
    return found.rows, found.held, found.peak


# What a door does not ask of a run: it is what the door searches for, or what it is called for.
DOORS = {
    "estimate": (of_estimate, ()),
    "simulate": (of_simulate, ()),
    "prefill": (of_call(prefill), ("phase",)),
    "decode": (of_call(decode), ("phase",)),
    "largest_batch": (of_fit(largest_batch), ("batch",)),
    "longest_sequence": (of_fit(longest_sequence), ("tokens",)),
    "explain": (of_explain, ()),
    "trace_run": (of_trace_run, ("compile",)),  # which takes seconds: test_compiled.py asks it
    "trace": (of_trace, ("compile",)),
}
# What changes no byte here, and why.
SAME = [
    # In bf16 torch's own choice is flash, too.
    *((door, {"attention": "flash"}) for door in DOORS),
    # Norms are numbers; the roots of a foreach step are larger. test_loops.py has one without.
    *((door, {"clip": True}) for door in ("estimate", "simulate", "explain")),
    *((door, {"clip": True}) for door in ("largest_batch", "longest_sequence")),
    # Without a backward pass nothing that a kernel keeps stays; see test_calls for the others.
    ("prefill", {"backend": "cpu"}),
    ("decode", {"backend": "cpu"}),
]


# A search simulates many steps, and a trace of transformers' own code takes long: of each field
# the doors above are asked whole, and these a part.
MARKS = {
    "longest_sequence": pytest.mark.sample(10, "longest_sequence"),
    "largest_batch": pytest.mark.sample(14, "largest_batch"),
    "trace_run": pytest.mark.sample(14, "trace_run"),
}


def walk():
    for door, (_, searched) in DOORS.items():
        for field, said in CASES:
            if field not in searched:
                yield pytest.param(door, field, said, marks=MARKS.get(door, ()))


@functools.lru_cache(maxsize=64)
def without(door, recipe, run):
    """A door's answer to a run that has not the field, asked once for all values of it."""
    return DOORS[door][0](recipe, run)


@pytest.mark.parametrize("door, field, said", [*walk()], ids=str)
def test_every_field_is_honoured_or_refused_by_name(door, field, said):
    """It moves a figure at one of two sizes, or an error says its name and its value."""
    ask = DOORS[door][0]
    recipe = "autocast" if "inference_mode" in said else "bf16"  # which is where it matters
    moved = False
    for size in SIZES:
        if door == "trace":  # the module and its inputs have sizes of their own
            size = {}
        base = size | ({"phase": door} if door in ("prefill", "decode") else {})
        try:
            run = Run(**base | said)
            found = ask(recipe, run)
        except ValueError as error:
            named = [name for name in said if f"{name}=" in str(error) or name in str(error)]
            assert named, f"{door} refuses {said}, and says: {error}"
            return
        fewer = {name: value for name, value in said.items() if name != field}
        if field == "loss":
            fewer.pop("loss_chunks", None)
        moved |= found != without(door, recipe, Run(**base | fewer))
        if moved:
            break
    assert moved != ((door, said) in SAME), f"{door} does not look at {field}"


@pytest.mark.sample(13)
@pytest.mark.parametrize("field, said", CASES, ids=str)
def test_an_explanation_begins_with_what_is_predicted(field, said):
    """So it looks at a field, or refuses it, as the test above says of what is predicted."""
    run = Run(**SIZES[0] | said)
    try:
        rows = predicted(SMALL, "bf16", run).rows
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            explain(SMALL, "bf16", run, seen="1 B", level="tensors")
    else:
        assert explain(SMALL, "bf16", run, seen="1 B", level="tensors").predicted.rows == rows


OWN_CALL = {"phase": "prefill", "implementation": "memlab", "backend": "cpu", "logits": "last"}


@pytest.mark.parametrize(
    "recipe, said, words",
    [
        ("bf16", {"backend": "cuda"}, "backend='cuda'"),
        ("bf16", {"logits": "all"}, "logits='all'"),
        ("bf16", {"window": 8}, "window=8"),
        ("bf16", {"devices": Sharding(data=2)}, "devices=data 2"),
        ("autocast", {}, "autocast='bf16'"),
    ],
)
def test_a_call_of_our_own_models_refuses_what_its_closed_form_does_not_know(recipe, said, words):
    run = Run(batch=2, tokens=16, **OWN_CALL)
    assert estimate(TINY, "bf16", run)["kv_cache"].derived > 0
    with pytest.raises(ValueError, match=words):
        estimate(TINY, recipe, run.replace(**said))
