"""Note 002: a status report of a nanochat in Rust: Muon in 8 bits, and what else saves memory.

The program is public (github.com/architehc/nanochat-rs-ternary, commit 0524d2d of 15 February 2026,
which holds this very report). No test fetches it: what was read there is CODE, facts only; the
shapes are in memlab.cases.muon_lion. All bytes are computed here, from the figures of the claims
where they have any.
"""

import math
import re
from functools import cache
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest import mock

import torch
from audit.judge import Finding, compare

from memlab import GB, Run, text
from memlab.cases.muon_lion import D20, D20_FULL, MEDIUM_3B, TEST_8BIT, optimizer, peak, states
from memlab.cases.planner import flops_per_token
from memlab.devices import device
from memlab.fit import limit_of
from memlab.formats import bytes_per_value
from memlab.lab import fp8 as lab_fp8
from memlab.lab import text as alice
from memlab.lab.checkpoint_rotation import KeepLast
from memlab.lab.galore import GaLore
from memlab.lab.models import TinyLlama
from memlab.lab.muon8 import Muon8, narrow, widen
from memlab.lab.train import one_thread
from memlab.measure import Saved, Tracker, storage_bytes
from memlab.model import Model
from memlab.step import simulate
from memlab.terms import activations, fp8, low_rank, offloading

# What the program's source says at that commit, where a check computes with it. What a claim says
# of the source alone has its place in the claim, as a source.
CODE = {
    "bytes that cross": 12,  # a value and step: the wide momentum twice there, once back
    "mtp": {"d20-e3-full": 3},  # further heads, each with a weight [V, D] and a bias [V]
    "benchmark": {"baseline": D20, "8-bit": TEST_8BIT},
    # batch_size, and half of max_seq_len: what main.rs takes where no length is given, as by the
    # scripts that start these two
    "batch": {"d20-e3-full": (8, 1024), "medium_3b": (2, 2048)},
    "d20-e3-full on 24 GB": "out of memory",  # STATUS.md, at the same commit
}
# NVIDIA Ada GPU architecture, V2.01: FP32 products of an RTX 4090, and of TF32 alike.
FP32_RATE = 82.6e12
MODELS = TEST_8BIT, D20_FULL, MEDIUM_3B
LENGTH = 1024  # tokens of a sequence where a claim names none: as the program is launched
TINY = Model(layers=2, d_model=128, d_ff=384, heads=4, vocab=256, positions=64)
PARTS = {"weights": (1.1, 1.1), "activations": (4, 8), "gradients": (1.1, 1.1)}


def numbers(words):
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", words)]


def gb(count):
    return f"{count / GB:.2f} GB"


def percent(x):
    return f"{100 * x:.1f}%"


def span(low, high):
    return f"{low:.1f} to {high:.1f} GB"


def verdict(good, found, slip, right):
    return Finding(found) if good else Finding(found, slip, right)


@cache
def codes():
    """What a running Muon8 keeps of a matrix between two steps: codes, and scales beside them."""
    torch.manual_seed(0)
    matrix = torch.nn.Parameter(torch.randn(64, 128))
    muon = Muon8([matrix])
    matrix.grad = torch.randn(64, 128)
    muon.step()
    return muon.state[matrix]["momentum"]


def each_value():
    """Bytes of the running Muon8's momentum for each value."""
    return storage_bytes(list(codes())) / codes().codes.numel()


@cache
def kept(model, eight=False, host=False):
    found = states(model, eight=eight, host=host)
    if eight and not host:
        found["muon"] = round(each_value() * of_muon(model))
    return sum(found.values())


# As the program is launched: half of its longest sequence, unfused attention.
LAUNCHED = Run(batch=4, tokens=1024, implementation="transformers", attention="eager")
WAYS = {"eager attention": LAUNCHED, "fused": Run(batch=4, implementation="memlab")}


@cache
def most(model=D20_FULL, batch=4, tokens=1024, *, eight=False, eager=True, **more):
    way = LAUNCHED if eager else WAYS["fused"]
    return peak(model, kept(model, eight), way.replace(batch=batch, tokens=tokens, **more))[0]


def of_muon(model):
    return states(model)["muon"] // 4


def shares():
    return [1 - kept(m, True) / kept(m) for m in MODELS]


# What the source says.


def bus_of_the_program(claim):
    (claimed,) = numbers(claim.figures)
    crossing = CODE["bytes that cross"] * of_muon(D20_FULL)
    bus = offloading.microseconds(crossing, bandwidth=offloading.pcie(4)) / 1e6
    products = flops_per_token(D20_FULL, 1024) * 4096 / FP32_RATE
    words = f"{gb(crossing)} a step over the bus, {1e3 * bus:.0f} ms at least; products of "
    words += f"4 x 1,024 tokens: {1e3 * products:.0f} ms at least"
    added = bus / products
    return verdict(
        added < 2 * claimed / 100, words, "missing term", f"up to {100 * added:.0f}% more"
    )


# Bytes of a value, and the formula.


def in_int8(claim):
    kept_codes = codes().codes
    kind = str(kept_codes.dtype).removeprefix("torch.")
    words = f"codes of {kind}, {kept_codes.shape[1]} to a scale"
    return verdict(kind == claim.figures, words, "wrong model", kind)


def bytes_each(claim):
    (claimed,) = numbers(claim.figures)
    wanted = each_value() if "INT8" in claim.claim else bytes_per_value("fp32")
    return compare(claimed, wanted, lambda x: f"{x:g} B")


def reduction(claim):
    """Of the values that Muon keeps, which is what 1.03 and 4 are about."""
    (claimed,) = numbers(claim.figures)
    return compare(claimed, 100 * (1 - each_value() / 4), lambda x: f"{x:.1f}%")


def reduction_of_all(claim):
    claimed = max(numbers(claim.figures))
    near = all(abs(100 * x - claimed) < 2 for x in shares())
    found = ", ".join(map(percent, shares()))
    words = f"{found} of all states, in the three configurations"
    return verdict(near, words, "missing term", f"{found}; Lion's momentum stays in fp32")


def element_sizes(claim):
    found = [t.itemsize for t in (torch.float32, torch.float16, torch.float8_e4m3fn)]
    return verdict(
        numbers(claim.figures) == found, f"{found} B", "wrong about an API", f"{found} B"
    )


VALUES = torch.zeros(256)


def zero_block(claim):
    block = narrow(VALUES).codes.shape[1]
    values = VALUES[:block]
    scale = values.abs().max() / 127
    as_written = (values / scale).round().clamp(-127, 127)
    nan = int(as_written.isnan().sum())
    guarded = int((widen(narrow(values), (block,)) == 0).sum())
    words = f"a block of zeros: {nan} of {block} values are NaN; with a guard {guarded} are 0"
    return verdict(nan == 0, words, "missing term", "another scale where absmax is 0")


# The test model: what 10 MB and 2 MB are.


def count(claim):
    (claimed,) = numbers(claim.figures)
    named = {"test": TEST_8BIT, "d20": D20_FULL, "medium_3b": MEDIUM_3B}
    model = next(m for name, m in named.items() if name in claim.claim)
    found = model.parameter_count
    unit = 1e9 if "B" in claim.figures else 1e6
    say = f"{found / unit:.{2 if unit == 1e9 else 1}f} {'B' if unit == 1e9 else 'M'}"
    good = abs(claimed * unit / found - 1) < 0.005
    return verdict(good, f"{found:,}", "wrong model", say)


def printed(claim):
    """The program prints whole MiB, cut off, of Muon's matrices alone, before the first step."""
    wide, low = 4 * of_muon(TEST_8BIT), each_value() * of_muon(TEST_8BIT)
    shown = [float(wide // 2**20), float(low // 2**20)]
    words = f"{wide / 2**20:g} and {low / 2**20:.3f} MiB, cut off to {shown[0]:g} and {shown[1]:g}"
    good = numbers(claim.figures)[-2:] == shown
    return verdict(good, words, "wrong model", words)


def validated(claim):
    ratio, before, after = numbers(claim.figures)
    from_these = 100 * (1 - after / before)
    computed = 100 * (1 - each_value() / 4)
    words = (
        f"{before:g} to {after:g} are {from_these:.0f}%; {computed:.1f}% is 1 - {each_value():g}/4"
    )
    good = abs(from_these - ratio) < 0.1
    right = f"10 to {each_value() * of_muon(TEST_8BIT) / 2**20:.3f} MiB, computed and not measured"
    return verdict(good, words, "contradicts itself", right)


def state_of_test(claim):
    (claimed,) = numbers(claim.figures)
    whole = kept(TEST_8BIT, eight="INT8" in claim.claim)
    words = f"of all states {whole / 1e6:.1f} MB; of Muon's matrices "
    words += f"{states(TEST_8BIT, eight='INT8' in claim.claim)['muon'] / 2**20:.3f} MiB"
    right = f"{whole / 1e6:.1f} MB"
    return verdict(abs(claimed * 1e6 / whole - 1) < 0.05, words, "missing term", right)


def covered(claim):
    found = [of_muon(m) / m.parameter_count for m in MODELS]
    words = "Muon has " + ", ".join(percent(x) for x in found) + " of the parameters"
    good = min(found) > 0.95
    return verdict(good, words, "missing term", "embedding and head are Lion's, in fp32")


# The benchmark.


def speed(claim):
    slow, fast, claimed = numbers(claim.figures)
    return compare(claimed, 100 * (1 - slow / fast), lambda x: f"-{x:.1f}%", within=0.02)


def negligible(claim):
    slow, fast = numbers(claim.figures)
    base, other = CODE["benchmark"].values()
    work = flops_per_token(base, 128) / flops_per_token(other, 128)
    alike = 1 - slow / (fast * work)
    words = f"{percent(1 - slow / fast)} slower with {percent(1 - 1 / work)} less to compute: "
    words += f"{percent(alike)} if the time followed the products, "
    words += f"which take {percent(fast * flops_per_token(base, 128) / FP32_RATE)} of the peak"
    right = "not separated from the change of model"
    return verdict(base == other and alike < 0.05, words, "wrong model", right)


@cache
def losses(eight):
    torch.manual_seed(0)
    net, found = TinyLlama(TINY), []
    opt = optimizer(net.parameters(), TINY.vocab, eight=eight)
    with one_thread():
        for ids in alice.batches(4, 32, steps=30):
            opt.zero_grad()
            loss = net(ids, ids)
            loss.backward()
            opt.step()
            found.append(float(loss.detach()))
    return found


def parity(claim):
    late = [sum(losses(eight)[-8:]) for eight in (True, False)]
    words = f"a small model's last losses: {late[0] / late[1]:.2f} times those in fp32"
    return verdict(abs(late[0] / late[1] - 1) < 0.01, words, "wrong model", words)


# Full size.


def optimizer_full(claim):
    (claimed,) = numbers(claim.figures)
    eight = "INT8" in claim.claim or "8-bit" in claim.claim
    found = kept(D20_FULL, eight)
    if eight:
        lion = states(D20_FULL)["lion"]
        words = f"{gb(found)}: Muon {gb(found - lion)}, Lion {gb(lion)}"
        slip = "missing term"
    else:
        words = f"one momentum for each parameter, Muon's or Lion's: {gb(found)}"
        slip = "wrong model"
    return verdict(abs(claimed * GB / found - 1) < 0.05, words, slip, gb(found))


def savings(claim):
    (claimed,) = numbers(claim.figures)
    found = kept(D20_FULL) - kept(D20_FULL, True)
    words = f"{gb(kept(D20_FULL))} less {gb(kept(D20_FULL, True))}"
    return verdict(abs(claimed * GB / found - 1) < 0.05, words, "wrong model", gb(found))


STATES = 2  # that the note counts with


def two_changes(claim):
    each = {"two states": 4 * STATES * D20_FULL.parameter_count, "one": kept(D20_FULL)}
    all_eight = each_value() * D20_FULL.parameter_count
    words = f"one state instead of two: {gb(each['two states'] - each['one'])} less; 8 bits "
    words += f"instead of fp32: {gb(each['one'] - all_eight)} less, if all of it were Muon's"
    right = f"{gb(kept(D20_FULL) - kept(D20_FULL, True))}: there never was a second state"
    ratio = all_eight / each["two states"]
    return verdict(abs(ratio - each_value() / 4) < 0.01, words, "wrong model", right)


def product(claim):
    millions, each, claimed = numbers(claim.figures)
    return compare(
        claimed,
        millions * each / 1000,
        lambda x: f"{x:.2f} GB",
        within=0.08,
        slip="arithmetic slip",
    )


def heads_left_out(claim):
    (claimed,) = numbers(claim.figures)
    heads = CODE["mtp"]["d20-e3-full"]
    more = heads * (D20_FULL.vocab * D20_FULL.d_model + D20_FULL.vocab)
    words = f"{heads} further heads: {more / 1e6:.1f} M parameters, {gb(4 * more)} in fp32"
    good = abs(claimed * 1e6 / (D20_FULL.parameter_count + more) - 1) < 0.01
    return verdict(good, words, "missing term", f"{gb(4 * more)} more")


def gradient_of_half(claim):
    """A weight in fp32 that is used in fp16: in which format does its gradient come?"""
    weight = torch.nn.Parameter(torch.ones(4, 4))
    (torch.ones(2, 4, dtype=torch.half) @ weight.half()).sum().backward()
    millions, _, claimed = numbers(claim.figures)
    kind = str(weight.grad.dtype).removeprefix("torch.")
    found = millions * weight.grad.itemsize / 1000
    words = f"of a weight in fp32 that is used in fp16 the gradient is {kind}: {found:.2f} GB"
    return verdict(abs(claimed / found - 1) < 0.08, words, "wrong model", f"{found:.2f} GB")


@cache
def in_table(term, way, tokens):
    """GB of 4 sequences: of the line "activations", logits in it, or of the line "peak"."""
    run = WAYS[way].replace(tokens=tokens)
    if term == "peak":
        return peak(D20_FULL, kept(D20_FULL), run)[0] / GB
    rows = simulate(D20_FULL, "fp32", run).rows
    return (rows["activations"] + rows["logits"]) / GB


def first_above(term, way, size):
    """The fewest tokens, in steps of 64 and up to the model's longest, that take more."""
    low, high = 0, D20_FULL.positions // 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if in_table(term, way, 64 * middle) > size else (middle, high)
    return 64 * high


def in_one_setting(claim):
    """Are there tokens at which both lines of the table hold, of one step of 4 sequences?"""
    low, high, least_peak, most_peak = numbers(claim.figures)
    said = {"activations": (low, high), "peak": (least_peak, most_peak)}
    words, good = [], False
    for way in WAYS:
        least = max(first_above(term, way, low) for term, (low, _) in said.items())
        too_many = min(first_above(term, way, high) for term, (_, high) in said.items())
        good = good or least < too_many
        words.append(
            f"{way}: activations and logits above {high:g} GB from "
            f"{first_above('activations', way, high):,} tokens on, a peak of {least_peak:g} GB "
            f"only from {first_above('peak', way, least_peak):,}"
        )
    sizes = [in_table(term, "eager attention", 1024) for term in said]
    right = f"{sizes[0]:.1f} GB and {sizes[1]:.1f} GB at 4 x 1,024, as launched"
    return verdict(good, "; ".join(words), "contradicts itself", right)


def total(claim):
    low, high = numbers(claim.figures)
    ends = dict(PARTS)
    ends["optimizer"] = (0.3, 0.3) if "8-bit" in claim.claim else (2.2, 2.2)
    if "FP8" in claim.claim:
        # The weights beside them are in fp32, so the gradients are: S2-67.
        ends |= {"optimizer": (0.3, 0.3), "activations": (2, 4)}
    least, top = (sum(end[i] for end in ends.values()) for i in (0, 1))
    # Printed in whole GB, so half a GB apart is another figure.
    good = max(abs(low - least), abs(high - top)) < 0.49
    slip = "wrong model" if "FP8" in claim.claim else "arithmetic slip"
    return verdict(good, span(least, top), slip, span(least, top))


def peak_after(claim):
    low, high = numbers(claim.figures)
    saved = 1.9
    if "FP8" in claim.claim:
        least, top = 18 - 2 - 0.5, 26 - 4 - 0.5
        words = "18 to 26 GB less 2 to 4 GB of activations and 0.5 GB of gradients: "
    else:
        least, top = 20 - saved, 30 - saved
        words = f"20 to 30 GB less {saved} GB: "
    good = abs(low - least) < 0.6 and abs(high - top) < 0.6
    return verdict(good, words + span(least, top), "arithmetic slip", span(least, top))


def parts_and_peak(claim):
    parts = numbers(claim.figures)[0]
    # Muon and Lion step one matrix after the other.
    step = simulate(D20_FULL, "fp32", LAUNCHED.replace(optimizer_impl="forloop"))
    rows = {t: step.peak.contents[t] / GB for t in ("activations", "logits")}
    words = f"at 1,024 tokens: activations {rows['activations']:.1f} GB"
    words += f", logits {rows['logits']:.1f} GB, no gradients yet"
    low = numbers(claim.figures)[1]
    right = f"{rows['activations']:.1f} GB and {rows['logits']:.1f} GB at 1,024 tokens"
    return verdict(low <= parts, words, "missing term", right)


LENGTHS = 512, 1024, 2048


def tokens_left_out(claim):
    words = ", ".join(f"{most(tokens=t) / GB:.1f} GB at {t:,}" for t in LENGTHS)
    apart = most(tokens=LENGTHS[-1]) / most(tokens=LENGTHS[0])
    return verdict(apart < 1.1, words, "missing term", f"{words} tokens")


def share_of_peak(claim):
    saved, claimed = numbers(claim.figures)
    found = (kept(D20_FULL) - kept(D20_FULL, True)) / most()
    words = f"{gb(kept(D20_FULL) - kept(D20_FULL, True))} of {most() / GB:.1f} GB at 4 x 1,024"
    good = abs(found - claimed / 100) < 0.02
    return verdict(good, words, "wrong model", percent(found))


def of_total(claim):
    (claimed,) = numbers(claim.figures)
    by = {
        "totals": (1 - 4 / 8, 1 - 6 / 11),
        "totals with 8 bits": (1 - 4 / 6, 1 - 6 / 8),
        "peaks": (1 - 12 / 20, 1 - 16 / 30),
    }
    words = "; ".join(f"{n} {100 * min(x):.0f} to {100 * max(x):.0f}%" for n, x in by.items())
    good = any(min(x) <= claimed / 100 <= max(x) for n, x in by.items() if "totals" in n)
    return verdict(good, words, "contradicts itself", words)


# FP8.


@cache
def kept_by_layers():
    D = D20_FULL
    heads = dict(heads=D.heads, kv_heads=D.kv_heads, head_dim=D.head_dim)
    shape = dict(batch=4, tokens=1024, d_model=D.d_model, d_ff=D.d_ff, **heads)
    layer = activations.llama_layer(**shape, precision="fp32", backend="cuda")
    kinds = ("original", "fp8")
    narrow_ones = [fp8.llama_layer(**shape, keep=keep, backend="cuda") for keep in kinds]
    return [D.layers * x for x in (layer, *narrow_ones)]


def fp8_saves(claim):
    low, high = numbers(claim.figures)
    wide, half, eight = kept_by_layers()
    words = f"the layers save {gb(wide)} in fp32, {gb(half)} in bf16, {gb(eight)} with FP8 products"
    found = [100 * (1 - eight / x) for x in (half, wide)]
    good = abs(found[0] - low) < 5 and abs(found[1] - high) < 5
    right = f"{found[0]:.0f}% of bf16, {found[1]:.0f}% of fp32"
    return verdict(good, words, "wrong model", right)


def fp8_activations(claim):
    """As the program has unfused attention, softmax in fp32: products in FP8 leave its scores."""
    low, high = numbers(claim.figures)
    wide, half, eight = kept_by_layers()
    fused, bf16 = eight / wide, half / wide
    rows = [simulate(D20_FULL, name, LAUNCHED).rows["activations"] for name in ("fp32", "bf16")]
    ratio = (rows[1] - half + eight) / rows[0]
    words = f"{ratio:.2f} of what fp32 saves, with the program's eager attention; fused "
    words += f"{fused:.2f}, {span(4 * fused, 8 * fused)}, and bf16 alone {bf16:.2f}"
    good = abs(low - 4 * ratio) < 0.5 and abs(high - 8 * ratio) < 0.5
    return verdict(good, words, "wrong model", span(4 * ratio, 8 * ratio))


def fp8_stores(claim):
    (claimed,) = numbers(claim.figures)
    torch.manual_seed(0)
    net = TinyLlama(TINY).bfloat16()
    ids = torch.arange(64).reshape(1, 64)
    with lab_fp8.autocast(lab_fp8.FP8Recipe()):
        net(ids, ids).backward()
    sizes = {p.grad.element_size() for p in net.parameters()}
    words = f"gradients of {', '.join(map(str, sizes))} B; of activations, layers' inputs in FP8"
    good = sizes == {claimed}
    return verdict(good, words, "wrong model", "inputs of products, not the gradients")


# Source: https://developer.nvidia.com/cuda-gpus, the older ones first
CAPABILITY = {"RTX 3090": (8, 6), "RTX 4090": (8, 9), "H100": (9, 0)}


def fp8_card(claim):
    """The kernel is asked on each card; the claim names the oldest one that has FP8."""
    part = SimpleNamespace(device=SimpleNamespace(type="cuda"), shape=(16, 16))
    takes = {}
    for name, capability in CAPABILITY.items():
        with mock.patch("torch.cuda.get_device_capability", return_value=capability):
            takes[name] = lab_fp8.kernel_takes(part, part)
    words = ", ".join(f"{n}: {'yes' if t else 'no'}" for n, t in takes.items())
    right = "compute capability 8.9, which an RTX 4090 has"
    first = next(name for name, taken in takes.items() if taken)
    return verdict(first == claim.figures, words, "wrong about an API", right)


NEAR = 1e-5  # size of a gradient


def fp8_scaling(claim):
    torch.manual_seed(0)
    gradient = torch.randn(64, 64) * NEAR
    lost = (gradient.to(torch.float8_e4m3fn).float() == 0).float().mean().item()
    values, _ = lab_fp8.cast(gradient)
    after = (values.float() == 0).float().mean().item()
    words = (
        f"of gradients near {NEAR:g}, {percent(lost)} become 0 unscaled, {percent(after)} scaled"
    )
    return verdict(lost > 0.5 > after, words, "wrong model", words)


# Other techniques.


SEQUENCES = 4


def real_batch(claim):
    torch.manual_seed(0)
    net = TinyLlama(TINY)
    (ids,) = alice.batches(SEQUENCES, 32, steps=1)
    found = []
    for pieces in (1, 4):
        net.zero_grad()
        for part in ids.chunk(pieces):
            (net(part, part) / pieces).backward()
        found.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    apart = ((found[0] - found[1]).norm() / found[0].norm()).item()
    good = apart < 1e-4
    words = "gradients of 4 micro-batches and of 1 batch agree, up to rounding"
    return verdict(good, words, "wrong model", f"{apart:.1%} apart")


MICRO_BATCHES = 4


def waiting(claim):
    once, four = (most(micro_batches=number) for number in (1, MICRO_BATCHES))
    words = f"micro-batches of 4 x 1,024: {gb(once)} for one, {gb(four)} for four"
    right = f"{gb(four - once)} of accumulated gradients"
    return verdict(four == once, words, "missing term", right)


def on_disk(claim):
    (keep,) = map(int, numbers(claim.figures))
    net, memory, disk = TinyLlama(TINY), {}, {}
    for n in (1, keep):
        with TemporaryDirectory() as folder, Tracker() as tracker:
            tracker.label(net)
            checkpoints = KeepLast(folder, n)
            for step in range(1, keep + 2):
                checkpoints.save(step, net.state_dict())
            memory[n], disk[n] = tracker.peak, len(checkpoints.steps())
    words = f"{disk[1]} or {disk[keep]} files on the disk, a difference "
    words += f"of {memory[keep] - memory[1]} B in memory"
    return verdict(memory[1] < memory[keep], words, "wrong model", "disk, not memory")


def tied_once(claim):
    pair = [TinyLlama(TINY.replace(tied=t)) for t in (False, True)]
    less = storage_bytes(pair[0]) - storage_bytes(pair[1])
    good = less == 4 * TINY.vocab * TINY.d_model
    words = f"a tied model has {less:,} B less: 4 · {TINY.vocab} · {TINY.d_model}"
    return verdict(good, words, "wrong model", words)


def tying_saves(claim):
    V, D, each = map(int, re.findall(r"\d+", claim.figures))
    plain, tied = (Model(**vars_of(V, D), tied=t) for t in (False, True))
    weights = 4 * (plain.parameter_count - tied.parameter_count)
    states_too = kept(plain) - kept(tied)
    words = f"weights {weights:,} B, gradients as much, momentum {states_too:,} B"
    good = each == (2 * weights + states_too) // (V * D)
    right = f"V · D · {(2 * weights + states_too) // (V * D)} while training"
    return verdict(good, words, "missing term", right)


def vars_of(V, D):
    return {"layers": 1, "d_model": D, "d_ff": 4, "heads": 1, "vocab": V}


def tying_example(claim):
    V, D, claimed = numbers(claim.figures)
    return compare(claimed, 4 * V * D / 1e6, lambda x: f"{x:.1f} MB", within=0.03)


def galore_gradients(claim):
    (claimed,) = numbers(claim.figures)
    held = {}
    for name, make in {"AdamW": torch.optim.AdamW, "GaLore": lambda p: GaLore(p, rank=8)}.items():
        net = TinyLlama(TINY)
        inside = [p for n, p in net.named_parameters() if p.ndim == 2 and "layers" in n]
        ids = torch.zeros(1, 16, dtype=torch.long)
        net(ids, ids).backward()
        make(inside).step()
        held[name] = storage_bytes([p.grad for p in inside])
    less = 1 - held["GaLore"] / held["AdamW"]
    words = f"gradients with AdamW: {held['AdamW']:,} B; with GaLore: {held['GaLore']:,} B"
    good = abs(less - claimed / 100) < 0.05
    return verdict(good, words, "wrong model", f"{less:.0%} of the gradients; the states shrink")


def galore_shape(claim):
    sizes = {"M": 768, "N": 2688, "r": 256, "2": 2}
    parts = [part.split("·") for part in claim.figures.split(" + ")]
    said = sum(math.prod(sizes[letter] for letter in part) for part in parts)
    M, N, r = (sizes[letter] for letter in "MNr")
    found = low_rank.galore((M, N), rank=r) // 4
    least = next(rank for rank in range(M, 0, -1) if rank * (M + N) <= M * N // 10)
    words = (
        f"r = {r} (its default), {M} x {N}: P and Q are {percent(r * (M + N) / (M * N))} of the "
    )
    words += f"matrix, at r = {least} a tenth; GaLore stores {found / (r * (M + N)):.2f} times "
    words += "P and Q"
    right = "a basis [M, r] and two means [r, N], and the whole gradient"
    return verdict(found == said, words, "wrong model", right)


def over_the_bus(claim):
    low, high = numbers(claim.figures)
    bus = offloading.microseconds(
        offloading.traffic(states=kept(D20_FULL)), bandwidth=offloading.pcie(4)
    )
    each = flops_per_token(D20_FULL, 1024) / FP32_RATE * 1e6  # microseconds of a token
    few, many = (100 * bus / (each * tokens) for tokens in (4 * 1024, 32 * 1024))
    words = f"{bus / 1000:.0f} ms over PCIe 4 at least: {few:.0f}% of the time of the "
    words += f"products for 4,096 tokens, {many:.0f}% for 32,768"
    right = f"{low:g} to {high:g}% from {100 * bus / each / high:,.0f} tokens a step"
    return verdict(low <= few <= high, words, "missing term", right)


def again_slower(claim):
    (claimed,) = numbers(claim.figures)
    layers = sum(D20_FULL.parameters()[part] for part in ("attention", "feed_forward"))
    D = D20_FULL
    forward = 2 * layers + 2 * D.layers * D.heads * D.head_dim * 1024
    found = 100 * forward / flops_per_token(D, 1024)
    words = f"the layers' forward pass is {found:.0f}% of a step's products"
    return verdict(abs(found - claimed) < 5, words, "wrong model", f"{found:.0f}%")


def again_less(claim):
    (claimed,) = numbers(claim.figures)
    found = {}
    for tokens in (256, 1024, 2048):
        both = [most(tokens=tokens, **more) for more in ({}, {"checkpoint": "block"})]
        found[tokens] = 100 * (1 - both[1] / both[0])
    words = ", ".join(f"{x:.0f}% at {t:,}" for t, x in found.items())
    good = min(found.values()) <= claimed <= max(found.values())
    return verdict(good, f"of the peak, batch 4: {words} tokens", "wrong model", words)


# Cards and advice.


def card(claim):
    (claimed,) = numbers(claim.figures)
    found = device("RTX 4090")
    return verdict(claimed == found.marketed, str(found), "wrong model", f"{found.marketed} GB")


def needs_48(claim):
    limit, name = limit_of("RTX 4090")
    claimed = numbers(claim.figures)[-1] * GB
    batch, tokens = CODE["batch"]["medium_3b"]
    launched = most(MEDIUM_3B, batch, tokens, eight=True)
    least = most(MEDIUM_3B, 1, 1024, eight=True)
    words = f"medium_3b, {MEDIUM_3B.parameter_count / 1e9:.2f} B parameters in fp32: as launched, "
    words += f"{batch} x {tokens:,} tokens, {gb(launched)}; 1 x 1,024 {gb(least)}, and an {name} "
    words += f"has {gb(limit)}"
    if launched <= claimed:
        return Finding(words, "wrong model", gb(launched))
    right = f"true as launched; in general it depends on the tokens: 1 x 1,024 take {gb(least)}"
    return verdict(least > claimed, words, "missing term", right)


def above_10b(claim):
    """Whether checkpoints would be of little use below that, as in a model of 0.28 B."""
    each = 4 + 4 + each_value()
    less = 1 - most(tokens=LENGTH, checkpoint="block") / most(tokens=LENGTH)
    words = f"fp32 with 8-bit states takes {each:g} B a parameter: 96 GB hold "
    words += f"{96 / each:.1f} B of them, without activations; at 0.28 B checkpointing "
    words += f"takes {less:.0%} off the peak"
    right = "far below 10 B, wherever activations are the largest term"
    return verdict(less < 0.1, words, "wrong model", right)


def worth_it(claim):
    saved = kept(D20_FULL) - kept(D20_FULL, True)
    words = f"it saves {gb(saved)}, {percent(saved / most())} of 4 x 1,024 tokens"
    return verdict(saved > 0, words, "wrong model", "nothing")


def priority(claim):
    base = most(tokens=LENGTH)
    saved = {
        "8 bits": base - most(tokens=LENGTH, eight=True),
        "GaLore": kept(D20_FULL) - galore_states(256),
        "checkpointing": base - most(tokens=LENGTH, checkpoint="block"),
    }
    words = f"of 4 x {LENGTH:,} tokens: " + ", ".join(f"{n} {gb(x)}" for n, x in saved.items())
    first = max(saved, key=saved.get)
    return verdict(first == "8 bits", words, "wrong model", first)


def galore_states(rank):
    """Bytes with a projected momentum in Muon's place: a basis and one mean."""
    total_bytes = states(D20_FULL)["lion"]
    for t in D20_FULL.tensors():
        if t.component in ("attention", "feed_forward"):
            total_bytes += 4 * t.copies * rank * sum(t.shape)
    return total_bytes


def not_measured(claim):
    computed = 100 * (1 - each_value() / 4)
    words = f"{computed:.4f}% follows from the block alone, whatever was run"
    return verdict(f"{computed:.1f}" == "74.2", words, "contradicts itself", words)


def larger_models(claim):
    words = f"{', '.join(map(percent, shares()))}: it grows with the model"
    return verdict(shares() == sorted(shares()), words, "wrong model", words)


def on_the_device(claim):
    (claimed,) = numbers(claim.figures)
    device_bytes = states(TEST_8BIT, eight=True, host=True)["muon"]
    words = f"Muon's states on the device: {device_bytes} B; on the host "
    words += text(states(TEST_8BIT, eight=True)["muon"])
    freed = 100 * (1 - device_bytes / (4 * of_muon(TEST_8BIT)))
    good = abs(freed - claimed) < 1
    return verdict(good, words, "wrong model", f"{freed:.0f}% of Muon's, by moving them to a host")


def two_ratios(claim):
    before, after, ratio = numbers(claim.figures)
    found = 100 * (1 - after / before)
    words = f"from {before:g} to {after:g} GB is {found:.0f}% less; the change of format alone"
    words += f" gives {100 * (1 - each_value() / 4):.1f}%"
    good = abs(found - ratio) < 2
    right = f"{after:g} GB is for one state, {before:g} GB for two"
    return verdict(good, words, "contradicts itself", right)


def configured(claim):
    """The base model has to say what the project's status page says of that card."""
    (claimed,) = numbers(claim.figures)
    batch, tokens = CODE["batch"]["d20-e3-full"]
    limit, name = limit_of("RTX 4090")
    few, launched = (most(batch=int(b), tokens=tokens) for b in (claimed, batch))
    fused = most(batch=batch, tokens=tokens, eager=False)
    assert (CODE["d20-e3-full on 24 GB"] == "out of memory") == (launched > limit)
    words = f"as launched: {batch} x {tokens:,} tokens, {gb(launched)}, and out of memory on an "
    words += f"{name}, as the project's status page of that day says (fused attention, which the "
    words += f"program does not have, would fit with {gb(fused)}); {claimed:g} of them {gb(few)}"
    return verdict(claimed == batch, words, "missing term", f"{batch}: {gb(launched)}")


ASKED = True  # whether a layer's input asks for a gradient


def rounded_in_forward(claim):
    """w + (q(w) - w).detach() is a new tensor, which the product keeps until backward."""
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(64, 128))
    x = torch.ones(4, 128, requires_grad=ASKED)
    with Saved(exclude=[weight, x]) as saved:
        scale = weight.detach().abs().mean()
        ternary = (weight.detach() / scale).round().clamp(-1, 1) * scale
        torch.nn.functional.linear(x, weight + (ternary - weight).detach())
    each = saved.bytes // weight.numel()
    full = ", ".join(f"{m.name} {gb(each * of_muon(m))}" for m in (D20_FULL, MEDIUM_3B))
    words = f"small: {each} B for each rounded weight, until its backward pass; {full}"
    return verdict(each == 0, words, "missing term", full)


GPU = "RTX 4090"


def fits_24(claim):
    limit, name = limit_of(GPU)
    found = {
        f"{'eager' if eager else 'fused'} at {tokens:,}": most(
            tokens=tokens, eight=True, eager=eager
        )
        for tokens in (1024, 2048)
        for eager in (False, True)
    }
    words = ", ".join(f"{size / GB:.1f} GB {n}" for n, size in found.items())
    over = [n for n, size in found.items() if size > limit]
    right = f"depends on tokens and attention: not {', '.join(over)}" if over else None
    return verdict(not over, f"batch 4: {words} tokens; {gb(limit)}", "missing term", right)


def by_its_own_bytes(claim):
    """The report's first table is in FP32, and its list gives FP8 a quarter of FP32's bytes."""
    low, high, new_low, new_high = numbers(claim.figures)
    ratio = bytes_per_value("fp8_e4m3") / bytes_per_value("fp32")
    right = span(low * ratio, high * ratio)
    words = (
        f"a quarter of {span(low, high)} is {right}; {new_low:g} to {new_high:g} is what FP16 gives"
    )
    good = abs(new_low - low * ratio) < 0.1 and abs(new_high - high * ratio) < 0.1
    return verdict(good, words, "contradicts itself", right)


def gradients_in_two_formats(claim):
    """One section has the gradients in FP8, the table of the same FP8 in FP16."""
    names = {"FP8": "fp8_e4m3", "FP16": "fp16"}
    named = re.findall(r"FP8|FP16", claim.figures)
    (millions,) = numbers(re.sub(r"FP\d+", "", claim.figures))
    sizes = {n: millions * bytes_per_value(names[n]) / 1000 for n in named}
    words = ", ".join(f"{n}: {x:.2f} GB" for n, x in sizes.items())
    good = len(set(sizes.values())) == 1
    return verdict(good, words, "contradicts itself", "FP16 or higher, as in FP8 training")
