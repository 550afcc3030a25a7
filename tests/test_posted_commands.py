"""The page of posted readings, product alone: one printed command a reading gives its figure."""

import json
import re
from collections import Counter

import pytest
from posted import headline, kinds, picture, readings
from posted.asked import answers as asked
from posted.asked.words import answer, command, described, figure
from posted.described import Refused
from posted.unseen import answers as unseen

AGAIN = "python tools/posted --write"
FRESH, WORKED = asked.stored()
ROWS = [*FRESH, *WORKED]


def sample():
    """Of each source the first and the last row with a figure, and the first that has none."""
    for name in dict.fromkeys(a.reading.source for a in ROWS):
        some = [a for a in ROWS if a.reading.source == name]
        told = [a for a in some if a.counted]
        refused = [a for a in some if a.command and not a.counted]
        chosen = {a.reading.id: a for a in (*told[:1], *told[-1:], *refused[:1])}
        yield from (pytest.param(a, id=a.reading.id) for a in chosen.values())


def test_each_reading_has_the_command_that_its_mapping_writes():
    """A command changes with its mapping alone; what is asked stands in the file as it is typed."""
    told = {reading.id: asked.line_of(reading)[0] for reading, _ in asked.every()}
    assert {a.reading.id: a.command for a in ROWS} == told, AGAIN
    assert len(ROWS) == len(readings.read()) + len(unseen.read())
    assert all(a.command.startswith("memlab ") for a in ROWS if a.counted)
    assert all(bool(a.reason) != a.counted for a in ROWS)


@pytest.mark.sample(25)
@pytest.mark.parametrize("a", list(sample()))
def test_the_command_prints_the_figure(a):
    """Through the real command line, with nothing added."""
    document, reason = asked.said(a.command)
    if document is None:
        assert (reason, None) == (a.reason, a.bytes), AGAIN
        return
    assert figure(a.reading, document) * asked.summed(a.reading) == a.bytes, AGAIN


def test_what_a_mapping_adds_by_hand_is_known():
    """Every other row, for whose own mapping nothing is asked."""
    for reading, mapping in list(asked.every())[::2]:
        (row,) = [a for a in ROWS if a.reading.id == reading.id]
        assert (row.composed, row.traced) == asked.added(reading, mapping), AGAIN


def test_a_command_says_what_is_stated_and_no_more():
    line = command("gpt2", precision="bf16", tokens=8, lora_targets=("q", "v"), clip=None)
    assert line == "memlab estimate gpt2 --precision bf16 --tokens 8 --lora-targets q,v --json"
    assert command("gpt2", on="H100 80GB", clip=True).endswith("--on 'H100 80GB' --clip --json")
    assert command("octocoder", tokens=8).startswith(
        "memlab trace book/posted/configs/octocoder.json"
    )
    assert command("octocoder").startswith("memlab estimate ")
    assert described("gpt2") and not described("book/posted/configs/octocoder.json")


def test_a_refusal_is_said_in_memlabs_words():
    with pytest.raises(Refused, match="neither a file nor a preset"):
        answer("memlab estimate no-such-model --json")
    with pytest.raises(Refused, match="no-such-option"):
        answer("memlab estimate gpt2 --no-such-option --json")


@pytest.mark.parametrize(
    ("kind", "counter", "wanted"),
    [
        ("train-1gpu", "max_memory_allocated", 5),
        ("train-1gpu", "GPU memory (GB)", 5),
        ("train-1gpu", "peak memory (the script logs both, allocated and reserved)", 5),
        ("train-1gpu", "max reserved", 6),
        ("inference", "model weights take", 1),
        ("resident-1gpu", "memory_allocated() after optimizer.step()", 3),
    ],
)
def test_one_rule_says_which_figure_a_counter_reads(kind, counter, wanted):
    reading = readings.Reading("x", "x", kind, "A100", {}, 1, counter, "")
    said = {"rows": {"weights": 1, "gradients": 1, "logits": None}, "held": {"between_steps": 3}}
    said |= {"peak": {"bytes": 4}, "allocator": {"allocated": 5, "reserved": 6}}
    assert figure(reading, said) == wanted
    alone = {"rows": said["rows"], "held": None, "peak": said["peak"], "allocator": None}
    assert figure(reading, alone) == {5: 4, 6: 4, 3: 2}.get(wanted, wanted)
    if wanted == 6:
        with pytest.raises(Refused, match="no peak"):
            figure(reading, alone | {"peak": None})


def test_a_posted_sum_is_held_against_as_many_answers():
    some = [a for a in ROWS if asked.summed(a.reading) > 1]
    assert {a.reading.source for a in some} == {"qwen"}
    assert all("sum" in a.reading.counter and a.reading.group == "several GPUs" for a in some)


def test_the_tables_say_what_is_stored():
    said = headline.headline(None)
    for found in (FRESH, WORKED):
        _, figures, median, worst = asked.middle(found)
        told = f"| all | {len(found)} | {figures} | {median:.1%} | {headline.signed(worst)} |"
        assert told in said
    without = Counter(bool(a.reason) for a in ROWS)[True]
    numbers = re.findall(r"(\d+) \| (\d+) \|$", kinds.refused(None), re.M)
    assert sum(int(n) for pair in numbers for n in pair) == without
    answered = {a.reading.source for a in ROWS if a.counted}
    assert kinds.examples(None).count("\n$ memlab ") == len(answered)


def test_every_kind_of_misses_has_its_rows():
    """And a kind that has no sentence is said to be unexplained, so that asking again is enough."""
    for pattern, what, why in kinds.REASONS:
        assert what and why and any(re.search(pattern, a.reading.id) for a in ROWS), pattern
    assert "| Not explained yet. |" in kinds.misses(None)


def test_readme_and_picture_show_the_stored_figures():
    assert headline.README.read_text(encoding="utf-8") == headline.readme(), AGAIN
    assert headline.sentence() in headline.readme()
    assert picture.PATH.read_text(encoding="utf-8") == picture.picture(), AGAIN
    powers = [2**picture.LOW, 2**picture.HIGH]
    told = [size for a in ROWS if a.counted for size in (a.bytes, a.reading.bytes)]
    assert powers[0] < min(told) and max(told) < powers[1]


def test_the_page_says_what_the_figures_show():
    page = " ".join((readings.ROOT / "book" / "posted.md").read_text(encoding="utf-8").split())
    errors = {
        name: [a.error for a in found if a.counted]
        for name, found in (("new", FRESH), ("old", WORKED))
    }
    for some in errors.values():
        outside = [e for e in some if abs(e) > headline.NEAR]
        assert sum(e < 0 for e in outside) > len(outside) / 2
    assert "most of the others lie below it" in page
    configs = {path.stem for path in (readings.ROOT / "book/posted/configs").glob("*.json")}
    used = {name for a in ROWS for name in re.findall(r"configs/(.*?)\.json", a.command)}
    assert used == configs and "all of these are in `book/posted/configs`" in page
    assert json.loads(asked.PATH.read_text(encoding="utf-8")).keys() == {a.reading.id for a in ROWS}
