"""Snapshots are pickles from anybody: plain values are read, nothing else, and nothing runs."""

import builtins
import copyreg
import os
import pickle
import struct
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.files import safe_pickle
from memlab.files.safe_pickle import load
from memlab.files.snapshots import BEFORE, read_snapshot, summary

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=30,
)


@given(PLAIN, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_back_as_they_were(value, protocol):
    assert load(pickle.dumps(value, protocol)) == value


def test_what_is_shared_stays_shared():
    frames = [{"line": 1}]
    found = load(pickle.dumps([frames, frames], 4))
    assert found[0] is found[1]


class Calls:
    """Whose pickle calls a function when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class State:
    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        raise AssertionError("ran")


def extension():
    name = os.system.__module__, "system", 12345
    copyreg.add_extension(*name)
    try:
        return pickle.dumps(os.system, 2)
    finally:
        copyreg.remove_extension(*name)


MARKER = "marker-of-a-test"
HOSTILE = {
    # A posix system function is pickled under the name of its own module.
    "a shell": (b"cos\nsystem\n(S'touch %s'\ntR." % MARKER.encode(), r"os\.system"),
    "a shell, protocol 4": (
        pickle.dumps(Calls(os.system, f"touch {MARKER}"), 4),
        r"(posix|nt)\.system",
    ),
    "in a snapshot": (
        pickle.dumps({"segments": [], "device_traces": [[Calls(builtins.eval, "1")]]}, 4),
        r"builtins\.eval",
    ),
    "nested calls": (
        pickle.dumps(Calls(getattr, Calls(__import__, "os"), "system"), 4),
        r"builtins\.getattr",
    ),
    "a state": (pickle.dumps(State(), 4), r"test_safe_pickle\.State"),
    "an extension": (extension(), r"extension"),
    "an object asked for": (b"\x80\x04\x8c\x04evilQ.", r"BINPERSID"),
    "a persistent name": (b"Pevil\n.", r"PERSID|evil"),
    "an old instance": (b"(S'x'\nios\nsystem\n.", r"STRING|os\.system"),
    "a name from the memo": (
        b"\x80\x04\x8c\x02os\x94\x8c\x06system\x940h\x00h\x01\x93.",
        r"POP|os\.system",
    ),
    "a call of nothing": (b"\x80\x04}})R.", r"REDUCE"),
    "a state for a dict": (b"\x80\x04}}b.", r"BUILD"),
    "a set": (pickle.dumps({1}, 4), r"EMPTY_SET"),
    "bytes": (pickle.dumps(bytearray(b"1"), 4), r"builtins\.bytearray"),
    "a key that is no text": (pickle.dumps({(1, 2): 3}, 4), r"key is a tuple"),
    "a huge number": (pickle.dumps(1 << 4096, 4), r"whole number of 4,097 bits"),
    "many containers": (pickle.dumps([], 4)[:-1] + b"(" * 200 + b".", r"100 containers"),
    "many values": (b"\x80\x04" + b"]" * 300_000 + b".", r"200,000 values"),
    "a list into nothing": (b"\x80\x04]a.", r"damaged"),
    "two values": (b"\x80\x04]].", r"does not end with one value|damaged"),
    "a memo of nothing": (b"\x80\x04h\x07.", r"damaged"),
    "no pickle": (b"<html>", r"not a pickle"),
    "empty": (b"", r"truncated"),
    "long text that is not there": (
        b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"a.",
        "truncated",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused_by_name(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, words = HOSTILE[kind]
    (tmp_path / "run.pickle").write_bytes(data)
    with pytest.raises(ValueError, match=words) as refused:
        read_snapshot("run.pickle")
    assert "run.pickle" in str(refused.value) and "\n" not in str(refused.value)
    assert not (tmp_path / MARKER).exists()


def test_the_marker_would_be_seen(tmp_path):
    """What the test above looks for does happen where `pickle` itself reads the file."""
    (tmp_path / "run.pickle").write_bytes(HOSTILE["a shell"][0])
    code = "import pickle; pickle.load(open('run.pickle', 'rb'))"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / MARKER).exists()


def laughs(levels, width=10):
    """Lists of references to lists of references: few bytes, 10 ** levels members."""
    value = ["lol"]
    for _ in range(levels):
        value = [value] * width
    return value


def test_a_billion_laughs_cost_no_more_than_their_file():
    data = pickle.dumps({"segments": laughs(60), "device_traces": []}, 4)
    assert len(data) < 5_000
    with pytest.raises(ValueError, match="an entry of segments is a list"):
        summary(load(data))
    bomb = {"segments": [], "device_traces": [[{"action": laughs(60), "size": laughs(60)}]]}
    with pytest.raises(ValueError, match="size is a list"):
        summary(load(pickle.dumps(bomb, 4)))


def test_entries_count_as_often_as_they_are_named(monkeypatch):
    monkeypatch.setattr("memlab.files.snapshots.MOST_ENTRIES", 1_000)
    block = {"size": 512, "state": "inactive"}
    segment = {"total_size": 512, "blocks": [block] * 100}
    with pytest.raises(ValueError, match="more than 1,000 entries"):
        summary({"segments": [segment] * 100, "device_traces": []})


def test_a_value_that_holds_itself_is_read_and_refused():
    loop = []
    loop.append(loop)
    assert load(pickle.dumps(loop, 4))[0][0][0]
    with pytest.raises(ValueError, match="no memory snapshot"):
        summary(load(pickle.dumps({"segments": loop, "device_traces": loop}, 4)))


def test_limits_of_size(monkeypatch):
    monkeypatch.setattr(safe_pickle, "MOST_VALUES", 10)
    with pytest.raises(ValueError, match="more than 10 values"):
        load(pickle.dumps(list(range(20)), 4))
    monkeypatch.setattr(safe_pickle, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="at most 10 are read"):
        load(pickle.dumps(list(range(20)), 4))


FRAMES = [
    {"filename": "/x/site-packages/torch/nn/functional.py", "line": 3, "name": "linear"},
    {"filename": "/home/me/train.py", "line": 7, "name": "main"},
]
SNAPSHOT = {
    "segments": [
        {
            "device": 0,
            "total_size": 2048,
            "blocks": [
                {
                    "size": 1024,
                    "requested_size": 1000,
                    "state": "active_allocated",
                    "frames": FRAMES,
                },
                {"size": 1024, "state": "inactive"},
            ],
        },
        {"device": 0, "total_size": 4096, "blocks": [{"size": 4096, "state": "inactive"}]},
    ],
    "device_traces": [
        [
            {"action": "alloc", "addr": 64, "size": 512, "frames": FRAMES},
            {"action": "alloc", "addr": 99, "size": 256, "frames": []},
            {"action": "free_requested", "addr": 64, "size": 512},
            {"action": "free_completed", "addr": 64, "size": 512},
            {"action": "oom", "size": 1, "device_free": 5},
        ]
    ],
}


def test_a_summary_adds_up():
    found = summary(load(pickle.dumps(SNAPSHOT, 4)))
    assert (found.allocated, found.requested, found.reserved) == (1024, 1000, 6144)
    assert (found.stuck, found.free) == (1024, 4096)
    assert found.allocated + found.stuck + found.free == found.reserved
    # 1,024 bytes are left and the trace knows 256 of them: 768 were there before it began.
    assert found.peak == 768 + 512 + 256
    assert sum(place.bytes for place in found.at_peak) == found.peak
    assert {place.where for place in found.at_peak} >= {BEFORE, "train.py:7 main"}
    assert "train.py:7 main" in str(found) and "train.py:7 main" in found._repr_html_()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"segments": None}, "segments is a NoneType"),
        ({"segments": [{"total_size": -1, "blocks": []}]}, "total_size=-1 is negative"),
        ({"segments": [{"total_size": True, "blocks": []}]}, "total_size is a bool"),
        ({"segments": [{"total_size": 1}]}, "blocks is a NoneType"),
        ({"device_traces": [{}]}, "a trace is a dict"),
    ],
)
def test_a_snapshot_that_is_built_otherwise(change, words):
    with pytest.raises(ValueError, match=words):
        summary(SNAPSHOT | change)
    with pytest.raises(ValueError, match="no 'segments'"):
        summary({})


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_snapshots_are_read_or_refused(data):
    whole = bytearray(pickle.dumps(SNAPSHOT, data.draw(st.sampled_from([2, 4, 5]))))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        if not whole:
            break
    cut = data.draw(st.integers(0, len(whole)))
    try:
        summary(load(bytes(whole[:cut] if data.draw(st.booleans()) else whole)))
    except ValueError as error:
        assert "\n" not in str(error)
