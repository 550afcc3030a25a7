"""The named storage formats, each under its source. `formats` turns the rows into Formats.

Ordered by hand: MicroPython forgets the order of a plain dict, and the names are shown in this one.
"""

from collections import OrderedDict

# IEEE 754-2019, table 3.5 (fp32 is binary32, fp16 is binary16): sign, exponent, fraction.
IEEE = "IEEE 754-2019, table 3.5"
# bf16: the upper half of fp32.
BF16 = "Kalamkar et al. 2019, arXiv:1905.12322"
# tf32 is a format to COMPUTE in: a tensor core reads 19 bits (1 + 8 + 10) of the 32 that stay in
# memory. It saves time and no byte.
TF32 = "NVIDIA A100 Tensor Core GPU Architecture, 2020; 19 of the 32 stored bits are used"
# e4m3 gives up infinity and keeps one NaN per sign, hence 448 and not 240; e5m2 follows IEEE 754.
FP8 = "Micikevicius et al. 2022, arXiv:2209.05433, table 1"
# fp6 and fp4 have neither infinity nor NaN; e8m0 is a power of two without a sign.
OCP = "OCP Microscaling Formats (MX) v1.0, 2023, section 5"
# Two's complement. max_value is the largest positive one.
INTEGER = "two's complement"
# 16 quantiles of a normal distribution between -1 and 1: a lookup table, so no exponent.
NF4 = "Dettmers et al. 2023, QLoRA, arXiv:2305.14314, section 3"
NVFP4 = "NVIDIA 2025, Pretraining LLMs with NVFP4, arXiv:2509.25149"
MX = "OCP Microscaling Formats (MX) v1.0, 2023, table 1: block 32, scale e8m0"

# name: (bits in memory, exponent bits, mantissa bits, largest finite value, source)
VALUES: dict[str, tuple] = OrderedDict(
    [
        ("fp32", (32, 8, 23, (2 - 2.0**-23) * 2.0**127, IEEE)),
        ("tf32", (32, 8, 10, (2 - 2.0**-10) * 2.0**127, TF32)),
        ("fp16", (16, 5, 10, 65504.0, IEEE)),
        ("bf16", (16, 8, 7, (2 - 2.0**-7) * 2.0**127, BF16)),
        ("fp8_e4m3", (8, 4, 3, 448.0, FP8)),
        ("fp8_e5m2", (8, 5, 2, 57344.0, FP8)),
        ("fp6_e2m3", (6, 2, 3, 7.5, OCP)),
        ("fp6_e3m2", (6, 3, 2, 28.0, OCP)),
        ("fp4_e2m1", (4, 2, 1, 6.0, OCP)),
        ("e8m0", (8, 8, 0, 2.0**127, OCP)),
        ("int64", (64, None, None, 2**63 - 1, INTEGER)),
        ("int32", (32, None, None, 2**31 - 1, INTEGER)),
        ("int8", (8, None, None, 127, INTEGER)),
        ("int4", (4, None, None, 7, INTEGER)),
        # As the base of a block format; alone, `nf4` is the block format of the paper, below.
        ("nf4", (4, None, None, 1.0, NF4)),
    ]
)

# name: (spelled with the formats above, bytes kept once per tensor, source)
BLOCKS: dict[str, tuple] = OrderedDict(
    [
        ("nf4", ("nf4/64", 0, NF4)),
        # Double quantization: 8-bit scales, themselves in blocks of 256 with an fp32 scale. The 4
        # bytes are the fp32 mean that is subtracted from the scales first (bitsandbytes: `offset`);
        # the paper's 0.127 bits per value leave it out.
        ("nf4-dq", ("nf4/64:fp8_e4m3/256", 4, NF4 + ", Double Quantization")),
        # mxfp8 with e5m2 and mxfp6 with e3m2 are in the standard too and take the same bytes.
        ("mxfp8", ("fp8_e4m3/32:e8m0", 0, MX)),
        ("mxfp6", ("fp6_e2m3/32:e8m0", 0, MX)),
        ("mxfp4", ("fp4_e2m1/32:e8m0", 0, MX)),
        # The 4 bytes are the fp32 scale of the whole tensor.
        ("nvfp4", ("fp4_e2m1/16:fp8_e4m3", 4, NVFP4)),
    ]
)

# What PyTorch calls them (also as a dtype: str(torch.bfloat16) is "torch.bfloat16"). Its
# float4_e2m1fn_x2 holds two values in one element, so it is no name for the format of one.
ALIASES = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float8_e8m0fnu": "e8m0",
}
