"""The record of a watched program: read whole, read cut off, refused by name."""

import json
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.files import timelines as timeline_file
from memlab.files.timelines import read_timeline
from memlab.watch.record import MOST, Record
from memlab.watch.timeline_writer import PAGE, TimelineWriter

HEAD = {
    "command": ["python", "train.py"],
    "started": "2026-01-02T03:04:05+00:00",
    "source": "process",
    "device": None,
    "total_bytes": 2**35,
    "process_counts": "PSS",
    "device_counts": None,
}


def written(path, looks=9, **head):
    writer = TimelineWriter(path, {**HEAD, **head})
    writer.publish()
    for i in range(looks):
        writer.sample(i / 10, 1000 + i, None if head.get("source") != "device" else 5 * i)
        if i == 3:
            writer.event({"at": 0.3, "kind": "soft-limit", "limit": 1003, "bytes": 1003})
    writer.event({"at": looks / 10, "kind": "exit", "code": 0})
    writer.close(0)
    return path


def test_what_is_written_is_read(tmp_path):
    found = read_timeline(written(tmp_path / "a.json"))
    assert found["memlab_timeline"] == 1 and found["command"] == ["python", "train.py"]
    assert found["samples"] == [[i / 10, 1000 + i, None] for i in range(9)]
    assert [event["kind"] for event in found["events"]] == ["soft-limit", "exit"]
    assert found["peak_bytes"] == 1008 and found["exit"] == 0
    on_card = written(tmp_path / "b.json", source="device", device="H100", device_counts="card")
    assert read_timeline(on_card)["peak_bytes"] == 40
    assert not (tmp_path / "a.json").read_text().endswith(" ")


def test_it_is_a_whole_document_after_every_write(tmp_path):
    path = tmp_path / "a.json"
    writer = TimelineWriter(path, HEAD)
    assert not path.exists()
    writer.publish()
    for i in range(400):
        writer.sample(i / 10, i, None)
        if i % 50 == 0:
            writer.event({"at": i / 10, "kind": "signal", "signal": "SIGUSR1"})
        assert len(json.loads(path.read_text())["samples"]) == i + 1
        assert path.stat().st_size % PAGE == 0
    assert read_timeline(path)["exit"] is None
    writer.close(None)


def test_an_event_may_learn_more(tmp_path):
    writer = TimelineWriter(tmp_path / "a.json", HEAD)
    writer.publish()
    event = {"at": 0.1, "kind": "hard-limit"}
    writer.event(event)
    event["alive"] = [{"pid": 1}]
    writer.close(121)
    assert read_timeline(tmp_path / "a.json")["events"] == [event]


def test_a_record_that_is_not_published_leaves_what_was_there(tmp_path):
    (tmp_path / "a.json").write_text("mine")
    TimelineWriter(tmp_path / "a.json", HEAD).discard()
    assert [f.name for f in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "mine"


def test_cut_anywhere_it_gives_all_complete_samples(tmp_path):
    words = written(tmp_path / "a.json").read_bytes()
    first = words.index(b"\n")
    for cut in range(len(words) - 1):
        path = tmp_path / "cut.json"
        path.write_bytes(words[:cut])
        if cut < first:
            with pytest.raises(ValueError, match=r"cut\.json is not a timeline"):
                read_timeline(path)
            continue
        whole = sum(line.startswith(b"[") and b"]" in line for line in words[:cut].splitlines())
        with pytest.warns(UserWarning, match=f"cut.json is cut off: {whole} complete samples"):
            found = read_timeline(path)
        assert len(found["samples"]) == whole and found["exit"] is None
        assert len(found["events"]) == sum(
            line.startswith(b"{") and line.rstrip(b",").endswith(b"}")
            for line in words[:cut].splitlines()[1:]
        )


WRONG = {
    "memlab_timeline": (2, "1", True, None, 1.5),
    "command": ("ls", [], [1], None),
    "started": ("yesterday", 5, None),
    "source": ("gpu", None, 1, ["device"]),
    "device": (1, ["a"]),
    "total_bytes": (0, -1, 1.5, "9", None, True),
    "samples": (None, {}, [[0, 1]], [[0, -1, None]], [[0, 1.5, None]], [["0", 1, None]],
                [[1, 1, None], [0.5, 1, None]], [[0, 1, "x"]], [[True, 1, None]], [5]),
    "events": (None, [5], [{"at": 1}], [{"at": 1, "kind": "party"}], [{"at": -1, "kind": "exit"}]),
    "peak_bytes": (5, -1, None, "x"),
    "exit": ("0", -9, 1.0, True),
    "process_counts": ("VSZ", None),
    "device_counts": ("all",),
}  # fmt: skip


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_value_is_refused_by_name(tmp_path, key):
    good = read_timeline(written(tmp_path / "a.json"))
    for value in WRONG[key]:
        path = tmp_path / "bad.json"
        path.write_text(json.dumps({**good, key: value}))
        with pytest.raises(ValueError, match=r"bad\.json is not a timeline of memlab watch: ") as e:
            read_timeline(path)
        told = {"samples": "sample", "events": "event", "memlab_timeline": "memlab_timeline"}
        assert told.get(key, key) in str(e.value)
        assert "\n" not in str(e.value) and len(str(e.value)) < 300


def test_what_is_missing_is_named_and_what_may_be_missing_is_not(tmp_path):
    good = read_timeline(written(tmp_path / "a.json"))
    path = tmp_path / "less.json"
    for key in good:
        path.write_text(json.dumps({k: v for k, v in good.items() if k != key}))
        if key in timeline_file.COUNTS:
            assert key not in read_timeline(path)
        else:
            with pytest.raises(ValueError, match=f"no {key}"):
                read_timeline(path)
    path.write_text(json.dumps({**good, "source": "device"}))
    with pytest.raises(ValueError, match="device is null"):
        read_timeline(path)


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"5",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"a": NaN}',
        b"[1e999]",
        b"\0" * 9,
    ],
)
def test_other_files_are_refused(tmp_path, words):
    path = tmp_path / "other.json"
    path.write_bytes(words)
    with pytest.raises(ValueError, match=r"other\.json is not a timeline"):
        read_timeline(path)
    for place in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(ValueError, match=place.name):
            read_timeline(place)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_fuzzed_files_are_read_or_refused_and_nothing_else(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("fuzz", numbered=True)
    words = written(folder / "a.json").read_bytes()
    kind = data.draw(st.sampled_from(["bytes", "splice", "value"]))
    if kind == "bytes":
        words = data.draw(st.binary(max_size=200))
    elif kind == "splice":
        a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(words))] * 2)))
        words = words[:a] + data.draw(st.binary(max_size=9)) + words[b:]
    else:
        document = json.loads(words)
        document[data.draw(st.sampled_from(sorted(document)))] = data.draw(values)
        words = json.dumps(document).encode()
    path = folder / "b.json"
    path.write_bytes(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = read_timeline(path)
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            assert set(timeline_file.KEYS) <= set(found)
            json.dumps(found, allow_nan=False)


def test_a_long_run_stays_small_in_memory_and_keeps_its_peak(tmp_path):
    record = Record(None, HEAD, {})
    for i in range(5 * MOST + 3):
        record.look(i / 10, 10**6 if i == 7777 else i % 100, None)
    assert len(record._looks) < MOST
    looks = [*record._looks, *([record._pending] if record._pending else [])]
    assert max(looks, key=lambda look: look[1]) == (777.7, 10**6) and record.peak == 10**6
    assert looks == sorted(looks) and looks[-1][0] > 5 * MOST / 10 - 1


def test_a_full_disk_ends_the_record_and_not_the_run(tmp_path, monkeypatch):
    record = Record(str(tmp_path / "a.json"), HEAD, {})
    record.publish()
    record.look(0.0, 1, None)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    assert record.look(0.1, 2, None) == 2
    assert "No space left" in record.trouble
    record.look(0.2, 3, None)
    record.close(0)
    monkeypatch.undo()
    assert read_timeline(tmp_path / "a.json")["samples"] == [[0.0, 1, None]]
    assert (tmp_path / "a.svg").read_text().rstrip().endswith("</svg>")


def test_one_writer_has_the_file(tmp_path):
    """Before it is published and after, and not when it is closed or given up."""
    path = tmp_path / "a.json"
    first = TimelineWriter(path, HEAD)
    with pytest.raises(ValueError, match="--out a.json: another memlab watch is writing it"):
        TimelineWriter(path, HEAD)
    first.publish()
    with pytest.raises(ValueError, match="another memlab watch"):
        TimelineWriter(path, HEAD)
    first.close(0)
    (tmp_path / ".a.json.new").write_text("what a writer that was killed has left" * 999)
    second = TimelineWriter(path, HEAD)
    second.discard()
    third = TimelineWriter(path, HEAD)
    third.publish()
    third.close(0)
    assert len(read_timeline(path)["samples"]) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_full_disk_leaves_no_half_picture(tmp_path, monkeypatch):
    def full(path, words):
        path.write_text(words[:10])
        raise OSError(28, "No space left on device")

    record = Record(str(tmp_path / "a.json"), HEAD, {})
    record.publish()
    monkeypatch.setattr("memlab.watch.record._made", full)
    record.look(0.0, 1000, None)
    record.close(0)
    assert "No space left" in record.trouble
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
