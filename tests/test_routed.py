"""Mixtures that loop over their experts: an assumed routing, held against real steps."""

import json

import causal_types
import pytest
import torch
from routed import Routed, is_assumed

from memlab import Run
from memlab.cli import main
from memlab.lab.causal import GROUPED, Causal
from memlab.lab.trace_run import trace_run
from memlab.measure import trace
from memlab.measure.fake_cuda.assumed import POLICIES
from memlab.measure.fake_cuda.likely import experts, router
from memlab.units import text

LOOPS = ("dbrx", "jetmoe", "longcat_flash")
HERE = Run.cpu(batch=2, tokens=32)


def test_even_loads_differ_by_one_at_most_and_full_ones_are_on_few():
    even = experts((10, 3), 8, "even")
    loads = even.flatten().bincount(minlength=8)
    assert loads.sum() == 30 and loads.max() - loads.min() == 1
    assert all(len(set(row.tolist())) == 3 for row in even)
    fullest = experts((10, 3), 8, "fullest")
    assert fullest.flatten().bincount(minlength=8).tolist() == [10] * 3 + [0] * 5
    with pytest.raises(ValueError, match="cannot assume 'routing=odd'; known: routing=even or"):
        trace(torch.nn.Linear(2, 2), torch.ones(2), assume="routing=odd")


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", LOOPS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_trace_is_the_real_step_of_the_same_routing(family, precision):
    """The real routers are made to choose so; the notes of the trace have the other peak."""
    model = Causal(causal_types.small(family))
    step = trace_run(model, precision, HERE)
    real = {}
    for routing in POLICIES["routing"]:
        with Routed(routing) as mode:
            real[routing] = causal_types.real(model, precision)
        assert mode.assumed >= 2 * 4  # two steps, four layers
    assert step.peak == real["even"] != real["fullest"]
    assert is_assumed(step) and GROUPED not in step.notes
    assert step.notes[-1].endswith(f"the peak is {text(real['fullest'])}")


def test_nothing_else_is_a_router():
    """Many are chosen, or among many, as tokens are; or they are whole numbers."""
    scores = torch.rand(6, 4)
    assert router(scores, 2) and not router(scores, 17) and not router(scores[0], 2)
    assert not router(torch.rand(6, 1000), 2) and not router(scores.long(), 2)


def test_where_every_expert_is_in_one_product_no_routing_matters():
    step = trace_run(Causal(causal_types.small("qwen2_moe")), "fp32", HERE)
    assert GROUPED in step.notes and not any("routing   " in note for note in step.notes)


def test_values_that_decide_are_noted_with_their_line():
    step = trace_run(Causal(causal_types.small("xlm")), "fp32", HERE)
    assert any("modeling_xlm.py" in note for note in step.notes)


def test_the_shell_says_what_was_assumed(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("dbrx")), encoding="utf-8")
    asked = ["trace", str(path), "--batch", "2", "--tokens", "32", "--backend", "cpu"]
    assert main(asked) == 0
    assert "the routing is assumed even" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    assert "the routing is assumed even" in json.loads(capsys.readouterr().out)["leaves_out"][0]
