"""Readings that memlab was asked about before anybody had worked on them: first answers stay."""

import hashlib
import json
import re

import pytest
from posted import readings
from posted.unseen import answers, autoawq, tables

UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
AGAIN = "python tools/posted --unseen"
# Of the first answers, as they were given: whoever changes one of them changes what was published.
FIRST = "375f87976b76ee7aa96a7d96281c190a76f601d5aa9739b8404ca76ea3b410b5"


@pytest.fixture(scope="module")
def stored():
    return answers.stored()


def test_every_reading_has_its_source_and_the_figure_that_was_printed():
    heads = readings.sources(answers.FOLDER)
    assert set(heads) == set(answers.MAPPINGS) and not set(heads) & set(readings.sources())
    rows = [(head, head["every"] | row) for head in heads.values() for row in head["readings"]]
    assert len({row["id"] for _, row in rows}) == len(rows) == 282
    for head, row in rows:
        assert head["licence"] and head["date"] and head["not_stated"] and row["device"]
        assert "address" in row or re.fullmatch("[0-9a-f]{9,10}", row["commit"])
        assert row["bytes"] == pytest.approx(row["printed"] * UNITS[row["unit"]], abs=1), row["id"]
        assert row["kind"] in readings.KINDS and row["counter"]


def test_the_first_answers_are_those_that_were_given(stored):
    told = json.dumps([[a.reading.id, a.reading.bytes, a.bytes, a.reason] for a in stored[0]])
    assert hashlib.sha256(told.encode()).hexdigest() == FIRST


def test_no_reading_is_missed_by_more_than_before(stored):
    """Of the two sources that take longest every other row is asked again."""
    worse, other = [], []
    for i, (reading, before) in enumerate(zip(answers.read(), stored[1], strict=True)):
        if reading.source in ("qwen", "fsdp_qlora") and i % 2:
            continue
        now = answers.answer(reading)
        if now == before:
            continue
        lost = before.counted and not now.counted
        far = before.counted and now.counted and abs(now.error) > abs(before.error)
        (worse if lost or far else other).append(reading.id)
    assert not worse, f"memlab misses more than it did: {worse}"
    assert not other, f"these answers changed for the better or have a new reason; {AGAIN}: {other}"


def test_every_answer_is_counted(stored):
    for found in stored:
        assert all(a.counted == (a.bytes is not None) == (a.reason == "") for a in found)


def test_the_page_tells_the_first_answers(stored):
    page = (readings.ROOT / "book" / "posted.md").read_text(encoding="utf-8").replace("\n  ", " ")
    page = page.replace("\n", " ")
    first = {a.reading.id: a for a in stored[0]}
    now = {a.reading.id: a for a in stored[1]}
    assert f"{len(first)} readings" in page and "eleven other sources" in page
    assert len(readings.sources(answers.FOLDER)) == 11
    assert "| inference | 158 | 106 (67%) | 1.2% |" in tables.classes(None)
    assert "within 1.2% at the median" in page
    one = [a for a in first.values() if a.counted and a.reading.group == "training, one GPU"]
    qwen = [a.error for a in one if a.reading.source == "qwen"]
    assert (len(qwen), len(one)) == (36, 43) and "36 of the 43 training rows" in page
    assert (round(max(qwen), 3), round(min(qwen), 1)) == (-0.065, -0.3)
    assert "by 6.5 to 30%" in page
    large = first["qwen/72B/generate-2048/BF16"]
    assert round(large.bytes / 2**30, 2) == 144.65 and "144.65 GiB" in page
    assert round(large.error, 3) == 0.073 and "an error of 7.3%" in page
    short = [name for name, a in first.items() if name.startswith("autoawq") and "x64" in name]
    lows = [first[name].error for name in short if first[name].counted]
    assert (round(max(lows), 3), round(min(lows), 3)) == (-0.057, -0.184)
    assert "were 5.7 to 18.4% low" in page
    vicuna = autoawq.shape("Vicuna 7B")
    assert round(autoawq.parts(vicuna) / 2**30, 2) == 0.78 and "0.78 GiB in Vicuna-7B" in page
    near = [abs(now[name].error) < 0.02 for name in short if now[name].counted]
    assert (sum(near), len(near)) == (9, 10) and "nine of the ten rows" in page
    flash = "llms-from-scratch/speed/7-flash"
    assert round(first[flash].error, 3) == 0.388 and "was 38.8% too high" in page
    assert abs(now[flash].error) < 0.0025 and "met within 0.2%" in page
    full = [n for n in first if n.startswith("qwen/1.8B/Full")]
    assert all(first[n].bytes is None for n in full) and "The six rows" in page
    lows = [now[n].error for n in full]
    assert (len(lows), round(max(lows), 3), round(min(lows), 3)) == (6, -0.042, -0.186)
    assert "are 4.2 to 18.6% low" in page
    record = json.loads((readings.ROOT / "tests" / "deepspeed1.json").read_text(encoding="utf-8"))
    assert f"proven on {len(record['runs'])} real runs" in page


def test_the_tables_say_what_is_stored(stored):
    assert tables.by_source(None).count("https://") == 11
    counts = re.findall(r"\| (\d+) \|$", tables.refused(None), re.M)
    assert sum(map(int, counts)) == sum(a.bytes is None for a in stored[0])
    assert len(counts) <= 20
