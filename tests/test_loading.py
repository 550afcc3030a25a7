"""Loading: what is there at each moment, against the program itself and against the process."""

import json
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import GB, Model, Run
from memlab.lab import loading
from memlab.measure import Tracker, storage_bytes
from memlab.measure.process import apart, available, memory
from memlab.model.checkpoint_file import listed, sizes
from memlab.terms.loading import WAYS, moments, peak
from memlab.terms.loading import shards as split

NAMES = [way[0] for way in WAYS]
SMALL = Model(
    layers=2, d_model=128, d_ff=352, heads=4, kv_heads=2, vocab=256, positions=64, tied=False
)
LIMIT = 2**19
# As the Hub lists the four files of meta-llama/Meta-Llama-3-8B-Instruct.
PUBLISHED = [4_976_698_672, 4_999_802_720, 4_915_916_176, 1_168_138_808]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint")
    loading.save(SMALL, str(path), LIMIT)
    return str(path)


@pytest.fixture(scope="module")
def both(folder):
    """Bytes of each tensor in the file (fp32) and in the model (bf16), as torch orders them."""
    counts = [p.numel() for p in loading.skeleton(folder).parameters()]
    return [4 * n for n in counts], [2 * n for n in counts]


def by_hand(way, old, new, **how):
    return [tuple(m) for m in moments(old, new=new, way=way, **how)]


def test_copy_by_hand():
    assert by_hand("copy", [40, 8], [20, 4], built=[40, 8]) == [
        ("build", 0, 0, 48, 0),
        ("read", 48, 0, 48, 0),
        ("copy", 48, 0, 48, 0),
        ("drop", 0, 0, 48, 0),
        ("cast", 0, 0, 68, 0),
        ("cast", 0, 0, 32, 0),
        ("close", 0, 0, 24, 0),
    ]


def test_assign_by_hand():
    assert by_hand("assign", [40, 8], [20, 4]) == [
        ("read", 48, 0, 0, 0),
        ("cast", 48, 0, 20, 0),
        ("cast", 8, 0, 24, 0),
        ("close", 0, 0, 24, 0),
    ]
    # In the format of the file nothing is copied: what was read is the model.
    assert by_hand("assign", [40, 8], [40, 8])[-1] == ("close", 0, 0, 48, 0)
    assert peak(moments([40, 8], new=[40, 8], way="assign")) == (48, 0, 0)
    assert peak(moments([40, 8], new=[40, 8], way="assign", cast=True)) == (88, 0, 0)


def test_mmap_by_hand():
    assert by_hand("mmap", [40, 8], [20, 4]) == [
        ("read", 0, 0, 0, 0),
        ("cast", 0, 40, 20, 0),
        ("cast", 0, 48, 24, 0),
        ("close", 0, 0, 24, 0),
    ]
    # Tensors that stay in the file are in memory as soon as they are used.
    assert by_hand("mmap", [40, 8], [40, 8])[-2:] == [
        ("close", 0, 0, 0, 0),
        ("use", 0, 48, 0, 0),
    ]
    # One small tensor that stays keeps the whole mapping, with all that was read of it.
    assert by_hand("mmap", [40, 8], [20, 8])[-2:] == [
        ("close", 0, 40, 20, 0),
        ("use", 0, 48, 20, 0),
    ]


def test_shards_by_hand():
    assert by_hand("shards", [40, 8, 8], [20, 4, 4], shard=40) == [
        ("read", 40, 0, 0, 0),
        ("cast", 40, 0, 20, 0),
        ("close", 0, 0, 20, 0),
        ("read", 16, 0, 20, 0),
        ("cast", 16, 0, 24, 0),
        ("cast", 8, 0, 28, 0),
        ("close", 0, 0, 28, 0),
    ]


def test_stream_by_hand():
    assert by_hand("stream", [40, 8, 8], [20, 4, 4], shard=40) == [
        ("read", 0, 0, 0, 0),
        ("cast", 0, 40, 20, 0),
        ("close", 0, 0, 20, 0),
        ("read", 0, 0, 20, 0),
        ("cast", 0, 8, 24, 0),
        ("cast", 0, 16, 28, 0),
        ("close", 0, 0, 28, 0),
    ]


def test_to_a_device_by_hand():
    cast_here = moments([40, 8], new=[20, 4], way="stream", device=True)
    assert [tuple(m) for m in cast_here] == [
        ("read", 0, 0, 0, 0),
        ("move", 0, 40, 20, 20),
        ("move", 0, 48, 4, 24),
        ("close", 0, 0, 0, 24),
    ]
    there = moments([40, 8], new=[10, 2], way="assign", device=True, cast_on_device=True)
    assert [tuple(m) for m in there] == [
        ("read", 48, 0, 0, 0),
        ("move", 48, 0, 0, 50),
        ("move", 8, 0, 0, 20),
        ("close", 0, 0, 0, 12),
    ]
    assert peak(moments([40, 8], new=[40, 8], way="copy", device=True)) == (96, 0, 48)
    assert peak(moments([40, 8], new=[40, 8], way="mmap", device=True)) == (0, 48, 48)


SIZES = st.lists(st.integers(1, 1000), min_size=1, max_size=12)


@given(SIZES, st.integers(1, 3000), st.sampled_from([1, 2, 4]), st.booleans())
def test_the_closed_forms_hold(counts, limit, width, device):
    """C, M, I, S and t bound every way as its formula says; copy reaches its own."""
    old, new = [width * n for n in counts], [2 * n for n in counts]
    built = [4 * n for n in counts]
    C, M, S = sum(old), sum(new), max(sum(old[i] for i in f) for f in split(old, limit=limit))
    t = max(new)
    how = {"shard": limit, "device": device}
    found = {w: peak(moments(old, new=new, way=w, built=built, **how)) for w in NAMES}
    assert sum(built) + C <= found["copy"].host <= sum(built) + max(C, t)
    assert max(C, 0 if device else M) <= found["assign"].host <= max(C, 0 if device else M) + t
    assert found["mmap"].host <= (t if device else M) and found["mmap"].mapped <= C
    assert found["shards"].host <= S + (t if device else M)
    assert found["stream"].host <= (t if device else M)
    if device:
        assert found["stream"].mapped <= S
        assert {each.device for each in found.values()} == {M}


@given(SIZES, st.integers(1, 3000))
def test_each_tensor_is_in_one_file(counts, limit):
    files = split(counts, limit=limit)
    assert sorted(i for file in files for i in file) == list(range(len(counts)))
    for file in files:
        assert file == sorted(file)
        assert len(file) == 1 or sum(counts[i] for i in file) <= limit


@settings(deadline=None)  # the first call imports the library
@given(SIZES, st.integers(1, 3000))
def test_files_are_those_of_the_library(counts, limit):
    from huggingface_hub import split_torch_state_dict_into_shards

    # Not on meta: there, the library takes all tensors for one storage.
    state = {str(i): torch.empty(n, dtype=torch.uint8) for i, n in enumerate(counts)}
    theirs = split_torch_state_dict_into_shards(state, max_shard_size=limit)
    files = [[int(name) for name in names] for names in theirs.filename_to_tensors.values()]
    assert split(counts, limit=limit) == files


def test_llama_3_as_published():
    found = sizes(Model.preset("llama-3-8b"))
    files = [sum(found[i] for i in file) for file in split(found, limit=5 * GB)]
    # What is left over is the header of each file: a length and a list of tensors in JSON.
    headers = [a - b for a, b in zip(PUBLISHED, files, strict=True)]
    assert headers == [9520, 12128, 11664, 568]


@pytest.mark.parametrize("name", ["llama-3-8b", "qwen3-0.6b", "gpt2"])
def test_the_list_is_that_of_transformers(name):
    from memlab.lab.subject import subject

    model = Model.preset(name)
    with torch.device("meta"):
        theirs = subject(
            model,
            "bf16",
            Run(),
        )
    shapes = [tuple(p.shape) for p in theirs.parameters()]
    assert sorted(kind.shape for _, kind in listed(model)) == sorted(shapes)
    assert len({name for name, _ in listed(model)}) == len(shapes)
    assert sum(sizes(model)) == storage_bytes(theirs) - storage_bytes(*theirs.buffers())
    if name == "llama-3-8b":  # others have norms between the matrices
        assert [kind.shape for _, kind in listed(model)] == shapes


def test_a_value_embedding_stands_in_some_layers():
    model = Model.preset("nanochat-d26")
    names = [name for name, _ in listed(model)]
    assert sum(sizes(model, "fp32")) == 4 * model.parameter_count
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("way", NAMES)
def test_traced(folder, both, way):
    """Every storage of the program is in the derivation, at every moment."""
    old, new = both
    expected = moments(old, new=new, way=way, built=old, shard=LIMIT)
    noted = []
    with Tracker(device="cpu") as tracker:
        model = getattr(loading, way)(folder, lambda what: noted.append((what, tracker.current)))
    buffers = 2 * 4 * SMALL.positions * SMALL.head_dim if way == "copy" else 0
    assert [what for what, _ in noted] == [m.what for m in expected]
    if way in ("copy", "assign", "shards"):
        held = [m.checkpoint + m.model + buffers for m in expected]
        assert [size for _, size in noted] == held
        assert tracker.peak == peak(expected).host + buffers
    elif way == "mmap":  # a mapped tensor claims its bytes before they are there: as if assigned
        assert tracker.peak == peak(moments(old, new=new, way="assign")).host
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert not any(t.is_meta for t in (*model.parameters(), *model.buffers()))


def test_all_ways_load_the_same(folder):
    ids = torch.arange(32).view(1, 32)
    logits = [getattr(loading, way)(folder, lambda what: None)(ids) for way in NAMES]
    assert all(torch.equal(each, logits[0]) for each in logits)
    assert logits[0].std() > 0


def test_a_file_is_its_tensors_and_a_header(folder, tmp_path):
    found = [2**16, 10]
    loading.save_torch_state_dict(
        {str(i): torch.zeros(n, dtype=torch.uint8) for i, n in enumerate(found)}, tmp_path
    )
    data = (tmp_path / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert json.loads(data[8 : 8 + length])
    assert len(data) - 8 - length == sum(found)


needs_linux = pytest.mark.skipif(not available(), reason="the system does not say what is held")


def hold(count, mark):
    kept = torch.empty(count, dtype=torch.uint8)
    mark("held")
    kept.fill_(1)
    mark("touched")
    del kept
    mark("dropped")


def fail(words, mark):
    raise ValueError(words)


@needs_linux
def test_memory_apart():
    size = 64 * 2**20
    found = apart({"hold": (hold, [size], [4096])})["hold"]
    assert [each.what for each in found] == ["held", "touched", "dropped"]
    # 2 MiB for the interpreter; pages are not there until somebody writes to them.
    assert abs(found[1].anonymous - size) < 2**21
    assert abs(found[0].anonymous) < 2**21 and abs(found[2].anonymous) < 2**21
    assert all(abs(each.mapped) < 2**21 for each in found)


@needs_linux
def test_a_failing_call_says_why():
    with pytest.raises(RuntimeError, match="ValueError: no such luck"):
        apart({"fail": (fail, ["no such luck"], ["no such luck"])})
    with pytest.raises(ValueError, match="<lambda> is in no module"):
        apart({"lambda": (lambda mark: None, [], [])})


@needs_linux
def test_measured(tmp_path):
    """At every moment the process holds what is derived, but for the interpreter's own noise."""
    shape = SMALL.replace(d_model=768, d_ff=2048, heads=12, kv_heads=6)
    small, large = tmp_path / "small", tmp_path / "large"
    for model, path, limit in ((SMALL, small, LIMIT), (shape, large, 16 * 2**20)):
        path.mkdir()
        loading.save(model, str(path), limit)
    counts = [p.numel() for p in loading.skeleton(str(large)).parameters()]
    old, new = [4 * n for n in counts], [2 * n for n in counts]
    calls = {w: (getattr(loading, w), [str(large)], [str(small)]) for w in (*NAMES, "touch")}
    found, slack = apart(calls), 2**21
    for way in NAMES[:4]:  # stream goes by the order in the file, which is by name
        for there, here in zip(
            found[way], moments(old, new=new, way=way, built=old, shard=16 * 2**20), strict=True
        ):
            assert there.what == here.what
            assert abs(there.anonymous - here.checkpoint - here.model) < slack, (way, there)
            assert abs(there.mapped - here.mapped) < slack, (way, there)
    load, read, write = found["touch"]
    layer = sum(4 * p.numel() for p in loading.skeleton(str(large)).layers[0].parameters())
    assert max(load.anonymous, load.mapped, read.anonymous) < slack
    assert abs(read.mapped - sum(old)) < slack
    assert abs(write.anonymous - layer) < slack and abs(write.mapped - sum(old) + layer) < slack


def test_where_the_system_says_nothing(monkeypatch, tmp_path):
    from memlab.measure import rss

    monkeypatch.setattr(rss, "FOLDER", tmp_path / "none")
    assert not available() and apart({"hold": (hold, [1], [1])}) == {}
    with pytest.raises(RuntimeError, match="does not say what a process holds"):
        memory()


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="unknown way 'lazy'; known: copy, assign, mmap, shards"):
        moments([1], new=[1], way="lazy")
    with pytest.raises(ValueError, match="limit=0; a shard holds"):
        split([1], limit=0)
    with pytest.raises(ValueError, match="2 tensors in the file, 1 in the model, 1 as built"):
        moments([1, 2], new=[1], way="copy")
    with pytest.raises(ValueError, match="size=-1 is negative"):
        moments([-1], new=[1], way="copy")
    with pytest.raises(ValueError, match="moments is empty"):
        peak([])
    assert moments([], new=[], way="mmap") == [("read", 0, 0, 0, 0), ("close", 0, 0, 0, 0)]
