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


def _mib(count: int) -> int:
    return count * MiB


def _gib(hundredths: int) -> int:
    """Bytes of a number that was printed in GiB with two decimals: right to 5 MiB."""
    return hundredths * GiB // 100


_DEVICES = (
    Device("GTX 1080 Ti", 11, None, _gib(1092), 6),
    Device("RTX 2080 Ti", 11, None, _gib(1076), 7),
    Device("RTX 2080 SUPER", 8, _mib(8192), None, 7),
    Device("TITAN RTX", 24, _mib(24576), None, 7),
    Device("RTX 3060", 12, _mib(12288), _gib(1176), 8),
    Device("RTX 3070", 8, _mib(8192), _gib(778), 8),
    Device("RTX 3080", 10, None, _gib(978), 8),
    Device("RTX 3080 Ti", 12, None, _gib(1200), 8),
    Device("RTX 3090", 24, _mib(24576), _gib(2356), 8),
    Device("RTX 3090 Ti", 24, _mib(24564), None, 8),
    Device("RTX 4060", 8, _mib(8188), None, 8),
    Device("RTX 4070", 12, _mib(12282), None, 8),
    Device("RTX 4070 SUPER", 12, None, _gib(1199), 8),
    Device("RTX 4070 Ti", 12, None, _gib(1173), 8),
    Device("RTX 4070 Ti SUPER", 16, _mib(16376), None, 8),
    Device("RTX 4080", 16, None, _mib(16076), 8),
    Device("RTX 4080 SUPER", 16, _mib(16376), None, 8),
    Device("RTX 4090", 24, _mib(24564), _gib(2364), 8),
    Device("RTX 5070", 12, _mib(12227), None, 12),
    Device("RTX 5070 Ti", 16, _mib(16303), None, 12),
    Device("RTX 5080", 16, None, _gib(1548), 12),
    Device("RTX 5090", 32, _mib(32607), 33677180928, 12),
    Device("RTX 5060 Ti 16GB", 16, None, _mib(15816), 12),
    Device("RTX 4060 Ti 16GB", 16, None, _gib(1555), 8),
    Device("RTX 4060 Laptop", 8, None, _gib(775), 8),
    Device("RTX 4070 Laptop", 8, None, _mib(7805), 8),
    Device("DGX Spark GB10", 128, None, _gib(12169), 12),
    Device("Quadro RTX 8000", 48, None, _gib(4746), 7),
    Device("RTX A2000 12GB", 12, None, _gib(1153), 8),
    Device("RTX A4000", 16, _mib(16376), _gib(1561), 8),
    Device("RTX A5000", 24, None, _gib(2367), 8),
    Device("RTX A6000", 48, _mib(49140), _gib(4754), 8),
    Device("RTX 6000 Ada", 48, _mib(46068), _gib(4443), 8),
    Device("RTX PRO 6000", 96, _mib(97887), _gib(9497), 12),
    Device("T4", 16, _mib(15360), _gib(1456), 7),
    Device("P40", 24, _mib(24576), _gib(2238), 6),
    Device("P100 16GB", 16, _mib(16384), None, 6),
    Device("V100 16GB", 16, None, _gib(1578), 7),
    Device("V100 32GB", 32, None, _gib(3174), 7),
    Device("L4", 24, _mib(23034), None, 8),
    Device("A10", 24, _mib(23028), None, 8),
    Device("A10G", 24, None, _gib(2220), 8),
    Device("A30", 24, None, _gib(2353), 8),
    Device("A40", 48, _mib(46068), _gib(4440), 8),
    Device("L40", 48, None, _gib(4440), 8),
    Device("L40S", 48, _mib(46068), _gib(4442), 8),
    Device("A100 40GB", 40, _mib(40960), 42298834944, 8),
    Device("A100 80GB", 80, _mib(81920), _gib(7925), 8),
    Device("H100 80GB", 80, _mib(81559), _gib(7911), 9),
    Device("H100 NVL", 94, None, _gib(9300), 9),
    Device("GH200 96GB", 96, _mib(97871), _gib(9450), 9),
    Device("H200", 141, _mib(143771), None, 9),
    Device("B200", 180, _mib(183359), _gib(17835), 10),
    Device("GB200", 186, _mib(189471), _gib(18431), 10),
    Device("B300", 288, None, _gib(26770), 10),
    Device("RX 7900 XTX", 24, _mib(24560), None),
    Device("MI300X", 192, None, 206141652992),
    Device("MI325X", 256, None, _gib(25598)),
)


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
        f"unknown device {name!r}; {hint}known: {', '.join(each.name for each in _DEVICES)}"
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
