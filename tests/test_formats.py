"""Storage formats, by hand and by property. What libraries build: test_formats_torch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.formats import Format, bits_per_value, bytes_per_value, format_of, names, storage

BLOCKS = [
    "int8/128",
    "int8/128:bf16",
    "int4/32:bf16+bf16",
    "int4/128:fp16+int4",
    "fp8_e4m3/256",
    "nf4/64:fp8_e4m3/256",
]
every_format = st.sampled_from([*names(), *BLOCKS])
# Their scales are in blocks themselves, and those blocks run on from row to row.
NESTED = ["nf4-dq", "nf4/64:fp8_e4m3/256"]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("fp32", 4),
        ("tf32", 4),
        ("fp16", 2),
        ("bf16", 2),
        ("fp8_e4m3", 1),
        ("fp8_e5m2", 1),
        ("int8", 1),
        ("int4", 0.5),
        ("nf4", 0.5 + 4 / 64),
        ("nf4-dq", 0.5 + 1 / 64 + 4 / (64 * 256)),
        ("mxfp8", 1 + 1 / 32),
        ("mxfp6", 0.75 + 1 / 32),
        ("mxfp4", 0.5 + 1 / 32),
        ("nvfp4", 0.5 + 1 / 16),
        ("int8/128", 1.03125),
        ("int8/128:bf16", 1.015625),
        ("int4/128:bf16+bf16", 0.53125),
        ("int8/128+int8", 1 + 5 / 128),
    ],
)
def test_bytes_per_value(name, size):
    assert bytes_per_value(name) == size
    assert bits_per_value(name) == size * 8
    # 2**20 values fill every block, so only what a tensor keeps once is added.
    assert storage(2**20, name) == size * 2**20 + format_of(name).tensor_bytes


@pytest.mark.parametrize(
    ("count", "name", "size"),
    [
        (0, "nvfp4", 0),
        (1, "int4", 1),  # half a byte is kept as a whole one
        (5, "int4", 3),
        (3, "mxfp6", 3 + 1),  # 18 bits, one scale
        (4, "fp6_e2m3", 3),
        (128, "int8/128", 128 + 4),
        (129, "int8/128", 129 + 8),  # the second block holds one value and pays a whole scale
        (33, "mxfp4", 17 + 2),
        (16, "nvfp4", 8 + 1 + 4),
        (65, "nf4", 33 + 8),
        (65, "nf4-dq", 33 + 2 + 4 + 4),  # values, 8-bit scales, their fp32 scale, the mean
        (3 * 16, "int4/16:bf16+int4", 24 + 6 + 2),  # three 4-bit zero points take two bytes
        (2**50, "bf16", 2**51),
    ],
)
def test_storage_by_hand(count, name, size):
    assert storage(count, name) == size


@pytest.mark.parametrize(
    ("count", "row", "name", "size"),
    [
        (6, 3, "int4", 2 * 2),  # a row ends on a byte
        (80, 40, "mxfp8", 80 + 2 * 2),  # 40 = 32 + 8: two scales a row
        (80, None, "mxfp8", 80 + 3),  # in one line 80 = 32 + 32 + 16
        (1024 * 512, 512, "int8/row+int8", 1024 * 512 + 1024 * 5),
        (0, 5, "int8/row", 0),
        (0, 0, "int8/row", 0),
    ],
)
def test_blocks_restart_on_each_row(count, row, name, size):
    assert storage(count, name, row=row) == size


def test_tf32_saves_time_and_no_byte():
    tf32, fp32 = format_of("tf32"), format_of("fp32")
    assert 1 + tf32.exponent_bits + tf32.mantissa_bits == 19
    assert tf32.bits == fp32.bits == 32


@given(name=every_format, count=st.integers(0, 10**6), more=st.integers(0, 1000))
def test_more_values_never_take_fewer_bytes(name, count, more):
    assert storage(count, name) <= storage(count + more, name)


@given(name=every_format, count=st.integers(1, 10**12))
def test_storage_stands_just_above_the_rate(name, count):
    """At least bits/8 a value; at most one unfilled block and one unfilled byte per level more."""
    kind = format_of(name)
    size = storage(count, name)
    assert type(size) is int
    assert 8 * size >= count * kind.bits
    rest = size - kind.tensor_bytes - count * bytes_per_value(name)
    assert 0 <= rest + 1e-3 and rest < 32


@given(name=every_format, a=st.integers(0, 10**6), b=st.integers(0, 10**6))
def test_one_tensor_never_takes_more_than_its_two_halves(name, a, b):
    together, apart = storage(a + b, name), storage(a, name) + storage(b, name)
    assert together <= apart <= together + 32


@given(
    name=every_format.filter(lambda name: name not in NESTED) | st.just("int8/row+int8"),
    rows=st.integers(1, 50),
    row=st.integers(1, 1000),
)
def test_rows_add_up(name, rows, row):
    """Each row is a tensor of its own, but for what a tensor keeps once."""
    once = format_of(name).tensor_bytes
    each = storage(row, name, row=row) - once
    together = storage(rows * row, name, row=row) - once
    if "int4" in name.partition("+")[2]:  # zero points are packed through the end of a row
        assert together <= rows * each <= together + rows
    else:
        assert together == rows * each


@given(
    base=st.sampled_from(["int8", "int4", "fp8_e4m3", "nf4", "fp4_e2m1"]),
    block=st.integers(1, 4096) | st.just("row"),
    scale=st.none() | st.sampled_from(["fp32", "bf16", "e8m0", "fp8_e4m3/256", "nvfp4"]),
    zero=st.none() | st.sampled_from(["int8", "bf16", "int4"]),
)
def test_a_name_spells_its_format(base, block, scale, zero):
    spelled = f"{base}/{block}" + (f":{scale}" if scale else "") + (f"+{zero}" if zero else "")
    kind = format_of(spelled)
    assert format_of(kind.name) == kind and format_of(kind) is kind
    assert kind.bits == format_of(base).bits
    assert kind.block == (0 if block == "row" else block)
    assert kind.scale == format_of(scale or "fp32")
    assert kind.zero == (format_of(zero) if zero else None)


def test_names_are_their_own_formats():
    for name in names():
        kind = format_of(name)
        assert kind.name == name and kind.source
        assert repr(kind) == f"format_of({name!r})"
    assert len({format_of(name) for name in names()}) == len(names())
    assert format_of("bf16") != "bf16"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fp8", "unknown format 'fp8'; known: fp32, .*nvfp4, and blocks such as"),
        ("BF16", "unknown format 'BF16'"),
        ("", "unknown format ''"),
        ("int9/128", "unknown format 'int9'.*in 'int9/128'"),
        ("mxfp4/32", "unknown format 'mxfp4'.*in 'mxfp4/32'"),
        ("int8/128:bf17", "unknown format 'bf17'"),
        ("int8/128:", "unknown format ''"),
        ("int8/128+", "unknown format ''"),
        ("int8/", "block '' in 'int8/' is neither a number above 0 nor 'row'"),
        ("int8/0", "block '0'"),
        ("int8/-4", "block '-4'"),
        ("int8/1.5", "block '1.5'"),
        ("int8/\N{SUPERSCRIPT TWO}", "is neither a number"),
        ("int8/32:int8/row", "cannot have a scale per row"),
        ("torch.bits8", "unknown format 'bits8'"),
    ],
)
def test_unknown_formats_are_refused_by_name(name, message):
    with pytest.raises(ValueError, match=message):
        format_of(name)


def test_a_format_is_a_name():
    for wrong in (8, None, b"bf16", ["bf16"]):
        with pytest.raises(TypeError, match="a name such as 'bf16' is needed"):
            format_of(wrong)


def test_counts_and_rows_are_refused_by_name():
    with pytest.raises(TypeError, match="count=1.5 is a float"):
        storage(1.5, "bf16")
    with pytest.raises(ValueError, match="count=-1 is negative"):
        storage(-1, "bf16")
    with pytest.raises(ValueError, match="count=10 is not a multiple of row=3"):
        storage(10, "bf16", row=3)
    with pytest.raises(ValueError, match="count=10 is not a multiple of row=0"):
        storage(10, "bf16", row=0)
    with pytest.raises(TypeError, match="row=2.0 is a float"):
        storage(10, "bf16", row=2.0)
    for function in (lambda: storage(10, "int8/row"), lambda: bits_per_value("int8/row")):
        with pytest.raises(ValueError, match="int8/row has one scale per row; row= .* is needed"):
            function()
    assert bytes_per_value("int8/row+int8", row=512) == 1 + 5 / 512


def test_a_format_can_be_built_by_hand():
    ternary = Format("ternary", (2, None, None, 1), "Ma et al. 2024, arXiv:2402.17764")
    assert storage(9, ternary) == 3 and bytes_per_value(ternary) == 0.25
