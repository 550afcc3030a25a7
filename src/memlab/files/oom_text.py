"""PyTorch's out-of-memory message, found in whatever stands around it: a log, a traceback, a mail.

No wording is taken as a whole: after "Tried to allocate" each figure is found by the few words
beside it, so that what a version says in another order, or a log breaks into lines, is read, too.

Source  c10/cuda/CUDACachingAllocator.cpp from PyTorch 1.0 to 2.11, CUDAMallocAsyncAllocator.cpp,
        and the same of XPU, MPS and CPUs
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import islice

from ..base.frozen import replace
from .seen import Seen

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

KIND = "PyTorch's out-of-memory message"
HOST = "the out-of-memory message of a host"
LONGEST = 1500  # characters of one message
BEFORE = 300  # characters before it, in which its rank may stand
LARGEST = 2**56  # bytes: PyTorch prints a limit that nobody set as 2^64
MOST = 10_000  # messages of one text that are looked at
# PyTorch counts in powers of two, whatever it calls them ("GB" on MPS).
UNITS = {"b": 1, "byte": 1, "bytes": 1}
UNITS |= {f"{x}{y}b": 1024**n for n, x in enumerate("kmgt", 1) for y in ("", "i")}
SIZE = r"(\d{1,15}(?:\.\d{1,4})?) ?(bytes?|[kmgt]i?b|b)\b"
TRIED = re.compile(r"tried to allocate|would exceed allowed memory", re.IGNORECASE)
# Of each figure the words beside it, in all wordings. Longer waits for nothing: each repeats a few
# characters at most, so that no text makes one look back far.
WORDS = {
    "asked": (rf"tried to allocate[: ]{{1,2}}{SIZE}", rf"\brequested ?: ?{SIZE}"),
    "capacity": (
        rf"{SIZE} total capac",
        rf"total capaci?ty of {SIZE}",
        rf"device limit ?: ?{SIZE}",
    ),
    "allocated": (
        rf"{SIZE} already allocated",
        rf"{SIZE} is allocated by pytorch",
        rf"currently allocated ?: ?{SIZE}",
        rf"mps allocated: {SIZE}",
    ),
    "reserved": (rf"{SIZE} reserved in total",),
    # "cached" of PyTorch before 1.4 is what no block uses.
    "unallocated": (rf"{SIZE} is reserved by pytorch but unallocated", rf"{SIZE} cached"),
    "free": (rf"free \(according to cuda\) ?: ?{SIZE}", rf"{SIZE} is free", rf"{SIZE} free"),
    "private": (rf"{SIZE} allocated in private pools",),
    "allowed": (
        rf"{SIZE} allowed",
        rf"max allowed: {SIZE}",
        rf"pytorch limit \(set by user-supplied memory fraction\) ?: ?{SIZE}",
    ),
    "others": (rf"other allocations: {SIZE}",),
    "process": (rf"this process has {SIZE} memory in use",),
}
FIGURES = {
    name: [re.compile(words, re.IGNORECASE) for words in many] for name, many in WORDS.items()
}
PROCESS = re.compile(rf"\bprocess \d{{1,10}} has {SIZE} memory in use", re.IGNORECASE)
DEVICE = re.compile(r"\b(?:GPU|NPU|XPU|device) (\d{1,4})\b", re.IGNORECASE)
# torchrun's [rank3] and [default3], vLLM's rank=3 and TP3, accelerate's Rank: 3.
RANK = re.compile(r"(?:\b(?:local_?)?rank[ _]?[=:]? ?|\bTP|\[default)(\d{1,5})\b", re.IGNORECASE)
# What a log puts before each line, where it has broken a message: [rank3]:, > of a mail.
PREFIX = re.compile(r"\n(?:[>#|*] ?|\[[^\[\]\n]{1,40}\]:? ?){1,3}")
ENDS = ("Traceback (most recent call last)", "\n\n")


def read(text: str) -> Seen | None:
    """The first message in a text, and of how many ranks there are others; None: there is none.

    amount      allocated and asked for together, which the run needs at least
    Leaves out  what a message that was cut off does not say any more
    """
    found = [*dict.fromkeys(_messages(text))]  # a traceback is often printed twice
    if not found:
        return None
    return replace(found[0], ranks=tuple(one.rank for one in found))


def _messages(text: str) -> Iterator[Seen]:
    places = [(at.start(), at.end()) for at in islice(TRIED.finditer(text), MOST)]
    starts = [start for start, _ in places]
    for number, (start, end) in enumerate(places):
        stop = min(end + LONGEST, starts[number + 1] if number + 1 < len(starts) else len(text))
        words = text[start:stop]
        for mark in ENDS:
            words = words.partition(mark)[0]
        words = " ".join(PREFIX.sub("\n", words).split())
        before = text[max(0, start - BEFORE, places[number - 1][1] if number else 0) : start]
        before = before[before.rfind("\n\n") + 1 :]
        if (one := _read(words, before)) is not None:
            yield one


def _read(words: str, before: str) -> Seen | None:
    """One message, from its words and those before it."""
    sizes: dict[str, Any] = {}
    rounding = 1
    for name, many in FIGURES.items():
        for pattern in many:
            # MPS says what is allocated before what it tried to allocate.
            at = pattern.search(words) or ("mps " in before.lower() and pattern.search(before))
            if at and (size := _bytes(at[1], at[2]))[0] < LARGEST:
                sizes[name], unit = size
                if name in ("asked", "allocated"):
                    rounding = max(rounding, unit)
                break
    if "asked" not in sizes:
        return None
    lines = before.splitlines()
    if "DefaultCPUAllocator" in before:
        return Seen(sizes["asked"], "process", (), HOST, True, rounding, asked=sizes["asked"])
    unallocated = sizes.pop("unallocated", None)
    if unallocated is not None and "reserved" not in sizes and "allocated" in sizes:
        sizes["reserved"] = sizes["allocated"] + unallocated
    held = sizes.get("allocated", sizes.get("reserved", 0))
    _processes(words, sizes)
    # Its line, or the one before where that begins the message: others may speak of LoRA's rank.
    near = lines[-2:] if len(lines) > 1 and "out of memory" in lines[-2] else lines[-1:]
    device, ranks = DEVICE.search(words), RANK.findall("\n".join(near))
    found = Seen(held + sizes["asked"], "allocated", (), KIND, True, rounding)
    number, rank = int(device[1]) if device else None, int(ranks[-1]) if ranks else None
    return replace(found, device=number, rank=rank, **sizes)


def _processes(words: str, sizes: dict[str, int]) -> None:
    """Whose memory is in use: a process is this one where it says so, or has what is reserved.

    In a container a process does not know its own number on the machine, and the message calls it
    "Process N" like the others.
    """
    others = sorted(_bytes(*at.groups())[0] for at in PROCESS.finditer(words))
    least = sizes.get("reserved", sizes.get("allocated", 0))
    if "process" not in sizes and others and least:
        own = bisect_left(others, least)
        if own < len(others):
            sizes["process"] = others.pop(own)
    if others:
        sizes["others"] = sum(others)


def _bytes(number: str, unit: str) -> tuple[int, int]:
    """Bytes of a figure, and of one of its last digit."""
    size = UNITS[unit.lower()]
    whole, _, digits = number.partition(".")
    scale = 10 ** len(digits)
    return (int(whole + digits) * size + scale // 2) // scale, max(1, size // scale)
