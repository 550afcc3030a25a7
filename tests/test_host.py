"""Host memory: pinned blocks and pages, by hand, through memlab's own hosts, and on a GPU."""

import random

import pytest

torch = pytest.importorskip("torch")

from memlab.lab.host import File  # noqa: E402
from memlab.lab.pinned import Pinned  # noqa: E402
from memlab.terms.host import paged, pinned  # noqa: E402


def test_by_hand():
    """One fp32 state of Llama-3-8B's table, 1.96 GiB, takes 2 GiB; of its gate, exactly its own."""
    assert pinned(128256 * 4096 * 4) == 2**31
    assert pinned(14336 * 4096 * 4) == 2**28
    assert [pinned(n) for n in (0, 1, 2, 3, 4, 5)] == [0, 1, 2, 4, 4, 8]
    assert [paged(n) for n in (0, 1, 4096, 4097)] == [0, 4096, 4096, 8192]
    assert paged(1, page=65536) == 65536


def test_a_block_is_a_power_of_two_and_less_than_twice_its_tensor():
    rng = random.Random(0)
    for size in (rng.randint(1, 10**12) for _ in range(200)):
        block = pinned(size)
        assert block & (block - 1) == 0 and block // 2 < size <= block


def test_a_file_begins_each_place_with_a_page():
    host = File()
    for size in (1, 5000, 0, 4096):
        host.send(torch.zeros(size, dtype=torch.uint8).untyped_storage())
    import mmap

    page = mmap.ALLOCATIONGRANULARITY
    assert host.size == sum(paged(max(size, 1), page=page) for size in (1, 5000, 0, 4096))


def test_a_pinned_host_says_what_its_blocks_take(monkeypatch):
    """Two tensors of one size, one after the other, share a block; another size has its own."""
    plain = torch.empty
    monkeypatch.setattr(torch.cuda, "Stream", object)
    monkeypatch.setattr(torch, "empty", lambda *a, pin_memory=False, **how: plain(*a, **how))
    monkeypatch.setattr(Pinned, "_write", lambda *_: None)
    host, storage = Pinned(), torch.zeros(5000, dtype=torch.uint8).untyped_storage()
    host.give_back(host.send(storage), 5000)
    host.send(storage)
    assert (host.held, host.reserved) == (5000, 8192)
    host.send(torch.zeros(4096, dtype=torch.uint8).untyped_storage())
    assert (host.held, host.reserved) == (9096, 8192 + 4096)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: nothing is pinned here")
@pytest.mark.parametrize("size", [1, 5000, 3 * 2**20, 2**22])
def test_torch_takes_as_much(size):
    torch.cuda.reset_peak_host_memory_stats()
    before = torch.cuda.host_memory_stats()["active_bytes.current"]
    block = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    assert torch.cuda.host_memory_stats()["active_bytes.current"] - before == pinned(size)
    del block


def test_wrong_values():
    with pytest.raises(ValueError, match="size=-1 is negative"):
        pinned(-1)
    with pytest.raises(ValueError, match="page=0; a page has bytes"):
        paged(5, page=0)
