"""Each claim of the notes has the verdict and the value that its check computes."""

import importlib
import itertools
import json
import re
from pathlib import Path

import claims_tables
import pytest
from audit.settings import SETTINGS
from audit.turned import TURNS, turned

from memlab.cli import main
from memlab.files import claims, claims_picture

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


# Trains a small model twice to the same losses, as test_muon_lion.py does over fewer steps.
LONG = {"parity": pytest.mark.deep}


@pytest.mark.parametrize(
    ("note", "claim"),
    [pytest.param(*pair, marks=LONG.get(pair[1].check, ())) for pair in ALL if pair[1].check],
    ids=lambda x: getattr(x, "id", x),
)
def test_the_check_finds_what_is_stored(note, claim):
    module = importlib.import_module(f"audit.note_{note}")
    found = getattr(module, claim.check)(claim)
    stored = (claim.result, claim.verdict, claim.right_figure)
    assert (found.result, found.verdict, found.right_figure) == stored
    # Behind it and not beside it: what the check has computed is still at hand.
    assert turned(module, claim).verdict != claim.verdict, f"nothing turns {claim.check}"


def test_each_check_is_put_to_the_test_and_the_page_counts_each_kind():
    checked = {claim.id: claim.check for _, claim in ALL if claim.check}
    assert set(TURNS) <= set(checked)
    assert {field for turn in TURNS.values() for field in turn} == {"figures", "claim"}
    by_settings = {check for name, check in checked.items() if name not in TURNS}
    assert set(SETTINGS) == by_settings and all(SETTINGS.values())
    every = claims.Claims([claim for _, claim in ALL])
    kinds, note = every.kinds(), len(every.of_the_note().claims)
    page = " ".join(AUDIT.read_text(encoding="utf-8").split())
    assert f"The five notes make {note} claims; we added {len(ALL) - note} more" in page
    assert f"The {len(ALL)} claims were judged in three ways: - {kinds['check']} by a" in page
    assert f"- {kinds['source']} by a *source*: we read a line" in page
    assert f"- {kinds['neither']} by neither: their verdict rests on the reason" in page
    unchecked = [c for _, c in ALL if c.verdict == "cannot be checked here"]
    both = sum(not c.check and not c.source for c in unchecked)
    assert (both, f"are among the {len(unchecked)} that" in page) == (9, True) and "Nine of" in page
    assert f"Each of the {kinds['check']} checks" in page


def test_the_base_models_of_the_chapters_are_asked_a_public_fact():
    half, trainer, report, small, free = (
        importlib.import_module(f"audit.note_{note}") for note in claims.notes()
    )
    # d26 trains with a batch of 16 on 80 GB, and not with 32.
    assert half.peak(16) <= half.limit("H100 80GB") < half.peak(32)
    # The one that fails, and that its chapter is about: the log's peak, of packed nvfp4 states.
    assert 3 * trainer.most_alive(states="nvfp4") < trainer.PEAKS["bf16"]
    # Out of memory on 24 GB, as the project's status page says; fused attention would fit.
    launched, fused = (report.most(batch=8, eager=way) for way in (True, False))
    assert fused < report.limit_of("RTX 4090")[0] < launched
    # 2.2 GB on the disk in bf16.
    assert round(small.weights("bf16") / 1e9, 1) == 2.2
    kept, taken_back = (free.step(tokens, 512) for tokens in (8, 16))
    assert free.fits(kept) and not free.fits(taken_back)


def test_a_source_is_linked_in_the_version_that_was_read():
    for _, claim in ALL:
        if claim.source:
            version = re.search(r" at ([0-9a-f]{7})|(0\.9\.2)", claim.source)
            wanted = version.group(version.lastindex) if version else ""
            assert wanted in claim.link, claim.id
            # The note's own words are found by their line.
            own = claim.source.startswith(("the note", "the report"))
            assert claim.link.endswith(f"#L{claim.line}") == own, claim.id


def test_a_claim_that_does_not_hold_has_a_right_figure_or_a_reason():
    for _, claim in ALL:
        if claim.verdict == "holds":
            assert claim.right_figure is None, claim.id
        elif claim.verdict != "cannot be checked here":
            assert claim.right_figure or claim.reason, claim.id


def test_each_claim_has_the_note_s_own_words_and_their_line():
    for note in claims.notes():
        found = claims.read(note)
        for one in found:
            assert one.quote == " ".join(one.quote.split()) and one.line > 0, one.id
            assert 1 <= len(one.quote.split()) <= 15 and len(one.quote) <= 110, one.id
            assert not re.search(r"[*`$\\]|^[#>│]", one.quote), f"{one.id}: markup"
        # A claim that was on the list follows the note, but for a table that is read by columns.
        lines = [one.line for one in found if not one.new]
        back = sum(after < before for before, after in itertools.pairwise(lines))
        assert back <= 4 and lines[-1] > 0.8 * max(one.line for one in found), note
        # The quotes are spread over the note: no line is taken for everything.
        assert len({one.line for one in found}) > len(found) / 3, note


def test_a_quote_is_in_the_language_of_its_note():
    page = claims.Claims(claims.read("001"))._repr_html_()
    words = "結論：在全參數訓練下，峰值顯存預計約為 28 GB 左右。"
    place = '<small data-place="note-001-77">line 77</small>'
    assert f'<q lang="zh-TW">{words}</q> {place}' in page
    for note, language in (("000", "pt-BR"), ("002", "en"), ("003", "pt-BR"), ("004", "en")):
        page = claims.Claims(claims.read(note))._repr_html_()
        assert set(re.findall(r'<q lang="([^"]+)">', page)) == {language}


def test_a_picture_shows_every_fate_and_what_was_predicted():
    assert set(claims_picture.FATES) == set(claims.VERDICTS)
    for note in claims.notes():
        found = claims.Claims(claims.read(note))
        page = found._repr_html_()
        bar = re.search(r'<svg aria-hidden="true" width="100%" height="28">.*?</svg>', page)[0]
        wide = [float(part) for part in re.findall(r'width="([\d.]+)%" height="28" fill', bar)]
        own = found.of_the_note()
        shares = [100 * count / len(own.claims) for count in own.counts().values()]
        assert wide == pytest.approx(shares, abs=0.01) and sum(wide) == pytest.approx(100, abs=0.1)
        money = [one for one in found.claims if one.money]
        assert page.count('<th scope="row">predicted</th>') == len(money)
        for one in money:
            known = {f"{c.claim} {c.figures}" for c in found.claims}
            assert one.money["predicted"].split()[0] in f"{one.claim} {one.quote}", one.id
            *_, (label, right) = one.money.items()
            assert right.split()[0] in one.right_figure, one.id
            assert label == "right" or one.right_figure.startswith("at least"), one.id
            assert "was read" not in one.money or any(one.money["was read"] in k for k in known)
        # One scale for all of a note's bars, so one unit.
        assert len({v.partition(" ")[2] for one in money for v in one.money.values()}) <= 1, note


def test_the_claims_of_a_note_and_ours_are_counted_apart():
    ours = WHOLE | {"id": "S9-101", "new": True, "verdict": "unit slip", "right_figure": "1 GiB"}
    found = claims.Claims(claims.read([WHOLE, ours]))
    lines = [line.split() for line in str(found.summary()).splitlines()]
    assert [*lines[1], *lines[2]] == ["holds", "1", "0", "unit", "slip", "0", "1"]
    page = found._repr_html_()
    assert "<span>unit slip</span>: 0, and 1 added while auditing</summary>" in page
    bar = re.search(r'<svg aria-hidden="true" width="100%" height="28">.*?</svg>', page)[0]
    assert bar.count("<rect") == 1


def test_what_a_note_says_again_is_one_row_with_all_its_places():
    again = {"quote": "1 GB", "line": 7, "also": {"S9-04": 9}}
    page = claims.Claims(claims.read([WHOLE | again]))._repr_html_()
    assert '<tr id="S9-01"><th scope="row"><span id="S9-04"></span>' in page
    assert re.findall(r'data-place="([^"]+)">line (\d+)', page) == [
        ("note-009-7", "7"),
        ("note-009-9", "9"),
    ]
    with pytest.raises(ValueError, match="claims with one id: S9-04"):
        claims.read([WHOLE | again, WHOLE | {"id": "S9-04"}])


def test_no_row_repeats_another():
    for note in claims.notes():
        shown = [(c.check, c.result, c.verdict) for c in claims.read(note) if c.check]
        assert len(set(shown)) == len(shown), note


def test_the_chapters_show_the_claims_as_they_are_now():
    wanted = claims_tables.tables()
    assert len(wanted) == len(claims.notes())
    for path, text in wanted.items():
        assert path.read_text("utf-8") == text, f"{path.name}: run tools/claims_tables.py"


def test_a_whole_claim_is_read_and_prints_itself():
    one = claims.Claims(claims.read([WHOLE]))
    assert str(one).splitlines()[1].split("   ")[0] == "S9-01"
    assert one.counts() == {"holds": 1}
    page = one._repr_html_()
    assert "<span>holds</span>: 1</summary>" in page and 'id="S9-01"' in page
    assert "<code>one</code>" in page and one.kinds() == {"check": 1}
    assert claims.Claims(one.claims, "unit slip").claims == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "nearly"}, "claim S9-01: unknown verdict 'nearly'; known: holds, arithm"),
        ({"check": None}, "claim S9-01 has neither a check nor a source nor a reason"),
        ({"colour": "red"}, "claim S9-01 has colour, which no claim has"),
        ({"source": "main.rs"}, "claim S9-01: a source needs a link, an https address"),
        ({"link": "https://example.org"}, "claim S9-01: a source needs a link"),
        ({"source": "main.rs", "link": "main.rs"}, "claim S9-01: a source needs a link"),
    ],
)
def test_a_claim_that_is_not_whole_is_refused_by_its_id(change, message):
    with pytest.raises(ValueError, match=message):
        claims.read([WHOLE | change])


def test_what_was_read_says_where_and_not_that_it_was_computed():
    source = {"source": "main.rs <at> 0524d2d", "link": "https://example.org/0524d2d?a=1&b=2"}
    seen = claims.Claims(claims.read([WHOLE | {"check": None} | source]))
    assert seen.kinds() == {"source": 1}
    link = (
        '<a href="https://example.org/0524d2d?a=1&amp;b=2">source: main.rs &lt;at&gt; 0524d2d</a>'
    )
    assert link in seen._repr_html_()
    assert str(seen.summary()).splitlines()[-1].split("   ")[0] == "judged by a source"


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
    assert capsys.readouterr().out == "900   1 claim: 1 holds; judged 1 by check\n"
    assert main(["claims", "900", "--verdict", "holds"]) == 0
    assert "It takes 1 GB." in capsys.readouterr().out
    assert main(["claims", "900", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["figures"] == "1 GB"
    ours = WHOLE | {"id": "S9-101", "new": True}
    (claims.FOLDER / "900.json").write_text(json.dumps([WHOLE, ours]))
    assert main(["claims"]) == 0
    said = "900   1 claim: 1 holds; 1 claim added while auditing: 1 holds; judged 2 by check\n"
    assert capsys.readouterr().out == said
    assert main(["claims", "123"]) == 2
    assert capsys.readouterr().err == "memlab: unknown note '123'; known: 900\n"


def test_an_installation_without_claims_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(claims, "FOLDER", tmp_path / "data" / "claims")
    for words in (["claims"], ["claims", "004"]):
        assert main(words) == 2
        said = capsys.readouterr()
        assert said.out == "" and "this installation lacks" in said.err
        assert "data/claims/*.json" in said.err
