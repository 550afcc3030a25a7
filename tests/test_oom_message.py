"""The out-of-memory message: as users posted it, and as the first page of the book shows it."""

from pathlib import Path

from memlab import Model, Run
from memlab.devices import Device, device
from memlab.fit import limit_of
from memlab.measure.oom_message import oom_message, size_of
from memlab.step import simulate
from memlab.terms.allocator import OutOfMemory
from memlab.units import GiB, MiB, text

INTRO = Path(__file__).resolve().parent.parent / "book" / "intro.md"
# Of a run on a card of 14.56 GiB, from the log of a public notebook, PyTorch 2.10.
POSTED = (
    "CUDA out of memory. Tried to allocate 4.72 GiB. GPU 0 has a total capacity of 14.56 GiB of "
    "which 1.94 GiB is free. Including non-PyTorch memory, this process has 12.62 GiB memory in "
    "use. Of the allocated memory 12.44 GiB is allocated by PyTorch, and 56.76 MiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
    "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)


def hundredths(gib):
    return round(gib * 100) * GiB // 100


def test_a_posted_message_is_rebuilt_from_its_figures():
    card = Device("a T4", 16, None, hundredths(14.56))
    allocated = hundredths(12.44)
    reserved = allocated + round(56.76 * MiB)
    error = OutOfMemory(
        hundredths(4.72),
        tried=hundredths(4.72) + MiB,
        capacity=card.limit,
        allocated=allocated,
        reserved=reserved,
    )
    said = oom_message(error, card, context=hundredths(12.62) - reserved)
    assert said == f"torch.OutOfMemoryError: {POSTED}"


def test_sizes_as_the_message_writes_them():
    found = [size_of(count) for count in (0, 512, 1025, 64 * MiB, GiB, device("h100").limit)]
    assert found == ["0 bytes", "512 bytes", "1.00 KiB", "64.00 MiB", "1024.00 MiB", "79.11 GiB"]


def test_the_first_page_shows_the_message_of_its_run():
    """The run of Part I: where it ends, and every figure that the page says of it."""
    run = Run(tokens=8192)
    step = simulate(Model.preset("llama-3-8b"), "bf16", run, every_layer=True)
    error = step.replay(limit_of("H100 80GB")[0]).out_of_memory
    assert error is not None and error.event is not None
    page = INTRO.read_text(encoding="utf-8")
    shown = " ".join(page.partition("```text")[2].partition("```")[0].split())
    assert " ".join(oom_message(error, "H100 80GB").split()) in shown
    began = [mark for mark, at in step.log.marks.items() if at <= error.event][-1]
    layer = [layer for at, layer in step.log.entered if at <= error.event][-1]
    assert (began, layer) == ("second.forward", 19) and "layer 20 of 32" in page
    assert f"The weights alone take {text(step.rows['weights'])}." in page
