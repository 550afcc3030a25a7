"""Tables and figures of counters, as programs print them: nvidia-smi, memory_summary, trainers.

Each function reads the highest figure of its kind out of a text, wherever it stands there; None
where there is none.

Source      nvidia-smi's own output; torch.cuda.memory_summary; transformers.TrainerMemoryTracker;
            deepspeed.runtime.utils.see_memory_usage; the logs of axolotl, torchtune, ms-swift and
            Megatron
"""

from __future__ import annotations

import re

from .oom_text import UNITS
from .seen import Seen

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator

MIB, GIB = 2**20, 2**30
MOST = 10**16  # bytes: more is no figure about memory
NUMBER = r"(\d{1,16}(?:\.\d{1,6})?)"
USED = re.compile(r"(?<![\d.])(\d{1,8}) ?M(?:iB|B)? {0,8}/ {0,8}(\d{1,8}) ?M(?:iB|B)\b")
GPUSTAT = re.compile(r"\| {0,6}(\d{1,8}) / {0,6}(\d{1,8}) MB\b")
CSV_USED = re.compile(r"\bmemory\.used\b(?: \[MiB\])?")
CELL = re.compile(r"(\d{1,8})(?: MiB)?")
PAIR = re.compile(r"^(\d{1,8}) MiB, (\d{1,8}) MiB\r?$", re.MULTILINE)
PROCESS = re.compile(r"\| +\d{1,4} +[^\n|]{4,200}? (\d{1,8})MiB +\|")
SUMMARY = "PyTorch CUDA memory summary"
ROW = re.compile(r"\|\s{0,4}([A-Z][\w -]{3,24}?)\s{0,12}\|([^\n|]{3,14})\|([^\n|]{3,14})\|")
AMOUNT = re.compile(r"\s*(\d{1,12}(?:\.\d{1,3})?) ?([KMGT]?i?B)\s*")
DELTA = re.compile(
    r"\b(before|init|train|eval)_(?:init_)?mem_gpu(?:_(alloc|peaked)_delta)?\b['\"]?\s{0,9}[=:|]"
    r"\s{0,9}['\"]?(-?\d{1,16})(MB)?\b"
)
# A figure by the name before it: what it counts, and its unit where none stands after it.
NAMES = (
    (r"max_memory_reserved(?:\(\))?", "reserved", 1),
    (r"max_memory_allocated(?:\(\))?", "allocated", 1),
    (r"memory/max_mem(?:ory)?_(?:active|allocated)(?:\(gib\))?", "allocated", GIB),
    (r"memory/device_mem(?:ory)?_reserved(?:\(gib\))?", "reserved", GIB),
    (r"peak_memory_(?:active|alloc)", "allocated", GIB),
    (r"peak_memory_reserved", "reserved", GIB),
    (r"memory\(GiB\)", "reserved", GIB),
    (r"Max_MA", "allocated", GIB),
    (r"Max_CA", "reserved", GIB),
    (r"max allocated", "allocated", MIB),
    (r"max reserved", "reserved", MIB),
    (r"Peak reserved memory(?: for training)?", "reserved", GIB),
)
AFTER = rf"['\"]?\s{{0,4}}[=:| ]\s{{0,4}}['\"]?{NUMBER} ?(\w{{0,5}})"
NAMED = [(re.compile(rf"(?<![\w/]){name}{AFTER}"), level, unit) for name, level, unit in NAMES]


def nvidia_smi(text: str) -> Seen | None:
    """The fullest card of nvidia-smi's table, of its CSV, or of a line "23456MiB / 24564MiB"."""
    pairs = [pair for form in (USED, PAIR, GPUSTAT) for pair in form.findall(text)]
    cards = [(int(used) * MIB, int(whole) * MIB) for used, whole in pairs]
    cards += _csv(text)
    cards = [card for card in cards if card[1] == 0 or card[0] <= card[1]]
    if not cards:
        return None
    used, capacity = max(cards)
    own = [int(size) * MIB for size in PROCESS.findall(text)]
    one = own[0] if len(own) == 1 and own[0] <= used else None
    return Seen(
        used,
        "device",
        (),
        "nvidia-smi",
        rounding=MIB,
        capacity=capacity or None,
        process=one,
        others=used - one if one and len(cards) == 1 else None,
    )


def _csv(text: str) -> Iterator[tuple[int, int]]:
    """Used and total, by the names of the first line's columns; 0: no total is there."""
    at = CSV_USED.search(text)
    if at is None:
        return
    start = text.rfind("\n", 0, at.start()) + 1
    lines = text[start:].splitlines()
    names = [name.strip().partition(" ")[0] for name in lines[0].split(",")]
    if "memory.used" not in names:
        return
    place = names.index("memory.used")
    whole = names.index("memory.total") if "memory.total" in names else None
    for line in lines[1:]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(names) and (used := CELL.fullmatch(cells[place])):
            total = None if whole is None else CELL.fullmatch(cells[whole])
            yield int(used[1]) * MIB, int(total[1]) * MIB if total else 0


def memory_summary(text: str) -> Seen | None:
    """The peaks of torch.cuda.memory_summary(); of several devices those of the fullest."""
    found: list[Seen] = []
    for table in text.split(SUMMARY)[1:1000]:
        peaks, rounding = {}, 1
        for name, _, peak in ROW.findall(table[:20_000]):
            if (at := AMOUNT.fullmatch(peak)) is not None and name not in peaks:
                peaks[name] = int(float(at[1]) * UNITS[at[2].lower()])
                rounding = max(rounding, UNITS[at[2].lower()] * (name == "Allocated memory"))
        allocated = peaks.get("Allocated memory", 0)
        if 0 < allocated < MOST:
            reserved = peaks.get("GPU reserved memory", peaks.get("Reserved memory"))
            one = Seen(
                *(allocated, "allocated", (), "torch.cuda.memory_summary()"),
                rounding=rounding,
                allocated=allocated,
                reserved=reserved,
            )
            found.append(one)
    return max(found, key=lambda one: (one.reserved or 0, one.amount), default=None)


def trainer_metrics(text: str) -> Seen | None:
    """The peak of Trainer with skip_memory_metrics=False: its figures are differences.

    Formula     before_init_mem_gpu + init alloc + stage alloc + stage peaked, of the larger stage
    """
    found: dict[tuple[str, str], int] = {}
    rounding = 1
    for stage, kind, number, unit in DELTA.findall(text):
        size = int(number) * (MIB if unit else 1)
        if abs(size) < MOST:
            found[stage, kind] = size
            rounding = max(rounding, MIB if unit else 1)
    base = found.get(("before", ""), 0) + found.get(("init", "alloc"), 0)
    tops = [
        base + found.get((stage, "alloc"), 0) + found.get((stage, "peaked"), 0)
        for stage in ("train", "eval")
        if (stage, "peaked") in found
    ]
    if not tops or max(tops) <= 0:
        return None
    return Seen(max(tops), "allocated", (), "Trainer's memory metrics", rounding=rounding)


def named_figures(text: str) -> Seen | None:
    """The highest figure after one of the names that programs log: allocated, else reserved."""
    most: dict[str, tuple[int, int]] = {}
    for pattern, level, unit in NAMED:
        for number, word in pattern.findall(text):
            size = UNITS.get(word.lower(), unit)
            bytes_ = int(float(number) * size)
            digits = len(number.partition(".")[2])
            if 2**16 < bytes_ < MOST:  # smaller is no peak of a card
                most[level] = max(most.get(level, (0, 0)), (bytes_, max(1, size // 10**digits)))
    if not most:
        return None
    level = "allocated" if "allocated" in most else "reserved"
    sizes = {name: bytes_ for name, (bytes_, _) in most.items()}
    amount, rounding = most[level]
    return Seen(
        *(amount, level, (), "figures of a training log"),
        rounding=rounding,
        allocated=sizes.get("allocated"),
        reserved=sizes.get("reserved"),
    )
