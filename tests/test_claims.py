"""Each claim of the notes has the verdict and the value that its check computes."""

import importlib
import json
from pathlib import Path

import pytest
from audit.turned import TURNS, turned

from memlab.cli import main
from memlab.files import claims

AUDIT = Path(__file__).parent.parent / "book" / "audit.md"
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
    module = importlib.import_module(f"audit.note_{note}")
    found = getattr(module, claim.check)(claim)
    stored = (claim.result, claim.verdict, claim.right_figure)
    assert (found.result, found.verdict, found.right_figure) == stored
    # Behind it and not beside it: what the check has computed is still at hand.
    if TURNS[claim.id]:
        assert turned(module, claim).verdict != claim.verdict, f"nothing turns {claim.check}"


def test_each_check_is_put_to_the_test_or_counted_on_the_page_as_one_that_is_not():
    assert set(TURNS) == {claim.id for _, claim in ALL if claim.check}
    kinds = claims.Claims([claim for _, claim in ALL]).kinds()
    turned_by_figures = sum(turn is not None for turn in TURNS.values())
    page = " ".join(AUDIT.read_text(encoding="utf-8").split())
    assert f"Of {len(ALL)} claims, {kinds['check']} have a check" in page
    assert f"{kinds['source']} a source" in page and f"{kinds['neither']} neither" in page
    assert f"{turned_by_figures} of the {kinds['check']} checks" in page


def test_the_base_models_of_the_chapters_are_asked_a_public_fact():
    names = ("001", "003", "004")
    trainer, small, free = (importlib.import_module(f"audit.note_{n}") for n in names)
    # The one that fails, and that its chapter is about: the log's peak, of packed nvfp4 states.
    assert 3 * trainer.most_alive(states="nvfp4") < trainer.PEAKS["bf16"]
    assert round(small.weights("bf16") / 1e9, 1) == 2.2
    kept, taken_back = (free.step(tokens, 512) for tokens in (8, 16))
    assert free.fits(kept) and not free.fits(taken_back)


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
    page = one._repr_html_()
    assert "<summary><span>holds</span>: 1</summary>" in page and 'id="S9-01"' in page
    assert "<code>one</code>" in page and one.kinds() == {"check": 1}
    assert claims.Claims(one.claims, "unit slip").claims == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "nearly"}, "claim S9-01: unknown verdict 'nearly'; known: holds, arithm"),
        ({"check": None}, "claim S9-01 has neither a check nor a source nor a reason"),
        ({"colour": "red"}, "claim S9-01 has colour, which no claim has"),
    ],
)
def test_a_claim_that_is_not_whole_is_refused_by_its_id(change, message):
    with pytest.raises(ValueError, match=message):
        claims.read([WHOLE | change])


def test_what_was_read_says_where_and_not_that_it_was_computed():
    seen = claims.Claims(claims.read([WHOLE | {"check": None, "source": "main.rs <at> 0524d2d"}]))
    assert seen.kinds() == {"source": 1}
    assert "source: main.rs &lt;at&gt; 0524d2d" in seen._repr_html_()


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
    assert capsys.readouterr().out == "900   1 claims: 1 holds; judged 1 by check\n"
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
