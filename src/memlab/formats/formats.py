"""How numbers are kept in memory: bits per value, and what a block of values shares.

A format is a name. Elementary formats (`bf16`) keep each value alone; block formats (`mxfp4`) add
a scale, and perhaps a zero point, for every `block` values. Any other block format is spelled

    <base>/<block>[:<scale format>][+<zero-point format>]

where the scale is fp32 unless named and the block is a number of values or `row`: `int8/128`,
`int8/128:bf16`, `int4/32:bf16+bf16`, `int8/row+int8`, `nf4/64:fp8_e4m3/256`. The names and their
sources stand in `format_table`. Plain enough to run under MicroPython in the page's calculator.
"""

from ..units import whole
from .format_table import ALIASES, BLOCKS, VALUES


class Format:
    """One storage format.

    name           how `format_of` calls it
    bits           that one value takes in memory, scales apart
    block          values that share a scale; 1: none shared, 0: the whole row
    scale, zero    the Format of a block's scale and of its zero point, or None
    tensor_bytes   what a tensor keeps once, whatever its size
    exponent_bits, mantissa_bits, max_value
                   of one value, before any scale; None where the word has no meaning
    source         the paper or standard that the constants come from
    """

    def __init__(
        self,
        name: str,
        value: tuple,
        source: str,
        block: int = 1,
        scale: "Format | None" = None,
        zero: "Format | None" = None,
        tensor_bytes: int = 0,
    ):
        self.name = name
        self.bits, self.exponent_bits, self.mantissa_bits, self.max_value = value
        self.source = source
        self.block = block
        self.scale = scale
        self.zero = zero
        self.tensor_bytes = tensor_bytes

    @property
    def smallest_normal(self) -> float | None:
        """The smallest value with full precision: 2^(2 - 2^(exponent bits - 1))."""
        if not self.mantissa_bits:
            return None
        return 2.0 ** (2 - 2 ** (self.exponent_bits - 1))

    @property
    def epsilon(self) -> float | None:
        """The step from 1 to the next value: 2^-(mantissa bits)."""
        return 2.0**-self.mantissa_bits if self.mantissa_bits else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"format_of({self.name!r})"


def names() -> list[str]:
    """The named formats; block formats in general are spelled as the module says."""
    return list(VALUES) + [name for name in BLOCKS if name not in VALUES]


_KNOWN: dict[str, Format] = {}  # the named ones, each made once: it is asked for every tensor


def format_of(name: "str | Format") -> Format:
    """The format of that name.

    Example     format_of("int8/128").block -> 128; `torch.bfloat16` and "float32" do as well
    Raises      TypeError for something that is not a name, ValueError for an unknown one (it lists
                the known ones) and for a block that is neither a positive number nor `row`
    """
    if isinstance(name, Format):
        return name
    words = name if isinstance(name, str) else str(name)
    if words.startswith("torch."):
        words = words[len("torch.") :]
    elif not isinstance(name, str):
        raise TypeError(
            f"format={name!r} is a {type(name).__name__}; a name such as 'bf16' is needed"
        )
    words = ALIASES.get(words, words)
    if words in _KNOWN:
        return _KNOWN[words]
    if words in BLOCKS:
        spelled, tensor_bytes, source = BLOCKS[words]
        made = _spelled(spelled)
        made.name, made.tensor_bytes, made.source = words, tensor_bytes, source
        _KNOWN[words] = made
        return made
    if words in VALUES:
        _KNOWN[words] = _elementary(words)
        return _KNOWN[words]
    if "/" in words:
        return _spelled(words)
    raise ValueError(_unknown(words))


def storage(count: int, format: "str | Format", *, row: int | None = None) -> int:
    """Bytes of `count` values: the values, their scales and zero points, what is kept once.

    Formula     r·⌈w·bits/8⌉ + S(r·⌈w/block⌉) + Z(r·⌈w/block⌉) + tensor_bytes
                for r = count/w rows of w = `row` values; without `row`, one row of all values
    Shapes      S, Z: storage of one scale and one zero point per block. Give `row` where blocks
                restart on each row (MX, NVFP4, int4), none where they run through the flattened
                tensor (nf4, 8-bit optimizer state)
    Unit        bytes, a whole number; values below a byte are packed and a row ends on a byte;
                a last block that is not full pays a whole scale, its values are not padded
    Source      that of the Format; partial blocks as bitsandbytes (torchao refuses them)
    Leaves out  padding of the scales for a kernel (NVFP4 and MX: tiles of 128 x 4), lookup tables
                that an implementation copies into each tensor, rounding by the allocator
    Raises      ValueError where `row` does not divide `count` or a per-row format lacks `row`,
                and as `format_of` and `units.whole`
    """
    kind = format_of(format)
    whole("count", count)
    width = count if row is None else whole("row", row)
    if kind.block == 0 and row is None:
        raise ValueError(f"{kind.name} has one scale per row; row= (values per row) is needed")
    if count == 0:
        return 0
    if width == 0 or count % width:
        raise ValueError(f"count={count} is not a multiple of row={width}")
    rows = count // width
    blocks = rows * _ceil(width, kind.block or width)
    total = rows * _ceil(width * kind.bits, 8) + kind.tensor_bytes
    for shared in (kind.scale, kind.zero):
        if shared is not None:
            total += storage(blocks, shared)
    return total


def bits_per_value(format: "str | Format", *, row: int | None = None) -> float:
    """Bits of one value with its share of a full block's scale and zero point.

    Formula     bits + (bits per scale + bits per zero point) / block
    Unit        bits; for bytes, `bytes_per_value`
    Leaves out  what a tensor keeps once (`tensor_bytes`), and blocks that are not full: `storage`
    Raises      ValueError where a per-row format lacks `row`; otherwise as `format_of`
    """
    kind = format_of(format)
    block = kind.block or row
    if not block:
        raise ValueError(f"{kind.name} has one scale per row; row= (values per row) is needed")
    shared = [bits_per_value(each) for each in (kind.scale, kind.zero) if each is not None]
    return kind.bits + sum(shared) / block


def bytes_per_value(format: "str | Format", *, row: int | None = None) -> float:
    """Bytes of one value with its share of the scale: `bits_per_value` / 8."""
    return bits_per_value(format, row=row) / 8


def _ceil(count: int, size: int) -> int:
    return -(-count // size)


def _elementary(name: str) -> Format:
    bits, exponent_bits, mantissa_bits, max_value, source = VALUES[name]
    return Format(name, (bits, exponent_bits, mantissa_bits, max_value), source)


def _spelled(name: str) -> Format:
    """A Format from `<base>/<block>[:<scale>][+<zero>]`; the + belongs to the outermost block."""
    rest, plus, zero_name = name.partition("+")
    base, _, rest = rest.partition("/")
    length, colon, scale_name = rest.partition(":")
    if base not in VALUES:
        raise ValueError(_unknown(base) + f" (in {name!r})")
    digits = length and all(c in "0123456789" for c in length)
    if length != "row" and not (digits and int(length)):
        raise ValueError(f"block {length!r} in {name!r} is neither a number above 0 nor 'row'")
    scale = format_of(scale_name if colon else "fp32")
    zero = format_of(zero_name) if plus else None
    if scale.block == 0 or (zero is not None and zero.block == 0):
        raise ValueError(f"{name!r}: scales have no rows, so they cannot have a scale per row")
    made = _elementary(base)
    made.block = 0 if length == "row" else int(length)
    made.scale, made.zero = scale, zero
    made.name = f"{base}/{made.block or 'row'}"
    if scale.name != "fp32":
        made.name += ":" + scale.name
    if zero is not None:
        made.name += "+" + zero.name
    return made


def _unknown(name: str) -> str:
    known = ", ".join(names())
    return f"unknown format {name!r}; known: {known}, and blocks such as 'int8/128:bf16'"
