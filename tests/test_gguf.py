"""A GGUF file holds the blocks that ggml's source describes; what is none is refused."""

import struct

import pytest
import torch

from memlab import Model
from memlab.lab import gguf

# ggml-common.h's own words on bits a value: "Effectively 4.5 bits per weight" of Q4_K, and so on.
BITS = {"F32": 32, "F16": 16, "Q8_0": 8.5, "Q4_0": 4.5, "Q4_K": 4.5, "Q6_K": 6.5625}


def test_a_block_has_the_bits_that_the_source_says():
    for kind, bits in BITS.items():
        assert gguf.tensor_bytes(256, kind) * 8 / 256 == bits
    assert set(BITS) == set(gguf.KINDS)


# https://huggingface.co/ddh0/UnquantizedEmbeddingTesting/blame/main/sizes.txt: bytes of files of
# Meta-Llama-3-8B-Instruct, embedding and head in F16 (the first: all in BF16, of the same width).
POSTED = {
    ("F16", None): 16_068_890_912,
    ("Q8_0", None): 9_525_776_672,
    ("Q6_K", None): 7_835_472_160,
    ("Q4_K", "Q6_K"): 6_295_638_304,
}


def test_posted_files_differ_by_their_blocks_to_the_byte():
    """What is left in each is the same: the tokenizer and the names, which have no format."""
    llama = Model.preset("llama-3-8b")
    left = {
        size - gguf.model_bytes(llama, layers, "F16", more=more)
        for (layers, more), size in POSTED.items()
    }
    assert left == {7_835_936}


def test_every_layer_of_llama_that_gets_more_bits():
    rich = [i for i in range(32) if gguf.more_bits(i, 32)]
    assert rich == [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]


def test_a_block_by_hand():
    """As quantize_row_q8_0_ref and quantize_row_q4_0_ref compute it."""
    row = torch.zeros(32)
    row[0], row[1], row[16], row[31] = -4.0, 2.0, 1.0, 0.25
    eight = gguf.encode(row, "Q8_0")
    assert len(eight) == 34 and struct.unpack("<e", eight[:2])[0] == torch.tensor(4 / 127).half()
    codes = struct.unpack("<32b", eight[2:])
    assert (codes[0], codes[1], codes[16], codes[31]) == (-127, 64, 32, 8)  # 63.5 is rounded up
    four = gguf.encode(row, "Q4_0")
    assert len(four) == 18 and struct.unpack("<e", four[:2])[0] == 0.5
    assert (four[2] & 15, four[2] >> 4) == (0, 10) and four[3] & 15 == 12  # -4, 1 and 2
    assert four[17] >> 4 == 9  # 0.25 is half a step: up to 0.5
    back = gguf.decode(four, "Q4_0", (32,))
    assert back[[0, 1, 16, 31, 5]].tolist() == [-4, 2, 1, 0.5, 0]


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0"])
def test_a_file_is_read_as_it_was_written(tmp_path, kind):
    torch.manual_seed(0)
    weight, norm = torch.randn(3, 64), torch.randn(5)
    path = tmp_path / "small.gguf"
    said = {"general.architecture": "llama", "general.quantization_version": 2}
    gguf.write(path, {"a.weight": (kind, weight), "norm": ("F32", norm)}, said)
    found = gguf.read(path)
    assert found.metadata == said and found.size == path.stat().st_size
    assert found.tensors["a.weight"][:2] == (kind, (3, 64))
    assert found.tensors["norm"][:2] == ("F32", (5,))
    assert found.data % 32 == 0 and all(info.start % 32 == 0 for info in found.tensors.values())
    data = path.read_bytes()
    start = found.tensors["a.weight"].start
    back = gguf.decode(data[start : start + gguf.tensor_bytes(192, kind)], kind, (3, 64))
    most = {"F32": 0, "F16": 1e-3, "Q8_0": 0.006, "Q4_0": 0.09}[kind] * weight.abs().max()
    assert (back - weight).abs().max() <= most
    # The first bytes by the specification: magic, version 3, two tensors, two pairs of metadata.
    assert data[:24] == b"GGUF" + struct.pack("<IQQ", 3, 2, 2)
    assert data[24:52] == struct.pack("<Q", 20) + b"general.architecture"


def test_zeros_stay_zeros():
    for kind in ("Q8_0", "Q4_0"):
        assert not gguf.decode(gguf.encode(torch.zeros(64), kind), kind, (64,)).any()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: b"GGML" + data[4:], "is no GGUF file"),
        (lambda data: data[:4] + struct.pack("<I", 2) + data[8:], "version 2; 3 is read here"),
        (lambda data: data[:40], "ends in its head"),
        (lambda data: data[:26], "ends in its head"),
        (lambda data: data.replace(struct.pack("<I", 8), struct.pack("<I", 9), 1), "kind 9"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path, spoil, words):
    path = tmp_path / "small.gguf"
    gguf.write(path, {"w": ("F32", torch.zeros(2, 2))}, {"general.name": "none"})
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match=words):
        gguf.read(path)


def test_what_is_not_described_is_named():
    with pytest.raises(ValueError, match="48 values do not fill blocks of 32"):
        gguf.encode(torch.zeros(2, 48), "Q8_0")
    with pytest.raises(ValueError, match="unknown kind 'Q9'; known: F32, F16"):
        gguf.tensor_bytes(32, "Q9")
    with pytest.raises(ValueError, match="Q4_K is not written here"):
        gguf.encode(torch.zeros(256), "Q4_K")
    with pytest.raises(ValueError, match="Q6_K is not read here"):
        gguf.decode(bytes(210), "Q6_K", (256,))


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "small.gguf"
    weights = {"a": ("Q8_0", torch.ones(3, 64)), "b": ("F32", torch.ones(5))}
    gguf.write(path, weights, {"general.name": "none"})
    data, last = path.read_bytes(), gguf.read(path).tensors["b"].start + 4 * 5
    for size in range(last):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"ends in its head|ends before [ab], |no GGUF file"):
            gguf.read(path)
    path.write_bytes(data[:last])  # the padding may be missing
    assert gguf.read(path).size == last


def test_a_head_that_lies_is_refused(tmp_path):
    path = tmp_path / "small.gguf"
    gguf.write(path, {"w": ("F32", torch.ones(2, 2))}, {})
    data = path.read_bytes()
    name = struct.pack("<Q", 1) + b"w"
    told = name + struct.pack("<IQQIQ", 2, 2, 2, 0, 0)
    assert told in data
    for dims, shape, kind, offset in [
        (2, (2, 2), 0, 2**62),
        (2, (2, 2), 0, 2**64 - 32),
        (2, (2**63, 2**63), 0, 0),
        (2, (2, 9), 0, 0),
        (2, (2**63, 2**63), 8, 0),
    ]:
        lie = name + struct.pack("<IQQIQ", dims, *shape, kind, offset)
        path.write_bytes(data.replace(told, lie))
        with pytest.raises(ValueError, match="small.gguf ends before w, "):
            gguf.read(path)
    path.write_bytes(data.replace(told, told.replace(struct.pack("<I", 2), struct.pack("<I", 5))))
    with pytest.raises(ValueError, match="with 5 dimensions is not read"):
        gguf.read(path)
    many = data[:8] + struct.pack("<QQ", 2, 0) + told + told
    path.write_bytes(many + bytes(64))
    with pytest.raises(ValueError, match="w is there twice"):
        gguf.read(path)
    path.write_bytes(data[:8] + struct.pack("<QQ", 2**62, 2**62))
    with pytest.raises(ValueError, match="ends in its head"):
        gguf.read(path)
