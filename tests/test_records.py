"""Reading records: what is there, and every way in which a file is none."""

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.files import records
from memlab.files.records import as_json, read, record

ROOT = Path(__file__).parent.parent
ROW = {
    "name": "step/llama/peak",
    "term": "step",
    "what": "a step",
    "by": "derived and traced",
    "predicted": 1000,
    "measured": {"requested": 1012, "allocated": 1536, "reserved": 2097152},
    "compared": "requested",
    "above": 12,
    "below": 0,
    "why": "scratch",
    "state": "measured",
    "message": "",
}
NOTHING = {"requested": None, "allocated": None, "reserved": None}
SKIPPED = ROW | {"name": "context/held", "state": "skipped", "message": "it needs a CUDA device"}
SKIPPED |= {"measured": NOTHING, "predicted": None}
FAILED = SKIPPED | {"name": "fp8/held", "state": "failed", "message": "OutOfMemoryError: no"}
WHOLE = {
    "schema": 1,
    "kind": "cuda",
    "device": "Pretended card",
    "driver": "1.2",
    "cuda": "13.0",
    "torch": "2.13.0",
    "python": "3.11.7",
    "date": "2026-01-02",
    "commit": "abc",
    "command": "memlab record --device cuda",
    "complete": True,
    "unit": "bytes",
    "rows": [ROW, SKIPPED, FAILED],
}


def test_what_a_record_says():
    found = record(WHOLE)
    row, skipped, failed = found.rows
    assert (row.found, row.error, row.holds) == (1012, 12, True)
    assert (skipped.found, skipped.error, skipped.holds) == (None, None, True)
    assert not failed.holds and found.wrong == [failed]
    assert found.counts() == {"measured": 1, "skipped": 1, "failed": 1}
    assert [each.name for each in found.about("step").rows] == [
        "step/llama/peak",
        "context/held",
        "fp8/held",
    ]
    assert found.about("lora").rows == ()
    lines = str(found).splitlines()
    assert lines[0].split() == ["bytes", "predicted", "measured", "error"]
    assert lines[1].split() == ["step/llama/peak", "1,000", "1,012", "+12", "B"]
    assert lines[2].split() == ["fp8/held", "failed"]  # a skipped row is not shown
    assert lines[3] == (
        "Pretended card, driver 1.2, CUDA 13.0, torch 2.13.0, 2026-01-02, commit abc, "
        "`memlab record --device cuda`"
    )
    assert "Pretended card" in found._repr_html_() and "1,012" in found._repr_html_()


@pytest.mark.parametrize(
    ("measured", "above", "below", "holds"),
    [(1012, 12, 0, True), (1013, 12, 0, False), (999, 12, 0, False), (999, 0, 1, True)],
)
def test_a_row_holds_within_its_tolerance(measured, above, below, holds):
    row = ROW | {"above": above, "below": below, "measured": NOTHING | {"requested": measured}}
    assert record(WHOLE | {"rows": [row]}).rows[0].holds is holds


def test_the_counter_that_is_compared():
    row = record(WHOLE | {"rows": [ROW | {"compared": "reserved"}]}).rows[0]
    assert (row.found, row.error) == (2097152, 2096152)


def test_written_and_read_again(tmp_path):
    found = record(WHOLE)
    path = tmp_path / "x.json"
    path.write_text(as_json(found), encoding="utf-8")
    assert read(path) == found and json.loads(path.read_text()) == WHOLE
    empty = record(WHOLE | {"rows": []})
    assert record(json.loads(as_json(empty))) == empty


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "the record is a list; an object is needed"),
        (without(WHOLE, "torch"), "the record has no torch"),
        (WHOLE | {"price": 1}, "the record has price, which no record has"),
        (WHOLE | {"schema": 2}, "schema=2; this memlab reads 1"),
        (WHOLE | {"schema": True}, "schema=True; this memlab reads 1"),
        (WHOLE | {"unit": "MiB"}, "unit='MiB'; all figures are bytes"),
        (WHOLE | {"kind": "tpu"}, "unknown kind 'tpu'; known: cuda, cpu"),
        (WHOLE | {"kind": []}, "unknown kind []"),
        (WHOLE | {"device": ""}, "device='' is no text"),
        (WHOLE | {"complete": 1}, "complete=1 is neither"),
        (WHOLE | {"rows": {}}, "rows is a dict; a list is needed"),
        (WHOLE | {"rows": [ROW, ROW]}, "rows with one name: step/llama/peak"),
        (WHOLE | {"rows": [7]}, "row 1 is a int"),
        (WHOLE | {"rows": [without(ROW, "term")]}, "row step/llama/peak has no term"),
        (WHOLE | {"rows": [ROW | {"name": 3}]}, "row 1: name=3 is no text"),
        (WHOLE | {"rows": [ROW | {"predicted": -1}]}, "predicted=-1 is no whole number of bytes"),
        (WHOLE | {"rows": [ROW | {"predicted": 1.5}]}, "predicted=1.5 is no whole number"),
        (WHOLE | {"rows": [ROW | {"above": None}]}, "above=None is no whole number"),
        (WHOLE | {"rows": [ROW | {"above": True}]}, "above=True is no whole number"),
        (WHOLE | {"rows": [ROW | {"measured": None}]}, "measured is a NoneType"),
        (WHOLE | {"rows": [ROW | {"measured": {}}]}, "measured has no requested"),
        (WHOLE | {"rows": [ROW | {"state": "lost"}]}, "unknown state 'lost'; known: measured"),
        (WHOLE | {"rows": [ROW | {"compared": "used"}]}, "unknown compared 'used'"),
        (WHOLE | {"rows": [ROW | {"state": "failed"}]}, "requested says otherwise"),
        (WHOLE | {"rows": [ROW | {"measured": NOTHING}]}, "requested says otherwise"),
        (WHOLE | {"rows": [FAILED | {"message": ""}]}, "state='failed' without a message"),
    ],
)
def test_what_is_no_record_is_named(fields, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        record(fields)


@pytest.mark.parametrize("bad", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"NaN", b'{"schema": 1}'])
def test_what_is_no_json_is_named(tmp_path, bad):
    (tmp_path / "bad.json").write_bytes(bad)
    with pytest.raises(ValueError, match=r"bad\.json is no record"):
        read(tmp_path / "bad.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_record_is_refused_or_read_and_never_more(data):
    """Put anything anywhere: a ValueError, or a record that can be printed and written again."""
    fields = copy.deepcopy(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        place = fields
        if data.draw(st.booleans()) and isinstance(fields.get("rows"), list) and fields["rows"]:
            place = data.draw(st.sampled_from(fields["rows"]))
            if isinstance(place, dict) and isinstance(place.get("measured"), dict):
                place = data.draw(st.sampled_from([place, place["measured"]]))
        if not isinstance(place, dict):
            continue
        key = data.draw(st.sampled_from(sorted(map(str, place))) if place else st.text(max_size=3))
        if data.draw(st.booleans()):
            place.pop(key, None)
        else:
            place[key] = data.draw(VALUES)
    try:
        found = record(fields)
    except ValueError as error:
        assert str(error)
        return
    assert record(json.loads(as_json(found))) == found
    assert str(found) and found._repr_html_() and isinstance(found.wrong, list)


@settings(max_examples=200, deadline=None)
@given(text=st.text() | VALUES.map(lambda value: json.dumps(value)))
def test_any_text_is_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("fuzz") / "any.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ValueError, match="is no record"):
        read(path)


def test_the_committed_records_are_whole():
    found = records.records()
    assert all(one.complete for one in found)
    assert not [row.name for one in found if one.kind == "cpu" for row in one.wrong]
    assert not [one.device for one in found if one.command.count("--only")]
    assert records.records("cuda") + records.records("cpu") == sorted(
        found, key=lambda one: one.kind, reverse=True
    )
    with pytest.raises(ValueError, match="unknown kind of device 'tpu'"):
        records.records("tpu")


def test_an_installation_without_records_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "data" / "records")
    with pytest.raises(FileNotFoundError, match=r"this installation lacks .*/data/records/"):
        records.records()


def test_a_record_of_a_cpu_misses_by_nothing():
    for one in records.records("cpu"):
        assert {row.error for row in one.rows if row.state == "measured"} == {0}
        assert {(row.above, row.below) for row in one.rows} == {(0, 0)}


@pytest.mark.skipif(not records.records("cuda"), reason="no GPU has been recorded")
def test_no_chapter_says_that_nothing_was_measured_where_something_was():
    """The sentence is typed into the chapters; the record of its chapter makes it untrue."""
    terms = {row.term for one in records.records("cuda") for row in one.rows}
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        text = path.read_text(encoding="utf-8").lower()
        label = re.search(r"\(([a-z0-9-]+)\)=", text)[1]
        assert label not in terms or "not yet measured on a" not in text, path.name
