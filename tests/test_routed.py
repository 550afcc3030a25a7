"""Mixtures that loop over their experts: an assumed routing, held against real steps."""

import json

import causal_types
import pytest
import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

from memlab import Run
from memlab.cli import main
from memlab.lab.causal import GROUPED, Causal
from memlab.lab.trace_routed import choices, is_assumed
from memlab.lab.trace_run import trace_run
from memlab.measure import CannotTrace
from memlab.measure import routed as room
from memlab.measure.routed import ROUTINGS, Routed, chosen
from memlab.units import text

LOOPS = ("dbrx", "jetmoe", "longcat_flash")
HERE = Run.cpu(batch=2, tokens=32)


def test_even_loads_differ_by_one_at_most_and_full_ones_are_on_few():
    even = chosen(10, 3, 8, "even").flatten().bincount(minlength=8)
    assert even.sum() == 30 and even.max() - even.min() == 1
    assert all(len(set(row.tolist())) == 3 for row in chosen(10, 3, 8, "even"))
    assert (
        chosen(10, 3, 8, "fullest").flatten().bincount(minlength=8).tolist() == [10] * 3 + [0] * 5
    )
    with pytest.raises(ValueError, match="unknown routing 'odd'; known: even, fullest"):
        chosen(1, 1, 1, "odd")


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", LOOPS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_trace_is_the_real_step_of_the_same_routing(family, precision):
    """The real routers are made to choose so; the notes of the trace have the other peak."""
    model = Causal(causal_types.small(family))
    step = trace_run(model, precision, HERE)
    real = {}
    for routing in ROUTINGS:
        with Routed(*choices(model), routing) as mode:
            real[routing] = causal_types.real(model, precision)
        assert mode.assumed >= 2 * 4  # two steps, four layers
    assert step.peak == real["even"] != real["fullest"]
    assert is_assumed(step) and GROUPED not in step.notes
    assert step.notes[-1].endswith(f"the peak is {text(real['fullest'])}")


def test_nothing_else_is_assumed():
    """A topk of other sizes, of another dimension, and without a router."""
    scores = torch.rand(6, 4)
    free = scores.topk(2).indices
    with Routed({4}, {2}) as mode:
        assert scores.topk(2).indices.tolist() == chosen(6, 2, 4, "even").tolist() != free.tolist()
        assert scores.topk(3).indices.shape == (6, 3) and scores.T.topk(2).values.shape == (4, 2)
        assert scores.T.contiguous().topk(2, dim=0).indices.shape == (2, 6)
    assert mode.assumed == 1


def test_what_a_router_does_not_decide_is_still_refused(monkeypatch):
    """blt reads an entropy; and where nothing is worked out, dbrx is refused as it was."""
    with pytest.raises(CannotTrace, match="modeling_blt"):
        trace_run(Causal(causal_types.small("blt")), "fp32", HERE)
    monkeypatch.setattr(room.Routed, "_follow", lambda *_: None)
    with pytest.raises(CannotTrace, match="nonzero.*modeling_dbrx"):
        trace_run(Causal(causal_types.small("dbrx")), "fp32", HERE)


def test_experts_are_counted_wherever_a_config_has_them():
    experts, per_token = choices(Causal(causal_types.small("longcat_flash")))
    assert experts == {4, 2, 6} and 2 in per_token
    assert 4 in choices(Causal(causal_types.small("dbrx")))[0]  # inside ffn_config
    assert choices(Causal(causal_types.small("phi")))[0] == set()


def test_the_shell_says_what_was_assumed(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("dbrx")), encoding="utf-8")
    asked = ["trace", str(path), "--batch", "2", "--tokens", "32", "--backend", "cpu"]
    assert main(asked) == 0
    assert "the routing is assumed even" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    assert "the routing is assumed even" in json.loads(capsys.readouterr().out)["leaves_out"][0]


def test_what_cannot_be_worked_out_has_no_value_and_no_old_one():
    """Written into by something that fails with values: what was there before is gone."""
    with FakeTensorMode(), Routed((8,), (2,)):
        picked = torch.empty(4, 8).topk(2).indices.view(-1)
        row = picked * 0
        assert row.nonzero().shape == (0, 1)
        row.scatter_(0, picked + 100, 1)
        with pytest.raises(DynamicOutputShapeException):
            row.nonzero()
