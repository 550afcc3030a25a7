"""A record a family: what it may say, and what a twist takes over from another."""

import ast
from pathlib import Path

import pytest

from memlab import families
from memlab.base.frozen import replace
from memlab.families import NAMES, OWN, PROOFS, Family, has_config, like, proven, record_of, tabled
from memlab.model.fields import HARMLESS, kinds
from memlab.step.networks import IMPLEMENTATIONS, network

AXES = {
    "attentions",
    "losses",
    "heads",
    "ties",
    "dropouts",
    "layers",
    "config",
    "beside",
    "trainer",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_what_is_known(name):
    known = record_of(name)
    assert set(known.proven.split()) <= set(PROOFS)
    assert set(known.tables or ()) <= AXES
    assert {key for key, kind in kinds(name).items() if kind == families.ONLY} <= set(HARMLESS)
    assert set(known.dropouts) <= set(known.effects) and set(known.nullable) <= set(kinds(name))
    for implementation, field in IMPLEMENTATIONS.items():
        if getattr(known, field):
            assert network(implementation, name).__name__ == getattr(known, field)[1]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_proven_or_counted_has_a_network(name):
    known = record_of(name)
    assert known.network or not (known.proven or known.tables)
    assert has_config(name) or not known.network


def test_a_record_is_data_alone():
    """It imports nothing but its room, so that each is read when it is asked for."""
    for name in NAMES:
        tree = ast.parse((Path(families.HERE) / f"{name}.py").read_text(encoding="utf-8"))
        told, (imported, record) = ast.get_docstring(tree), tree.body[1:]
        assert told and isinstance(imported, ast.ImportFrom) and isinstance(record, ast.Assign)
        assert (imported.level, imported.module) == (1, None)


def test_a_twist_takes_over_the_shape_and_nothing_that_is_proven():
    made, base = like("llama", defaults={"positions": 7}, flags={"tied": True}), record_of("llama")
    assert made.shape == base.shape | {"positions": ("max_position_embeddings", 7)}
    assert made.flags == base.flags | {"tied": True} and made.effects == base.effects
    for field in OWN:
        assert getattr(made, field) == getattr(Family, field)


def test_none_takes_a_key_away():
    made = like("llama", shape={"ff_bias": None}, effects=families.effects(gone="hidden_act"))
    assert "ff_bias" not in made.shape and "hidden_act" not in made.effects


def test_an_unknown_family_and_an_unknown_field_are_named():
    with pytest.raises(ValueError, match="unknown family 'qwen9'; known: arcee, cohere2"):
        record_of("qwen9")
    with pytest.raises(TypeError, match="colour"):
        like("llama", colour="red")
    assert not has_config("../llama") and not has_config(None) and not has_config("nanochat")


def test_lists_follow_the_records(monkeypatch):
    bare = replace(record_of("llama"), proven="", tables=None)
    assert "llama" in proven("pipeline") and "llama" in tabled("fsdp")
    monkeypatch.setattr(families, "record_of", lambda name: bare)
    assert proven("pipeline") == tabled() == []
