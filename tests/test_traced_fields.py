"""Each field of a run changes what is traced, or is refused by its name, at each door.

A field that is told and never asked for gives another question's answer: the tape of a trace is the
witness, every event of it. That the net holds is shown by dropping each field on purpose.
"""

from functools import cache

import pytest

from memlab import Model, Run
from memlab.adapters import Ia3, Lora
from memlab.base.frozen import replace
from memlab.cli import main, parser
from memlab.cli.trace import BESIDE_FILE
from memlab.lab import trace_run
from memlab.lab.causal import Causal
from memlab.measure.trace import OURS
from memlab.run.fields import KNOWN
from memlab.run.run import FIELDS
from memlab.run.teacher import Teacher
from memlab.sharding import Sharding

# One layer each: what a field changes in a layer, it changes in one.
LLAMA = replace(Model.preset("tiny-llama"), layers=1)
MISTRAL = Model.from_config(
    {
        "model_type": "mistral",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 128,
        "sliding_window": None,
    }
)
BASE = {"batch": 2, "tokens": 24}
# Of a field that takes no word of a list: another value than its default.
OTHERS = {
    "batch": [3],
    "tokens": [32],
    "micro_batches": [2],
    "dropout": [0.0, 0.5],
    "window": [0, 8],
    "eval_batch": [2],
    "eval_logits": [1],
    "completion": [8],
    "teacher": [Teacher(LLAMA, None)],
    "loss_chunks": [3],
    "step_in_backward": [True],
    "clip": [True],
    "lora": [Lora(4)],
    "adapter": [Ia3()],
    "frozen": [("embedding",)],
    "offload": [("saved",)],
    "holds": [("graph",)],
    "inference_mode": [True],
    "devices": [Sharding(data=2)],
}
SAID = [(field, value) for field in FIELDS for value in (KNOWN | OTHERS)[field]]
# What a field means nothing without. A fused kernel draws its mask anew from a seed, so that no
# byte of dropout is kept there.
WITH = {
    "loss_chunks": {"loss": "chunked"},
    "eval_logits": {"eval_batch": 2},
    "dropout": {"attention": "eager"},
}
# Values that name what is done without them, in bf16 on CUDA.
USUAL = {
    ("attention", "sdpa"),
    ("attention", "flash"),
    ("kernel", "flash"),
    ("optimizer_impl", "foreach"),
    ("dropout", 0.0),
    ("window", 0),
    ("checkpoint", "none"),
}


def subject(field):
    return MISTRAL if field == "window" else LLAMA


@cache
def tape(model, run):
    """Every event of a trace."""
    found = trace_run.trace_run(model, "bf16", run).tracker
    return [(event.kind, event.bytes, event.op) for event in found.timeline]


def answered(field, value, ask=tape, **more):
    """Whether the field "changed" what was traced, is "refused" by name, "usual", or "ignored"."""
    try:
        base = Run(**BASE | WITH.get(field, {}) | more)
    except ValueError:
        return "refused"  # what it means nothing without
    try:
        told = base.replace(**{field: value})
        found = ask(subject(field), told)
    except ValueError as error:
        assert field in str(error), error
        return "refused"
    if told == base:
        return "usual"
    return "changed" if found != tape(subject(field), base) else "ignored"


def test_every_field_of_a_run_has_another_value_here():
    assert {field for field, _ in SAID} == set(FIELDS)


@pytest.mark.sample(45)
@pytest.mark.parametrize(("field", "value"), SAID, ids=str)
def test_a_field_changes_the_tape_of_a_step_or_is_refused(field, value):
    found = answered(field, value)
    if (field, value) in USUAL:
        assert found in ("ignored", "usual")  # it names what is done anyway
    else:
        assert found in ("changed", "refused", "usual")
    if field not in trace_run.TRACED and found != "usual":
        assert found == "refused" or field == "phase"


@pytest.mark.parametrize("field", trace_run.TRACED)
def test_a_field_that_is_dropped_is_seen(field, monkeypatch):
    """The net of the test above: whatever field the code forgets, one value of it shows that."""
    values = [value for name, value in SAID if name == field]
    changed = next((value for value in values if answered(field, value) == "changed"), None)
    assert changed is not None
    usual = getattr(Run(**BASE | WITH.get(field, {})), field)
    own = trace_run._traced

    def forgetful(model, recipe, run, title):
        return own(model, recipe, run.replace(**{field: usual}), title)

    monkeypatch.setattr(trace_run, "_traced", forgetful)
    assert answered(field, changed, ask=tape.__wrapped__) == "ignored"


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch", 3), ("tokens", 32), ("logits", "last"), ("attention", "eager"), ("kernel", "math")],
)
def test_a_field_changes_the_tape_of_a_call(field, value):
    assert answered(field, value, phase="prefill") == "changed"


def test_a_field_of_a_model_that_nobody_described_is_refused_where_it_is_zero_too():
    """0 is said as well: it was taken for nothing."""
    phi = {"model_type": "phi", "hidden_size": 32, "num_hidden_layers": 1, "vocab_size": 64}
    phi |= {"num_attention_heads": 2, "intermediate_size": 32}
    for field in ("dropout", "window"):
        with pytest.raises(ValueError, match=f"{field}=0"):
            trace_run.trace_run(Causal(phi), "bf16", Run(**BASE, **{field: 0}))


ACTIONS = [
    action
    for action in parser("trace").of._actions
    if action.option_strings and action.dest not in (*BESIDE_FILE, *OURS, "help")
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.dest)
def test_beside_a_file_a_flag_that_its_function_says_itself_is_refused(action, capsys):
    """Also where it stands at its default, as --batch 1 does: the file has another batch."""
    flag = action.option_strings[0]
    value = [] if action.nargs == 0 else [str((action.choices or ["1"])[0])]
    assert main(["trace", "program.py:step", flag, *value]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"memlab: {flag}")
    assert said.endswith(": what step() returns says that itself\n")
