"""Devices: the numbers are what their sources say, and names are found however they are typed."""

import pytest

from memlab import GB, GiB, MiB
from memlab.devices import Device, device, devices, room

# As printed in the sources: nvidia-smi in MiB, then deviceQuery in bytes or PyTorch in GiB.
READINGS = {
    "GTX 1080 Ti": (11, None, 10.92),
    "RTX 2080 Ti": (11, None, 10.76),
    "RTX 2080 SUPER": (8, 8192, None),
    "TITAN RTX": (24, 24576, None),
    "RTX 3060": (12, 12288, 11.76),
    "RTX 3070": (8, 8192, 7.78),
    "RTX 3080": (10, None, 9.78),
    "RTX 3080 Ti": (12, None, 12.0),
    "RTX 3090": (24, 24576, 23.56),
    "RTX 3090 Ti": (24, 24564, None),
    "RTX 4060": (8, 8188, None),
    "RTX 4070": (12, 12282, None),
    "RTX 4070 SUPER": (12, None, 11.99),
    "RTX 4070 Ti": (12, None, 11.73),
    "RTX 4070 Ti SUPER": (16, 16376, None),
    "RTX 4080": (16, None, 16076 * MiB),
    "RTX 4080 SUPER": (16, 16376, None),
    "RTX 4090": (24, 24564, 23.64),
    "RTX 5070": (12, 12227, None),
    "RTX 5070 Ti": (16, 16303, None),
    "RTX 5080": (16, None, 15.48),
    "RTX 5090": (32, 32607, 33677180928),
    "RTX 5060 Ti 16GB": (16, None, 15816 * MiB),
    "RTX 4060 Ti 16GB": (16, None, 15.55),
    "RTX 4060 Laptop": (8, None, 7.75),
    "RTX 4070 Laptop": (8, None, 7805 * MiB),
    "DGX Spark GB10": (128, None, 121.69),
    "Quadro RTX 8000": (48, None, 47.46),
    "RTX A2000 12GB": (12, None, 11.53),
    "RTX A4000": (16, 16376, 15.61),
    "RTX A5000": (24, None, 23.67),
    "RTX A6000": (48, 49140, 47.54),
    "RTX 6000 Ada": (48, 46068, 44.43),
    "RTX PRO 6000": (96, 97887, 94.97),
    "T4": (16, 15360, 14.56),
    "P40": (24, 24576, 22.38),
    "P100 16GB": (16, 16384, None),
    "V100 16GB": (16, None, 15.78),
    "V100 32GB": (32, None, 31.74),
    "L4": (24, 23034, None),
    "A10": (24, 23028, None),
    "A10G": (24, None, 22.2),
    "A30": (24, None, 23.53),
    "A40": (48, 46068, 44.4),
    "L40": (48, None, 44.4),
    "L40S": (48, 46068, 44.42),
    "A100 40GB": (40, 40960, 42298834944),
    "A100 80GB": (80, 81920, 79.25),
    "A800 80GB": (80, 81920, 79.33),
    "H100 80GB": (80, 81559, 79.11),
    "H100 NVL": (94, None, 93.0),
    "GH200 96GB": (96, 97871, 94.5),
    "H200": (141, 143771, None),
    "H20": (96, 97871, None),
    "B200": (180, 183359, 178.35),
    "GB200": (186, 189471, 184.31),
    "GB300": (288, None, 276.5),
    "B300": (288, None, 267.7),
    "RX 7900 XTX": (24, 24560, None),
    "MI300X": (192, None, 206141652992),
    "MI325X": (256, None, 255.98),
}

CORRECTED = ("T4", "L4", "A10", "A10G", "P40", "A40", "L40", "L40S", "RTX 6000 Ada")
DECIMAL = ("B300", "GB300")  # whose box counts GB of 10^9 bytes, where others' count GiB
SHARED = ("DGX Spark GB10",)  # whose processor has the same memory
KEPT = 400 * MiB  # by a driver at most, which is more of a small card
DRIVERS = ("nvidia-smi", "amdgpu")
PROGRAMS = ("PyTorch", "deviceQuery", "totalGlobalMem", "cudaMemGetInfo", "CUDA-visible")


def test_each_number_is_one_reading():
    assert [each.name for each in devices()] == list(READINGS)
    for each in devices():
        marketed, smi, cuda = READINGS[each.name]
        assert each.marketed == marketed
        assert each.driver == (None if smi is None else smi * MiB)
        if isinstance(cuda, float):
            assert f"{each.usable / GiB:.2f}" == f"{cuda:.2f}"
        else:
            assert each.usable == cuda


@pytest.mark.parametrize("each", devices(), ids=lambda each: each.name)
def test_the_numbers_are_plausible(each):
    """Usable is less than the driver's, and neither is far from the box."""
    numbers = [number for number in (each.usable, each.driver) if number is not None]
    assert numbers == sorted(numbers) and each.limit == numbers[0]
    # GDDR has no memory of its own for error correction: where that is on, it takes a sixteenth.
    share = 15 / 16 if each.name in CORRECTED else 1
    share -= 0.01 * (each.name in SHARED)
    box = share * each.marketed * (GB if each.name in DECIMAL else GiB)
    assert all(min(0.96 * box, box - KEPT) < n for n in numbers)
    assert all(n <= 1.09 * each.marketed * GiB for n in numbers)
    assert all(n > each.marketed * GB * 0.98 for n in numbers) or each.name == "T4"
    assert each.sources and all(source.startswith("https://") for source in each.sources)
    # a driver's tool is named where its number is given, a program where usable is
    said = " ".join(each.sources)
    assert any(tool in said for tool in DRIVERS) == (each.driver is not None)
    seen = any(program in said for program in PROGRAMS)
    assert seen == (each.usable is not None)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("  4090 ", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("rtx-4090 24GB", "RTX 4090"),
        ("rtx 4060 laptop gpu", "RTX 4060 Laptop"),
        ("A6000", "RTX A6000"),
        ("Tesla T4", "T4"),
        ("V100-32GB", "V100 32GB"),
        ("RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("a100-80", "A100 80GB"),
        ("A100-PCIE-40GB", "A100 40GB"),
        ("h100", "H100 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB"),
        ("h200 141GB", "H200"),
        ("nvidia b200", "B200"),
        ("L40S", "L40S"),
        ("NVIDIA A800-SXM4-80GB", "A800 80GB"),
        ("h20", "H20"),
        ("NVIDIA GB300", "GB300"),
        ("NVIDIA GB10", "DGX Spark GB10"),
        ("Tesla P40", "P40"),
        ("1080 Ti", "GTX 1080 Ti"),
        ("NVIDIA GeForce RTX 4070", "RTX 4070"),
        ("Quadro RTX 8000", "Quadro RTX 8000"),
        ("RTX 3090 Ti", "RTX 3090 Ti"),
        ("4060", "RTX 4060"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti SUPER"),
        ("4070 ti", "RTX 4070 Ti"),
        ("NVIDIA TITAN RTX", "TITAN RTX"),
        ("H100 NVL 94GB", "H100 NVL"),
        ("gh200", "GH200 96GB"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("AMD Instinct MI300X", "MI300X"),
        ("Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("7900xtx", "RX 7900 XTX"),
    ],
)
def test_names_as_people_type_them(typed, name):
    assert device(typed).name == name
    assert device(device(typed)) is device(name)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("A100", "'A100' may be A100 40GB or A100 80GB"),
        ("RTX 4900", r"did you mean RTX 4090.*\? `memlab devices` lists"),
        ("RTX 3070 Ti", r"unknown device 'RTX 3070 Ti'; did you mean .*RTX 4070 Ti"),
        ("H100 96GB", "unknown device 'H100 96GB'"),
        ("RTX 4050", "unknown device 'RTX 4050'; did you mean .*RTX 4090"),
        ("toaster", "unknown device 'toaster'; `memlab devices` lists .* a size"),
        ("", "unknown device ''; `memlab devices`"),
        ("nvidia", "unknown device 'nvidia'; `memlab devices`"),
    ],
)
def test_other_names_are_refused(typed, message):
    with pytest.raises(ValueError, match=message):
        device(typed)


def test_a_name_is_text():
    with pytest.raises(TypeError, match="name=4090 is a int"):
        device(4090)


def test_as_text():
    assert str(device("5090")) == "RTX 5090 (32 GB, usable 31.36 GiB)"
    assert str(device("h200")) == "H200 (141 GB, usable unknown)"
    assert isinstance(device("h200"), Device)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("24", "'24' has no unit; say it: 24 GB[?]$"),
        ("4090", "'4090' has no unit; say it: 4090 MB[?] Or did you mean RTX 4090[?]"),
        ("-5 GB", "on=-5000000000 is negative"),
        ("24 gigs", "unknown unit 'gigs'"),
    ],
)
def test_a_card_is_no_number_and_a_number_has_a_unit(words, message):
    with pytest.raises(ValueError, match=message):
        room(words)


def test_room_takes_cards_sizes_and_bytes():
    assert room("24 GiB") == (24 * GiB, "24 GiB") and room(2**30) == (GiB, "1 GiB")
    assert room("4060 laptop")[1] == "RTX 4060 Laptop"
    assert room("H100") == (device("H100").limit, "H100 80GB")
