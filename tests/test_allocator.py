"""The model of the CUDA caching allocator, rule by rule against PyTorch's source.

The proof, on one page. File A is c10/cuda/CUDACachingAllocator.cpp of pytorch/pytorch, read at
commit 001074d25084; file B is c10/core/AllocatorConfig.h, whose sizes are read from the installed
torch and compared. Since that commit the sizes moved from A to B, and 20 MiB became the default of
an option, large_segment_size_mb. All rules were read again in a later A, commit 0919d01f216c of the
mirror Continuous-Integrator/pytorch, which has the options of torch 2.13's headers: the same ones.

    rule                                                where                  tested by
    ---------------------------------------------------------------------------------------------
    the six sizes                                       B, constexpr           test_sizes_of_torch
    512 · ⌈n / 512⌉; 0 bytes get no block               A round_size, allocate test_rounded
    two pools: up to 1 MiB, above                       A get_pool             test_pools
    new segment: 2 MiB; 20 MiB; 2 MiB · ⌈n / 2 MiB⌉     A get_allocation_size  test_segment_for
    smallest free block that fits, of equals the        A get_free_block,      test_best_fit,
        lowest address                                  BlockComparatorSize    test_lowest_address
    the rest is cut off from 512 B on (small), above    A should_split,        test_splits
        1 MiB (large), from 512 B on (expandable)       alloc_found_block      test_pages
    a free block joins both free neighbours             A free_block,          test_joins,
                                                        try_merge_blocks       test_any_run
    no memory: give back every segment that is one      A malloc,              test_retry,
        free block, ask once more                       release_cached_blocks  test_whole_segments
    then: out of memory, nothing changed hands          A malloc               test_out_of_memory
    a moved storage holds both blocks for a moment      aten/native/cuda/      test_resize
                                                        Resize.cpp
    expandable: one range of addresses a pool, pages    A ExpandableSegment,   test_one_range
        of 2 and 20 MiB, space for 9/8 of the device    find_expandable_block  test_nine_eighths
    memory is mapped at the lowest address with room    A find_expandable_     test_fills_gaps
                                                        block, map_block
    a block that can grow counts as large as it can     A get_free_block       test_tail_comes_last
    no memory: whole free pages are unmapped            A unmap_block          test_unmaps_pages
    pages mapped before the device was full stay        A try_allocate_        test_partly_mapped
                                                        expandable_block
    what is not modelled is off by default              B, CUDAAllocator-      test_options_are_off
                                                        Config.h

Beyond the hand-computed cases, random runs with and without a limit must agree at every event with
tests/slow_allocator.py, which is the same rules written a second time over plain lists, and keep
the properties: blocks never overlap, bytes are conserved, free neighbours are joined, requested <=
allocated <= reserved <= capacity, and when all is free each segment is one block.

What is not proven here: that the real allocator does the same. That needs a CUDA build of torch;
this test suite runs on CPU builds. One reading of a real one that somebody posted is compared, in
test_a_posted_snapshot.
"""

import re
from itertools import permutations
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_allocator import SlowAllocator

from memlab import GiB, KiB, MiB, Model
from memlab.lab.models import TinyLlama
from memlab.measure import Tracker
from memlab.measure.snapshot import allocator_events, replay_tracker
from memlab.terms import allocator as source
from memlab.terms.allocator import CachingAllocator, OutOfMemory, rounded, segment_for
from memlab.terms.replay import replay

HEADER = Path(torch.__file__).parent / "include" / "c10" / "core" / "AllocatorConfig.h"


def shape(allocator):
    """Each segment as a text: pool, and MiB of each block, free ones in brackets."""
    lines = []
    for small, blocks in allocator.segments():
        sizes = [
            f"{b.size / MiB:g}" if b.ident is not None else f"({b.size / MiB:g})" for b in blocks
        ]
        lines.append(("small " if small else "large ") + " ".join(sizes))
    return lines


def filled(*sizes, **options):
    """An allocator that holds storages 0, 1, 2 … of these sizes."""
    allocator = CachingAllocator(**options)
    for ident, size in enumerate(sizes):
        allocator.malloc(ident, size)
    return allocator


def test_sizes_of_torch():
    header = HEADER.read_text()
    there = dict(re.findall(r"constexpr size_t (k\w+) = (\d+);", header))
    there["large_segment_size_"] = re.search(r"large_segment_size_\{(\d+)\}", header)[1]
    here = {
        "kMinBlockSize": source.MIN_BLOCK,
        "kSmallSize": source.SMALL_SIZE,
        "kSmallBuffer": source.SMALL_SEGMENT,
        "kMinLargeAlloc": source.MIN_LARGE,
        "kRoundLarge": source.ROUND_LARGE,
        "large_segment_size_": source.LARGE_SEGMENT,
    }
    assert {name: int(there[name]) for name in here} == here


def test_options_are_off():
    """What `memlab.terms.allocator` leaves out changes nothing unless somebody asks for it."""
    common = HEADER.read_text()
    cuda = (HEADER.parent.parent / "cuda" / "CUDAAllocatorConfig.h").read_text()
    assert "max_split_size_{std::numeric_limits<size_t>::max()}" in common
    assert "garbage_collection_threshold_{0}" in common
    assert "use_expandable_segments_{false}" in common
    assert "m_per_process_memory_fraction{1.0}" in cuda
    assert "m_throw_on_cudamalloc_oom{false}" in cuda


def test_a_posted_snapshot():
    """torch.cuda.memory_snapshot() of PyTorch 1.10 on a GPU, after W, b, X and y = X @ W + b.

    Source      https://discuss.pytorch.org/t/178671, whose author also shows 8,519,680 bytes of
                cuBLAS's workspace in a segment of its own, with a later version
    """
    sizes = [("W", 40000), ("b", 40), ("X", 4000), ("product", 40), ("y", 40)]
    events = [("alloc", name, size) for name, size in sizes] + [("free", "product", 0)]
    ((small, blocks),) = replay(events).allocator.segments()
    assert small and [block.size for block in blocks] == [40448, 512, 4096, 512, 512, 2051072]
    assert [block.ident is not None for block in blocks] == [True, True, True, False, True, False]
    assert sum(block.size for block in blocks if block.ident is not None) == 45568
    ((small, blocks),) = filled(8519680).segments()
    assert not small and [block.size for block in blocks] == [8519680, 12451840]


@pytest.mark.parametrize(
    ("size", "block"),
    [(0, 0), (1, 512), (511, 512), (512, 512), (513, 1024), (MiB, MiB), (MiB + 1, MiB + 512)],
)
def test_rounded(size, block):
    assert rounded(size) == block


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (0, 0),
        (1, 2 * MiB),
        (MiB, 2 * MiB),
        (MiB + 1, 20 * MiB),
        (10 * MiB - 512, 20 * MiB),
        (10 * MiB - 511, 10 * MiB),  # rounds up to 10 MiB, and that is no longer below
        (10 * MiB, 10 * MiB),
        (10 * MiB + 1, 12 * MiB),
        (1002 * MiB + 1, 1004 * MiB),
    ],
)
def test_segment_for(size, segment):
    assert segment_for(size) == segment


@pytest.mark.parametrize("wrong", [-1, 1.5, "1"])
def test_sizes_are_counts(wrong):
    for call in (rounded, segment_for, lambda n: CachingAllocator().malloc(0, n), CachingAllocator):
        with pytest.raises((TypeError, ValueError), match="size=|capacity="):
            call(wrong)


def test_pools():
    assert shape(filled(MiB, MiB + 1)) == ["small 1 (1)", f"large {1 + 512 / MiB:g} (18.9995)"]


def test_best_fit():
    allocator = filled(12 * MiB, 30 * MiB, 16 * MiB)
    for ident in (0, 1, 2):
        allocator.free(ident)
    allocator.malloc("new", 13 * MiB)
    assert shape(allocator) == ["large (12)", "large (30)", "large 13 (3)"]


def test_lowest_address():
    allocator = filled(12 * MiB, 12 * MiB)
    allocator.free(1)
    allocator.free(0)
    allocator.malloc("new", 12 * MiB)
    assert shape(allocator) == ["large 12", "large (12)"]


def test_splits():
    """512 bytes are worth keeping in the small pool, 1 MiB is not in the large one."""
    assert shape(filled(MiB, MiB - 512)) == [f"small 1 {1 - 512 / MiB:g} ({512 / MiB:g})"]
    allocator = filled(20 * MiB)
    allocator.free(0)
    allocator.malloc(1, 19 * MiB)
    assert shape(allocator) == ["large 20"]
    assert (allocator.requested, allocator.allocated) == (19 * MiB, 20 * MiB)
    allocator.free(1)
    allocator.malloc(2, 19 * MiB - 512)
    assert shape(allocator) == [f"large {19 - 512 / MiB:g} ({1 + 512 / MiB:g})"]
    assert allocator.allocated == 19 * MiB - 512


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_joins(order):
    allocator = filled(2 * MiB, 3 * MiB, 4 * MiB)
    assert shape(allocator) == ["large 2 3 4 (11)"]
    allocator.free(order[0])
    assert shape(allocator) == [
        ["large (2) 3 4 (11)", "large 2 (3) 4 (11)", "large 2 3 (15)"][order[0]]
    ]
    allocator.free(order[1])
    allocator.free(order[2])
    assert shape(allocator) == ["large (20)"]
    assert allocator.reserved == 20 * MiB and allocator.allocated == 0


def test_retry():
    allocator = filled(12 * MiB, 14 * MiB, capacity=40 * MiB)
    allocator.free(0)
    allocator.free(1)
    allocator.malloc("new", 30 * MiB)
    assert allocator.retries == 1 and allocator.ooms == 0
    assert shape(allocator) == ["large 30"]
    assert (allocator.reserved, allocator.peak_reserved) == (30 * MiB, 30 * MiB)


def test_whole_segments():
    allocator = filled(2 * MiB, 3 * MiB, 12 * MiB, capacity=40 * MiB)
    allocator.free(0)
    allocator.free(2)
    with pytest.raises(OutOfMemory):
        allocator.malloc("new", 30 * MiB)
    assert shape(allocator) == ["large (2) 3 (15)"]  # the free 12 MiB went back, to no avail


def test_out_of_memory():
    told = []
    allocator = filled(
        *[20 * MiB, 5 * MiB, 100, 15 * MiB], capacity=50 * MiB, tell=lambda *what: told.append(what)
    )
    before = shape(allocator)
    with pytest.raises(OutOfMemory) as caught:
        allocator.malloc("new", 9 * MiB + 1)
    error = caught.value
    assert (error.requested, error.tried) == (9 * MiB + 1, 20 * MiB)
    assert (error.capacity, error.free, error.reserved) == (50 * MiB, 8 * MiB, 42 * MiB)
    assert error.allocated == 40 * MiB + 512 and error.event is None
    assert told[-1] == ("oom", 8 * MiB, 9 * MiB + 512)  # free, and the block that was needed
    assert str(error) == (
        "out of memory. Tried to allocate 20 MiB. The device has a total capacity of 50 MiB of "
        "which 8 MiB is free. 40 MiB is allocated and 2 MiB is reserved but unallocated."
    )
    assert isinstance(error, MemoryError)
    assert (allocator.ooms, allocator.retries) == (1, 1)
    assert (shape(allocator), allocator.requested) == (before, 40 * MiB + 100)
    allocator.free(3)
    allocator.malloc("new", 9 * MiB + 1)  # whoever frees something may go on


def test_resize():
    """The old block goes only when the new one is there, so both count in the peak."""
    allocator = filled(3 * MiB)
    allocator.resize(0, 4 * MiB)
    assert shape(allocator) == ["large (3) 4 (13)"]
    assert (allocator.requested, allocator.peak_requested) == (4 * MiB, 7 * MiB)
    allocator.resize(0, 0)
    assert shape(allocator) == ["large (20)"] and allocator.requested == 0
    allocator.resize(0, 5)
    assert shape(allocator) == ["large (20)", "small 0.000488281 (1.99951)"]
    full = filled(20 * MiB, capacity=30 * MiB)
    with pytest.raises(OutOfMemory):
        full.resize(0, 12 * MiB)
    assert shape(full) == ["large 20"]  # as before
    full.free(0)


def test_a_storage_without_bytes_has_no_block():
    allocator = filled(0)
    assert allocator.segments() == [] and allocator.reserved == 0
    allocator.free(0)


def test_who_may_do_what():
    allocator = filled(1)
    with pytest.raises(ValueError, match="0 holds memory already"):
        allocator.malloc(0, 1)
    with pytest.raises(ValueError, match="None names nobody"):
        allocator.malloc(None, 1)
    for call in (lambda: allocator.free("x"), lambda: allocator.resize("x", 1)):
        with pytest.raises(ValueError, match="'x' holds no memory"):
            call()


def test_peaks_stay():
    allocator = filled(3 * MiB, 30 * MiB)
    allocator.free(0)
    allocator.free(1)
    allocator.empty_cache()
    assert (allocator.requested, allocator.allocated, allocator.reserved) == (0, 0, 0)
    assert allocator.peak_requested == allocator.peak_allocated == 33 * MiB
    assert allocator.peak_reserved == 50 * MiB
    assert allocator.segments() == [] and allocator.capacity is None


def test_pages():
    assert shape(filled(MiB, MiB + 1, expandable=True)) == [
        "small 1 (1)",
        f"large {1 + 512 / MiB:g} (18.9995)",
    ]
    # the large pool cuts off 512 bytes here
    assert shape(filled(20 * MiB - 512, expandable=True)) == ["large 19.9995 (0.000488281)"]
    assert filled(20 * MiB + 1, expandable=True).reserved == 40 * MiB


def test_one_range():
    allocator = filled(15 * MiB, 30 * MiB, 45 * MiB, expandable=True)
    assert shape(allocator) == ["large 15 30 45 (10)"]
    assert allocator.reserved == 100 * MiB


def test_tail_comes_last():
    """10 MiB at the end would fit 5 MiB best, but the end can still grow: 15 MiB are taken."""
    allocator = filled(15 * MiB, 30 * MiB, 45 * MiB, expandable=True)
    allocator.free(0)
    allocator.malloc("new", 5 * MiB)
    assert shape(allocator) == ["large 5 (10) 30 45 (10)"]


def test_unmaps_pages():
    allocator = filled(50 * MiB, 10 * MiB, expandable=True)
    allocator.free(0)
    allocator.empty_cache()
    assert shape(allocator) == ["large (10) 10"]  # 40 of 50 MiB are whole pages
    assert allocator.reserved == 20 * MiB


def test_an_empty_range_is_given_up():
    """Once all its pages are gone the addresses go too; the next request gets new ones."""
    allocator = CachingAllocator(expandable=True)
    first = allocator.malloc("a", 20 * MiB)
    allocator.free("a")
    assert allocator.malloc("b", 20 * MiB) == first
    allocator.free("b")
    allocator.empty_cache()
    assert allocator.segments() == []
    assert allocator.malloc("c", 20 * MiB) > first + 20 * MiB


@pytest.mark.parametrize(
    ("size", "expected"),
    [(45, ["large 45 (5) 10"]), (50, ["large 50 10"]), (51, ["large (10) 10 51 (9)"])],
)
def test_fills_gaps(size, expected):
    allocator = filled(50 * MiB, 10 * MiB, expandable=True)
    allocator.free(0)
    allocator.empty_cache()
    allocator.malloc("new", size * MiB)
    assert shape(allocator) == expected
    assert allocator.reserved == (60 if size <= 50 else 80) * MiB


def test_nine_eighths():
    """The small pool's range begins where the large one's ends."""
    allocator = filled(20 * MiB, MiB, capacity=1600 * MiB, expandable=True)
    (_, large), (_, small) = allocator.segments()
    assert small[0].address - large[0].address == 1800 * MiB


def test_retry_expandable():
    """90 MiB of addresses in pages are 100; no run of 55 is left there, so a second range."""
    allocator = filled(50 * MiB, 10 * MiB, capacity=80 * MiB, expandable=True)
    allocator.free(0)
    allocator.malloc("new", 55 * MiB)
    assert shape(allocator) == ["large (10) 10", "large 55 (5)"]
    assert (allocator.retries, allocator.reserved) == (1, 80 * MiB)


def test_partly_mapped():
    log = []
    allocator = filled(
        *[20 * MiB] * 3,
        capacity=62 * MiB,
        expandable=True,
        tell=lambda action, address, size: log.append((action, size // MiB)),
    )
    allocator.free(0)
    allocator.free(2)
    allocator.empty_cache()
    for ident in "abc":
        allocator.malloc(ident, MiB)  # two pages of the small pool
    allocator.free(1)  # a free page between two gaps
    assert allocator.reserved == 24 * MiB
    del log[:]
    with pytest.raises(OutOfMemory):
        allocator.malloc("new", 50 * MiB)
    # the first gap got its page, the second did not; then the free pages went back
    assert log == [("segment_map", 20), ("segment_unmap", 40), ("oom", 50)]
    assert allocator.reserved == 4 * MiB


SIZES = st.one_of(
    st.sampled_from([0, 1, 512, 513, MiB, MiB + 1, 2 * MiB, 10 * MiB - 512, 10 * MiB, 19 * MiB]),
    st.integers(1, 2 * MiB),
    st.integers(MiB, 48 * MiB),
)
STEPS = st.lists(st.tuples(st.sampled_from("mmmfff-"), SIZES, st.integers(0, 99)), max_size=60)


def check(allocator):
    """The properties that hold after every step."""
    end = allocated = requested = reserved = 0
    for small, blocks in allocator.segments():
        assert blocks[0].address >= end  # no segment overlaps another
        end = blocks[0].address
        kinds = [block.ident is None for block in blocks]
        assert (True, True) not in zip(kinds, kinds[1:], strict=False)  # free neighbours are one
        for block in blocks:
            assert block.address == end and block.size > 0 and block.size % 512 == 0
            end += block.size
            assert block.mapped and 0 <= block.requested <= block.size
            if block.ident is not None:
                allocated += block.size
                requested += block.requested
                least = MiB + 512 if not (small or allocator.expandable) else 512
                assert block.size - rounded(block.requested) < least
                assert (rounded(block.requested) <= MiB) == small
        reserved += end - blocks[0].address
    assert (requested, allocated) == (allocator.requested, allocator.allocated)
    assert reserved == allocator.reserved
    assert requested <= allocated <= reserved
    assert allocator.capacity is None or reserved <= allocator.capacity


@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("capacity", [None, 100 * MiB, 223 * MiB])
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(steps=STEPS)
def test_any_run(capacity, expandable, steps):
    fast, slow = (
        CachingAllocator(capacity, expandable=expandable),
        SlowAllocator(capacity, expandable),
    )
    live = []
    for ident, (action, size, pick) in enumerate(steps):
        if action == "m":
            fits = slow.malloc(ident, size)
            try:
                fast.malloc(ident, size)
                assert fits
                live.append(ident)
            except OutOfMemory:
                assert not fits
        elif action == "f" and live:
            gone = live.pop(pick % len(live))
            fast.free(gone)
            slow.free(gone)
        elif action == "-":
            fast.empty_cache()
            slow.empty_cache()
        check(fast)
        assert (fast.allocated, fast.reserved) == (slow.allocated, slow.reserved)
        assert fast.retries == slow.retries
    for ident in live:
        fast.free(ident)
    check(fast)
    assert all(len(blocks) == 1 for _, blocks in fast.segments())  # one free block each
    if expandable and capacity is None and "-" not in {action for action, *_ in steps}:
        assert len(fast.segments()) <= 2  # one a pool, however many requests
        assert fast.reserved == fast.peak_reserved  # and it never shrank
    fast.empty_cache()
    assert fast.reserved == 0 and fast.segments() == []


def test_replay_over_time():
    events = [("alloc", 1, 3 * MiB), ("seen", 2, 100), ("resize", 1, 30 * MiB), ("free", 2, 0)]
    done = replay(events)
    assert done.requested == [3 * MiB, 3 * MiB + 100, 30 * MiB + 100, 30 * MiB]
    assert done.allocated == [3 * MiB, 3 * MiB + 512, 30 * MiB + 512, 30 * MiB]
    assert done.reserved == [20 * MiB, 22 * MiB, 52 * MiB, 52 * MiB]
    assert (done.peak_requested, done.peak_allocated) == (33 * MiB + 100, 33 * MiB + 512)
    assert done.peak_reserved == 52 * MiB and done.fits
    assert repr(done) == (
        "Replay(4 events, peak requested 34,603,108 B, allocated 34,603,520 B, "
        "reserved 54,525,952 B)"
    )


def test_replay_stops_where_memory_ends():
    events = [("alloc", 1, 3 * MiB), ("alloc", 2, 18 * MiB), ("free", 1, 0), ("free", 2, 0)]
    done = replay(events, capacity=38 * MiB - 1)
    assert not done.fits and done.out_of_memory.event == 1
    assert done.reserved == [20 * MiB]
    assert repr(done).endswith("reserved 20,971,520 B, out of memory at event 1)")
    assert replay(events, capacity=38 * MiB).fits
    # 21 MiB in one range are two pages
    assert replay(events, capacity=40 * MiB - 1, expandable=True).out_of_memory.event == 1
    assert replay(events, capacity=40 * MiB, expandable=True).fits


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (("steal", 1, 5), "event 0 is of kind 'steal'; known: alloc, seen, resize, free"),
        (("free", 1, 5), "1 holds no memory"),
        (("resize", 1, 5), "1 holds no memory"),
        (("alloc", 1, -5), "size=-5 is negative"),
    ],
)
def test_replay_refuses(event, message):
    with pytest.raises(ValueError, match=message):
        replay([event])


@pytest.fixture(scope="module")
def three_steps():
    """Three training steps of Llama-3-8B's shape at half its width and two layers, in bf16."""
    model = Model.preset("llama-3-8b")
    model = Model(
        name="small", family="llama", layers=2, d_model=2048, d_ff=7168, heads=16, kv_heads=4,
        vocab=32064, positions=model.positions,
    )  # fmt: skip
    with torch.device("meta"):
        net = TinyLlama(model).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    ids = torch.zeros(1, 1024, dtype=torch.long, device="meta")
    tracker = Tracker(device="meta")
    for thing, category in ((net, None), (optimizer, None), (ids, "inputs")):
        tracker.label(thing, category)
    ends = []
    with tracker:
        for _ in range(3):
            with tracker.phase("forward"):
                loss = net(ids, ids)
            with tracker.phase("backward"):
                loss.backward()
            del loss
            with tracker.phase("step"):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            ends.append(len(tracker.timeline))
    return tracker, ends


def test_a_training_step(three_steps):
    tracker, (first, second, third) = three_steps
    plain, expandable = replay_tracker(tracker), replay_tracker(tracker, expandable=True)
    for done in (plain, expandable):
        assert done.peak_requested == tracker.peak
        assert done.requested == [event.total for event in tracker.timeline]
        assert max(done.reserved[:second]) == max(done.reserved[:third])  # the cache serves step 3
        assert max(done.reserved[:first]) <= max(done.reserved[:second])
    # every tensor of this shape is a multiple of 512 bytes, and expandable ones are cut to size
    assert expandable.peak_allocated == tracker.peak <= plain.peak_allocated
    assert 1.00 < plain.peak_reserved / plain.peak_allocated < 1.25
    assert 1.00 < expandable.peak_reserved / expandable.peak_allocated < 1.05
    assert expandable.peak_reserved < plain.peak_reserved
    assert len(expandable.allocator.segments()) == 2
    assert len(plain.allocator.segments()) > 10


def test_where_memory_ends(three_steps):
    """A device that holds the peak of reserved bytes is enough; one byte less starts to retry."""
    tracker, _ = three_steps
    roomy = replay_tracker(tracker)
    assert replay_tracker(tracker, roomy.peak_reserved).allocator.retries == 0
    tight = replay_tracker(tracker, roomy.peak_reserved - 1)
    assert tight.allocator.retries > 0 and tight.peak_reserved < roomy.peak_reserved
    small = replay_tracker(tracker, roomy.peak_allocated - 1)
    error = small.out_of_memory
    assert error is not None and error.event == len(small.reserved)
    assert tracker.timeline[error.event].kind == "alloc"
    assert error.reserved + error.tried > error.capacity == roomy.peak_allocated - 1


def test_what_was_there_before_counts(three_steps):
    tracker, _ = three_steps
    events = allocator_events(tracker)
    assert events[0][0] == "seen" and {kind for kind, *_ in events} == {"seen", "alloc", "free"}
    assert len(events) == len(tracker.timeline)
    assert 0.1 * GiB < replay([e for e in events if e[0] == "seen"]).peak_reserved < 1 * GiB
    assert replay_tracker(tracker, 4 * KiB).out_of_memory.event == 0
