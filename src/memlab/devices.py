"""GPUs and the memory they really offer: what is on the box, what the driver says, what CUDA gives.

Three numbers, because they differ. The size on the box is a round number of GB. `nvidia-smi` shows
what the driver manages, in MiB. A program gets less: the driver keeps a part for itself (and for
error correction on some cards), and what is left is `total_memory` in torch.cuda, "total capacity"
in an out-of-memory message, totalGlobalMem in CUDA. All of them shift a little with driver,
operating system and ECC; each number below is one reading; data/devices/sources.json says whose.
"""

from __future__ import annotations

from .base.frozen import dataclass
from .base.message import Message
from .units import GiB, MiB, parse, text, whole

# Words around a name that do not tell two of these cards apart.
USUAL = "H100 80GB"  # the card of a step or a program for which nobody names one
NOISE = "nvidia geforce tesla amd radeon instinct gpu tensor core card"
NOISE += " sxm sxm2 sxm4 sxm5 sxm6 pcie ac hbm2 hbm2e hbm3 hbm3e"
NOISE += " quadro dgx spark generation blackwell workstation server edition"


@dataclass(frozen=True)
class Device:
    """One GPU.

    marketed    GB on the box; some makers' GB are GiB, so it is a name more than a number
    driver      bytes that nvidia-smi or amdgpu reports, or None where no reading with a source was
                found
    usable      bytes that a program of CUDA or ROCm sees in all, or None likewise
    capability  major number of CUDA's compute capability; None of ROCm, and of a card that somebody
                describes
    sources     where the two were read: users' own output in public threads
    Source      of the capability: https://developer.nvidia.com/cuda-gpus and /cuda-legacy-gpus
    Leaves out  the CUDA context of each process (hundreds of MiB, by card, driver and library),
                other programs, a desktop on the same card
    """

    name: str
    marketed: int
    driver: int | None
    usable: int | None
    capability: int | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the two were read; a card that somebody describes has none."""
        import json  # who asks for a card's bytes needs no file
        from pathlib import Path

        read = Path(__file__).parent / "data" / "devices" / "sources.json"
        return tuple(json.loads(read.read_text(encoding="utf-8")).get(self.name, ()))

    @property
    def limit(self) -> int:
        """The best number there is for "does it fit": usable bytes, else those of the driver."""
        limit = self.driver if self.usable is None else self.usable
        assert limit is not None  # a test sees to it that each device has one of the two
        return limit

    def told(self) -> str:
        """The card with its sizes."""
        usable = "unknown" if self.usable is None else text(self.usable)
        pattern = "{card} ({size} GB, usable {usable})"
        return Message(pattern, card=self.name, size=self.marketed, usable=usable)

    def __str__(self) -> str:
        return str(self.told())


# A line a card: name, GB on the box, MiB that the driver reports, what a program sees (hundredths
# of a GiB, as they are printed, right to 5 MiB; or bytes), capability; 0: not known, or none.
_TABLE = """
GTX_1080_Ti 11 0 1092 6
RTX_2080_Ti 11 0 1076 7
RTX_2080_SUPER 8 8192 0 7
TITAN_RTX 24 24576 0 7
RTX_3060 12 12288 1176 8
RTX_3070 8 8192 778 8
RTX_3080 10 0 978 8
RTX_3080_Ti 12 0 1200 8
RTX_3090 24 24576 2356 8
RTX_3090_Ti 24 24564 0 8
RTX_4060 8 8188 0 8
RTX_4070 12 12282 0 8
RTX_4070_SUPER 12 0 1199 8
RTX_4070_Ti 12 0 1173 8
RTX_4070_Ti_SUPER 16 16376 0 8
RTX_4080 16 0 16856907776 8
RTX_4080_SUPER 16 16376 0 8
RTX_4090 24 24564 2364 8
RTX_5070 12 12227 0 12
RTX_5070_Ti 16 16303 0 12
RTX_5080 16 0 1548 12
RTX_5090 32 32607 33677180928 12
RTX_5060_Ti_16GB 16 0 16584278016 12
RTX_4060_Ti_16GB 16 0 1555 8
RTX_4060_Laptop 8 0 775 8
RTX_4070_Laptop 8 0 8184135680 8
DGX_Spark_GB10 128 0 12169 12
Quadro_RTX_8000 48 0 4746 7
RTX_A2000_12GB 12 0 1153 8
RTX_A4000 16 16376 1561 8
RTX_A5000 24 0 2367 8
RTX_A6000 48 49140 4754 8
RTX_6000_Ada 48 46068 4443 8
RTX_PRO_6000 96 97887 9497 12
T4 16 15360 1456 7
P40 24 24576 2238 6
P100_16GB 16 16384 0 6
V100_16GB 16 0 1578 7
V100_32GB 32 0 3174 7
L4 24 23034 0 8
A10 24 23028 0 8
A10G 24 0 2220 8
A30 24 0 2353 8
A40 48 46068 4440 8
L40 48 0 4440 8
L40S 48 46068 4442 8
A100_40GB 40 40960 42298834944 8
A100_80GB 80 81920 7925 8
A800_80GB 80 81920 7933 8
H100_80GB 80 81559 7911 9
H100_NVL 94 0 9300 9
GH200_96GB 96 97871 9450 9
H200 141 143771 0 9
H20 96 97871 0 9
B200 180 183359 17835 10
GB200 186 189471 18431 10
GB300 288 0 27650 10
B300 288 0 26770 10
RX_7900_XTX 24 24560 0 0
MI300X 192 0 206141652992 0
MI325X 256 0 25598 0
"""


def _read(line: str) -> Device:
    name, *sizes = line.split()
    box, driver, usable, capability = (int(size) or None for size in sizes)
    if usable and usable < 10**6:
        usable = usable * GiB // 100
    return Device(name.replace("_", " "), box or 0, driver and driver * MiB, usable, capability)


_DEVICES = tuple(_read(line) for line in _TABLE.split("\n") if line)


def devices() -> tuple[Device, ...]:
    """Every device that memlab knows, as `memlab devices` lists them."""
    return _DEVICES


def device(name: str | Device) -> Device:
    """The device of that name; capitals, spaces, hyphens and the maker's words do not matter.

    Example     device("rtx4090"), device("NVIDIA A100-SXM4-80GB"), device("h100")
    Raises      ValueError for a name that fits two devices or none, with those that come close
    """
    if isinstance(name, Device):
        return name
    if not isinstance(name, str):
        raise TypeError(f"name={name!r} is a {type(name).__name__}; text such as 'A100 80GB'")
    wanted = "".join(_words(name))
    found = [each for each in _DEVICES if wanted in _spellings(each)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{name!r} may be {' or '.join(each.name for each in found)}")
    from difflib import get_close_matches  # slow to import, and only needed here

    spelled = {spelling: each.name for each in _DEVICES for spelling in _spellings(each)}
    close = dict.fromkeys(spelled[match] for match in get_close_matches(wanted, spelled))
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    raise ValueError(
        f"unknown device {name!r}; {hint}`memlab devices` lists those with a reading, and a size "
        "stands for any other: '24 GB'"
    )


def room(on: str | int | Device) -> tuple[int, str]:
    """The bytes that a program may use on a device, and a name for it.

    Raises      ValueError as `card`
    """
    found = card(on)
    return found.limit, found.name


def card(on: str | int | Device) -> Device:
    """A device, or one of the size that was said.

    on          a card ("RTX 4090"), a size ("24 GB"), or bytes as a number of Python's
    Raises      ValueError for an unknown card, and for a size that is none: 4090 has no unit
    """
    if isinstance(on, int):
        return Device(text(on), 0, None, whole("on", on))
    if isinstance(on, str) and on.strip()[:1] in tuple("+-.0123456789"):
        try:
            return Device(on, 0, None, whole("on", parse(on)))
        except ValueError as error:
            try:
                close = device(on)  # "4060 Laptop", but also a "4090" that may be any unit's
            except ValueError:
                raise error from None
            if on.strip().isdigit():
                raise ValueError(f"{error} Or did you mean {close.name}?") from None
    return device(on)


def _words(name: str) -> list[str]:
    spaced = "".join(letter if letter.isalnum() else " " for letter in name.lower())
    return [word for word in spaced.split() if word not in NOISE.split()]


def _spellings(device: Device) -> set[str]:
    """With or without RTX, GTX or RX before it, GB behind it, and the size."""
    words = _words(device.name)
    ways = [words]
    if words[-1].endswith("gb"):
        ways += [words[:-1] + [words[-1][:-2]], words[:-1]]
    else:
        ways.append(words + [f"{device.marketed}gb"])
    ways += [way[1:] for way in ways if way[0] in ("rtx", "gtx", "rx")]
    return {"".join(way) for way in ways}
