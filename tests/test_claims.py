"""Each claim of the notes has the verdict and the value that its check computes."""

import importlib
import json

import pytest

from memlab.cli import main
from memlab.files import claims

ALL = [(note, claim) for note in claims.notes() for claim in claims.read(note)]
WHOLE = {
    "id": "S9-01",
    "claim": "It takes 1 GB.",
    "figures": "1 GB",
    "check": "one",
    "result": "1 GB",
    "verdict": "holds",
    "right_figure": None,
}


@pytest.mark.parametrize(
    ("note", "claim"), [pair for pair in ALL if pair[1].check], ids=lambda x: getattr(x, "id", x)
)
def test_the_check_finds_what_is_stored(note, claim):
    check = getattr(importlib.import_module(f"audit.note_{note}"), claim.check)
    found = check(claim)
    stored = (claim.result, claim.verdict, claim.right_figure)
    assert (found.result, found.verdict, found.right_figure) == stored


def test_a_claim_that_does_not_hold_has_a_right_figure_or_a_reason():
    for _, claim in ALL:
        if claim.verdict == "holds":
            assert claim.right_figure is None, claim.id
        elif claim.verdict != "cannot be checked here":
            assert claim.right_figure or claim.reason, claim.id


def test_a_whole_claim_is_read_and_prints_itself():
    one = claims.Claims(claims.read([WHOLE]))
    assert str(one).splitlines()[1].split("   ")[0] == "S9-01"
    assert one.counts() == {"holds": 1}
    assert "<td" in one._repr_html_()
    assert claims.Claims(one.claims, "unit slip").claims == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "nearly"}, "claim S9-01: unknown verdict 'nearly'; known: holds, arithm"),
        ({"check": None}, "claim S9-01 has neither a check nor a reason"),
        ({"colour": "red"}, "claim S9-01 has colour, which no claim has"),
    ],
)
def test_a_claim_that_is_not_whole_is_refused_by_its_id(change, message):
    with pytest.raises(ValueError, match=message):
        claims.read([WHOLE | change])


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="claim S9-01 has no figures, result"):
        claims.read([{k: v for k, v in WHOLE.items() if k not in ("figures", "result")}])
    with pytest.raises(ValueError, match="claims with one id: S9-01"):
        claims.read([WHOLE, WHOLE])
    with pytest.raises(ValueError, match="unknown note '999'"):
        claims.read("999")


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("{}", "holds a dict")])
def test_a_broken_file_is_refused_by_name(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=f"x.json {message}"):
        claims.read(tmp_path / "x.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "900.json").write_text(json.dumps([WHOLE]))
    monkeypatch.setattr(claims, "FOLDER", tmp_path)


def test_the_shell_lists_them(folder, capsys):
    assert main(["claims"]) == 0
    assert capsys.readouterr().out == "900   1 claims: 1 holds\n"
    assert main(["claims", "900", "--verdict", "holds"]) == 0
    assert "It takes 1 GB." in capsys.readouterr().out
    assert main(["claims", "900", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["figures"] == "1 GB"
    assert main(["claims", "123"]) == 2
    assert capsys.readouterr().err == "memlab: unknown note '123'; known: 900\n"


def test_an_installation_without_claims_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(claims, "FOLDER", tmp_path / "data" / "claims")
    for words in (["claims"], ["claims", "004"]):
        assert main(words) == 2
        said = capsys.readouterr()
        assert said.out == "" and "this installation lacks" in said.err
        assert "data/claims/*.json" in said.err
