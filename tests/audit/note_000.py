"""Note 000: nanochat's d26, its peak in BF16 and in FP8, sum by sum.

The program is public, so the checks ask a rebuilt one: NanoChat of memlab.cases has its groups and
formats, its optimizer's states, and torchao's own layers. Figures come from the claim.
"""

import math
import re
from collections import Counter
from functools import cache
from types import SimpleNamespace
from unittest.mock import patch

import torch
from audit.judge import Finding, compare
from torch import nn

from memlab import GB, GiB, text
from memlab.cases.nanochat import D26, NanoChat, Shape
from memlab.cases.nanochat_groups import MuonAdamW, groups, state_bytes
from memlab.cases.nanochat_step import compiled, kept, logits_peak, on_meta, to_fp8
from memlab.devices import device
from memlab.fit import limit_of
from memlab.lab.blocks import torchao
from memlab.lab.text import batches
from memlab.lab.train import one_thread
from memlab.measure import Saved

BATCH, TOKENS, WIDTH, DEPTH = 16, 2048, 1664, 26
UNIT = BATCH * TOKENS * WIDTH * DEPTH  # one number for each row, channel and layer
SMALL = Shape(depth=4, width=128, heads=4, vocab=256, tokens=64)
LONG = Shape(depth=4, width=128, heads=4, vocab=256, tokens=64, windows="L")
SHAPE = D26
GROUPS = {"transformer_matrices": 864, "lm_head": 54.5, "wte": 54.5, "value_embeds": 709}


def numbers(words):
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", words)]


def gb(size):
    return f"{size / GB:.2f} GB"


@cache
def net(fp8=False):
    return on_meta(SHAPE, fp8=fp8)


@cache
def counts():
    return {name: sum(p.numel() for p in of) for name, of in groups(net()).items()}


def parameters():
    return sum(counts().values())


@cache
def weights(fp8=False, of=None):
    wanted = of or tuple(counts())
    return sum(p.nbytes for name in wanted for p in groups(net(fp8))[name])


def states():
    return sum(state_bytes(net()).values())


def static():
    return 2 * weights() + states()


@cache
def kept_compiled(batch=BATCH, fp8=False):
    """Kept by the compiled step; copies of weights do not grow with the batch, the rest does."""
    once = linear() * (1 if fp8 else 2)
    return once + (compiled(BATCH, fp8=fp8) - once) * batch // BATCH


def linear():
    return sum(m.weight.numel() for m in net().modules() if isinstance(m, nn.Linear))


def peak(batch=BATCH, fp8=False):
    """Static, kept, and one bf16 gradient of the logits."""
    return static() + kept_compiled(batch, fp8) + 2 * batch * TOKENS * D26.vocab


def plain_peak(batch):
    return static() + kept(D26, batch)["activations"] + logits_peak(D26, batch)


def limit(card):
    return limit_of(card)[0]


@cache
def trained(fp8):
    """One step of the small model: what its weights, gradients and states weigh."""
    torch.manual_seed(0)
    small = NanoChat(SMALL)
    if fp8:
        to_fp8(small)
    optimizer = MuonAdamW(groups(small))
    (ids,) = batches(8, 65, steps=1)
    with one_thread(), Saved(exclude=small) as saved:
        loss = small(ids[:, :-1], ids[:, 1:])
    with one_thread():
        loss.backward()
        optimizer.step()
    made = [x for of in optimizer.state.values() for x in of.values() if torch.is_tensor(x)]
    return SimpleNamespace(
        net=small,
        saved=saved.bytes,
        weights=sum(p.nbytes for p in small.parameters()),
        gradients=sum(p.grad.nbytes for p in small.parameters()),
        states=sum(x.nbytes for x in made),
        optimizer=optimizer,
    )


# The parameters.


def total(claim):
    (claimed,) = numbers(claim.figures)
    return compare(claimed, parameters() / 1e9, lambda n: f"{parameters():,}", slip="wrong model")


def group(claim):
    (name,) = (name for name in GROUPS if name in claim.claim)
    claimed = numbers(claim.figures)[0]
    return compare(claimed, counts()[name] / 1e6, lambda n: f"{counts()[name]:,}")


def eligible(claim):
    claimed = numbers(claim.claim)[-1]
    layers = [m for m in net(fp8=True).modules() if type(m).__name__ == "Float8Linear"]
    found = sum(m.weight.numel() for m in layers)
    left = counts()["transformer_matrices"] + counts()["lm_head"] - found
    words = f"{found:,} in {len(layers)} layers; the gates' {left:,} are left out"
    return compare(claimed, found / 1e6, lambda n: words)


def not_eligible(claim):
    claimed = numbers(claim.figures)[-1]
    found = counts()["wte"] + counts()["value_embeds"]
    return compare(claimed, found / 1e6, lambda n: f"{found:,}")


TABLE = nn.Embedding


def tables_stay(claim):
    """Nothing is held back: torchao is handed a table, and free to take all that it can."""
    small = nn.Sequential(TABLE(32, 16))
    kind = type(torchao("float8").convert_to_float8_training(small)[0]).__name__
    found = f"after torchao, a table is still {kind}: torchao replaces linear layers"
    return Finding(found) if kind == "Embedding" else Finding(found, "wrong about an API", kind)


def head_too(claim):
    kind = type(net(fp8=True).lm_head).__name__
    sides = [n % 16 for n in net().lm_head.weight.shape]
    found = f"{kind}; {'both' if not any(sides) else 'not all'} dimensions are multiples of 16"
    if kind == "Float8Linear":
        return Finding(found)
    return Finding(found, "wrong about an API", kind)


def untied(claim):
    (claimed,) = numbers(claim.figures)
    own = net().wte.weight.numel() if net().lm_head.weight is not net().wte.weight else 0
    words = f"{own:,}, and {counts()['lm_head']:,} more in the head"
    return compare(claimed, own / 1e6, lambda n: words)


def settings(claim):
    batch, tokens, width, depth = numbers(claim.figures)
    shape = Shape()
    holds = (tokens, width, depth) == (shape.tokens, shape.width, shape.depth)
    fits = [b for b in (8, 16, 32) if peak(b) <= limit("H100 80GB")]
    found = f"d{shape.depth}: width {shape.width}, {shape.heads} heads; of batches 8, 16, 32 "
    found += f"an H100 80GB takes up to {max(fits)}"
    good = holds and batch == max(fits)
    return Finding(found) if good else Finding(found, "wrong model", f"batch {max(fits)}")


def exact(claim):
    said = [n * GB for n in numbers(claim.figures)]
    counted = peak(), peak(fp8=True)
    ratios = [found / n for found, n in zip(counted, said, strict=True)]
    found = f"computed here {' and '.join(map(gb, counted))}"
    right = f"{ratios[0]:.1f} and {ratios[1]:.1f} times as much"
    near = all(abs(ratio - 1) < 0.01 for ratio in ratios)
    return Finding(found) if near else Finding(found, "wrong model", right)


# What is always there.


def stored(claim):
    (claimed,) = numbers(claim.figures)
    by = {1 << k: 0 for k in range(4)}
    for p in net().parameters():
        by[p.element_size()] += p.numel()
    found = ", ".join(f"{n / 1e6:.1f} M in {size} B" for size, n in by.items() if n)
    if by.get(int(claimed)) == parameters():
        return Finding(found)
    return Finding(found, "wrong model", f"{weights() / parameters():.2f} B/param")


def weights_size(claim):
    if "FP8 linear" in claim.claim:
        (claimed,) = numbers(claim.figures)
        size, slip = weights(True, ("transformer_matrices", "lm_head")), "wrong about an API"
    elif "Embeddings" in claim.claim:
        (claimed,) = numbers(claim.figures)
        size, slip = weights(True, ("wte", "value_embeds")), "wrong model"
    else:
        (claimed,) = numbers(claim.figures)
        size, slip = weights(), "wrong model"
    return compare(claimed * GB, size, gb, slip=slip)


def gradients(claim):
    """Each in its parameter's format, with FP8 and without it."""
    (claimed,) = numbers(claim.figures)
    same = all(trained(fp8).gradients == trained(fp8).weights for fp8 in (False, True))
    return compare(claimed * GB, weights() if same else 0, gb)


def master(claim):
    state = trained(False).optimizer.state
    shapes = {p: [x for x in of.values() if torch.is_tensor(x)] for p, of in state.items()}
    # A weight that is still zero equals a momentum that is still zero.
    copies = sum(torch.equal(x, p) for p, made in shapes.items() if p.any() for x in made)
    found = f"{copies} states are copies: the weights of linear layers are fp32 themselves"
    return (
        Finding(found)
        if bool(copies) == bool(numbers(claim.figures)[0])
        else Finding(found, "wrong model", "0 B/param")
    )


def moments(claim):
    (claimed,) = numbers(claim.figures)
    of = {name: size / counts()[name] for name, size in state_bytes(net()).items()}
    found = f"bytes a parameter: {', '.join(f'{name} {of[name]:.2f}' for name in GROUPS)}"
    each = states() / parameters()
    if abs(claimed / each - 1) < 0.005:
        return Finding(found)
    return Finding(found, "wrong model", f"{each:.2f} B/param on average")


def optimizer_each(claim):
    claimed = numbers(claim.figures)[-1]
    return compare(claimed, states() / parameters(), lambda n: f"{n:.2f} B/param")


def optimizer_size(claim):
    (claimed,) = numbers(claim.figures)
    return compare(claimed * GB, states(), gb)


def static_size(claim):
    sums = [sum(numbers(parts)) for parts in claim.figures.split("; ")]
    claimed = re.findall(r"([\d.]+) GB", claim.claim)
    words = gb(static())
    for parts, said in zip(sums, map(float, claimed), strict=True):
        if abs(parts - said) > 0.02:
            return Finding(words, "arithmetic slip", f"{parts:.2f} GB")
    return compare(float(claimed[0]) * GB, static(), gb)


def at_the_start(claim):
    """Before any data there are weights and tables of angles; the note has its whole sum there."""
    (claimed,) = numbers(claim.figures)
    size = weights("FP8" in claim.claim) + net().cos.nbytes + net().sin.nbytes
    words = f"weights and rotary tables {text(size)}; weights, gradients and states "
    words += f"{text(static())}; the GPU leaves {text(limit(CARD))}; the note's "
    words += f"{claimed:g} GB are {claimed * GB / GiB:.2f} GiB"
    if size > limit(CARD):
        return Finding(words)
    return Finding(words, "wrong model", f"{text(size)} before any data")


def stacked(claim):
    """Muon stacks gradients and weights of one shape, in fp32, before it takes their step."""
    (claimed,) = numbers(claim.figures)
    by_shape = Counter()
    for p in groups(net())["transformer_matrices"]:
        by_shape[p.shape] += p.nbytes
    size = 2 * max(by_shape.values())
    found = f"gradients and weights of one shape, stacked: {gb(size)}; so at least "
    found += f"{gb(static() + size)} in the optimizer's step, {gb(peak())} in backward"
    near = abs(claimed * GB - size) < 0.05 * size
    right = f"{gb(size)} or more, {'not at' if static() + size < peak() else 'at'} the peak"
    return Finding(found) if near else Finding(found, "missing term", right)


CARD = "RTX 4090"


# What a step adds.


def windows(claim):
    ids = torch.zeros(2, SMALL.tokens, dtype=torch.long)
    sizes = {}
    for shape in (SMALL, LONG):
        for flash in (True, False):
            small = NanoChat(shape, flash=flash)
            with Saved(exclude=small) as saved:
                small(ids, ids)
            sizes[shape, flash] = saved.bytes
    saves = sizes[LONG, True] - sizes[SMALL, True]
    mask = sizes[SMALL, False] - sizes[LONG, False]
    found = f"with SSSL, flash attention saves {saves} B less than with L, "
    found += f"masks save {mask:,} B more"
    return Finding(found) if saves > 0 else Finding(found, "wrong model", "no effect, or more")


def factor(claim):
    (claimed,) = numbers(claim.figures)
    plain = kept(D26, BATCH)["activations"] / 2 / UNIT
    found = (kept_compiled() - logits_kept()) / 2 / UNIT
    return compare(claimed, found, lambda n: f"{n:.1f} compiled, {plain:.1f} uncompiled")


def logits_kept():
    return 2 * BATCH * TOKENS * D26.vocab  # the compiled step keeps one copy in bf16


def two_bytes(claim):
    wide = compiled(BATCH, dtype="float32") / kept_compiled()
    plain = kept(D26, BATCH)
    found = f"fp32 is {wide:.1%} of what the compiled step saves"
    found += f"; uncompiled, {gb(plain['logits'])} of logits are in fp32"
    return Finding(found) if wide < 0.01 else Finding(found, "missing term", "4 B for logits")


def activations(claim):
    fp8 = "FP8" in claim.claim
    claimed = numbers(claim.figures)[-1]
    own = 8 * UNIT * (1 if fp8 else 2)
    if abs(claimed * GB / own - 1) > 0.01:
        return Finding(gb(own), "arithmetic slip", gb(own))
    return compare(claimed * GB, kept_compiled(fp8=fp8), gb)


def peak_size(claim):
    fp8 = "with FP8" in claim.claim
    one, other, claimed = numbers(claim.claim)[-3:]
    if abs(one + other - claimed) > 0.15:
        right = f"{one + other:.2f} GB"
        return Finding(right, "arithmetic slip", right)
    return compare(claimed * GB, peak(fp8=fp8), gb)


CARDS = {"A6000": "RTX A6000", "H100": "H100 80GB", "4090": CARD}


def card(claim):
    name = next(CARDS[word] for word in CARDS if word in claim.claim)
    best = max((b for b in range(1, 33) if peak(b) <= limit(name)), default=0)
    found = f"computed here {text(peak())}, the GPU leaves {text(limit(name))}"
    if (best >= BATCH) != ("impossible" in claim.claim):
        return Finding(found)
    return Finding(found, "wrong model", f"batch {best}")


# FP8.


def same_with_fp8(claim):
    what = "states" if "optimizer" in claim.claim else "gradients"
    sizes = [getattr(trained(fp8), what) for fp8 in (False, True)]
    found = f"the small model's {what}: {sizes[0]:,} B without FP8, {sizes[1]:,} B with it"
    return Finding(found) if sizes[0] == sizes[1] else Finding(found, "wrong model", found)


@cache
def learning(steps=4):
    """The small model after some steps: at the first one `out` and `down` are zero still."""
    torch.manual_seed(0)
    small = NanoChat(SMALL)
    optimizer = MuonAdamW(groups(small))
    with one_thread():
        for ids in batches(8, 65, steps=steps):
            optimizer.zero_grad()
            small(ids[:, :-1], ids[:, 1:]).backward()
            optimizer.step()
    return small


OF_GRADIENTS, LARGEST = torch.float8_e5m2, torch.finfo(torch.float8_e5m2).max


def reason(claim):
    small = learning()
    g = torch.cat([p.grad.flatten() for p in small.layers.parameters()])
    g = g[g != 0]
    scales = LARGEST / g.abs().max(), 1
    lost, bare = (float(((g * s).to(OF_GRADIENTS) == 0).float().mean()) for s in scales)
    w = small.layers[0].up.weight.detach()
    scale = torch.finfo(torch.float8_e4m3fn).max / w.abs().max()
    moved = w + 0.001 * w.abs().mean() * torch.sign(torch.arange(w.numel()).view_as(w) % 2 - 0.5)
    still = (moved * scale).to(torch.float8_e4m3fn) == (w * scale).to(torch.float8_e4m3fn)
    kept_still = float(still.float().mean())
    found = f"in FP8, {round(100 * lost)}% of gradients become zero with a scale, "
    found += f"{round(100 * bare)}% without one; an update of a thousandth of the mean weight "
    found += f"leaves over {10 * int(10 * kept_still)}% of FP8 weights unchanged"
    if lost > 0.01:
        return Finding(found)
    return Finding(found, "wrong model", "small updates are lost, scaled gradients are not")


def one_byte(claim):
    sizes = {p.element_size() for p in trained(True).net.layers[0].up.parameters()}
    sizes |= {net(fp8=True).lm_head.weight.element_size()}
    found = f"{', '.join(map(str, sorted(sizes)))} B: cast to FP8 in each step"
    return (
        Finding(found)
        if sizes == {numbers(claim.figures)[-1]}
        else Finding(found, "wrong about an API", "4 B")
    )


def static_saving(claim):
    (claimed,) = numbers(claim.figures)
    small = [trained(f).weights + trained(f).gradients + trained(f).states for f in (False, True)]
    found = f"{gb(weights(False) - weights(True))}; in the small model {small[0] - small[1]} B"
    holds = abs(weights(False) - weights(True) - claimed * GB) < 0.05 * GB
    return Finding(found) if holds else Finding(found, "wrong about an API", "0 B")


def from_linear(claim):
    # Of 19 or 20 kept tensors as wide as the stream: one for q, k, v; for out; for up; four, down.
    layer = net().layers[0]
    read = sum(m.in_features for m in (layer.q, layer.out, layer.up, layer.down))
    part = read / WIDTH * 2 * UNIT / kept(D26, BATCH)["activations"]
    found = f"inputs of linear layers are {part:.0%} of what is saved"
    said = {"Almost all": 0.95, "Half": 0.5, "A third": 1 / 3}
    (claimed,) = (share for words, share in said.items() if words in claim.claim)
    near = abs(part - claimed) < 0.05
    return Finding(found) if near else Finding(found, "wrong model", f"{100 * part:.0f}%")


def quantized(claim):
    """How much of what the compiled step keeps has values of so many bytes."""
    (each,) = numbers(claim.figures)
    dtype = {1: "float8_e4m3fn", 2: "bfloat16", 4: "float32"}[each]
    eight = compiled(BATCH, fp8=True, dtype=dtype)
    part = eight / kept_compiled(fp8=True)
    plain = trained(False).saved - trained(True).saved
    small = trained(True).net.modules()
    inside = sum(m.weight.numel() for m in small if type(m).__name__ == "Float8Linear")
    found = f"{gb(eight)} of the compiled step's {gb(kept_compiled(fp8=True))} are in FP8"
    found += f"; uncompiled, activations are {plain - 2 * inside} B smaller"
    right = f"{part:.0%} of it"
    return Finding(found) if part > 0.9 else Finding(found, "wrong about an API", right)


def halved(claim):
    (claimed,) = numbers(claim.figures)
    found = 100 * (1 - kept_compiled(fp8=True) / kept_compiled())
    return compare(claimed, found, lambda n: f"{n:.0f}% less", within=0.05)


# What the note leaves out or implies.


def logits(claim):
    (claimed,) = numbers(claim.figures)
    one = 4 * BATCH * TOKENS * D26.vocab
    found = f"one fp32 copy {text(one)}; compiled {text(one // 2)} saved, as much for its gradient"
    found += f"; uncompiled {text(logits_peak(D26, BATCH))} at the peak"
    return Finding(found, "holds" if claimed else "missing term", None if claimed else text(one))


def copies(claim):
    (claimed,) = numbers(claim.figures)
    size = 2 * linear()
    found = f"bf16 copies of {linear():,} weights: {gb(size)}; in FP8 {gb(size / 2)}"
    near = abs(claimed * GB - size) < 0.01 * GB
    return Finding(found, "holds" if near else "missing term", None if near else gb(size))


def twice_the_batch(claim):
    (claimed,) = numbers(claim.figures)
    found = f"batch 32 needs {text(peak(32))}, in FP8 {text(peak(32, True))}"
    right = f"at least {text(peak(32, True))}"
    if claimed * GB > limit("H100 80GB") or peak(32) <= limit("H100 80GB"):
        return Finding(found)
    return Finding(found, "wrong model", right)


def sharded(claim):
    (claimed,) = numbers(claim.figures)
    eight = sum(state_bytes(net(), 8).values())
    found = f"on each of 8 GPUs {gb(eight)}, on a single GPU {gb(states())}"
    if abs(claimed * GB / eight - 1) < 0.05:
        return Finding(found)
    return Finding(found, "missing term", gb(eight))


def forty_eight(claim):
    (claimed,) = numbers(claim.figures)
    usable = limit("RTX A6000")
    found = f"{claimed} GB are {claimed * GB / GiB:.1f} GiB; a program has "
    found += f"{device('RTX A6000').usable / GiB:.2f} GiB of the GPU, and "
    found += f"{usable / GiB:.2f} GiB after its CUDA context"
    if claimed * GB <= usable:
        return Finding(found)
    return Finding(found, "unit slip", f"{usable / GB:.1f} GB")


def decimal(claim):
    billions, each, claimed = numbers(claim.figures)
    found = f"{billions * each:.2f} x 10^9 bytes, {billions * each * GB / GiB:.2f} GiB"
    return compare(claimed, billions * each, lambda n: found, slip="unit slip")


def spared(claim):
    (claimed,) = numbers(claim.figures)
    less = kept_compiled() - kept_compiled(fp8=True)
    found = f"saved for backward: {gb(less)} less; nanochat's own log has about 9 GB less"
    near = abs(claimed * GB / less - 1) < 0.05
    return Finding(found) if near else Finding(found, "wrong model", gb(less))


def last_places(claim):
    """Both peaks again, from the note's own summands and from theirs unrounded."""
    first, second = numbers(claim.figures)
    own = 26.88 + 22.7, 25.97 + 11.3
    exact = [1.68 * 16, (918.5 + 2 * 763.5) / 1000 + 1.68 * 14]
    exact = [exact[0] + 16 * UNIT / GB, exact[1] + 8 * UNIT / GB]
    found = f"sums of its terms {own[0]:.2f} and {own[1]:.2f}, unrounded {exact[0]:.2f} and "
    found += f"{exact[1]:.2f} GB"
    right = [f"{n:.1f}" for n in own]
    if right == [f"{first:.1f}", f"{second:.1f}"]:
        return Finding(found)
    return Finding(found, "arithmetic slip", f"{right[0]} and {right[1]} GB")


def two_counts(claim):
    """The parts are used in one sum and the whole in the others."""
    *parts, whole = numbers(claim.figures)
    found = f"{sum(parts):,.1f} M, {sum(parts) / whole - 1:.1%} more"
    near = abs(sum(parts) / whole - 1) < 0.005
    return Finding(found) if near else Finding(found, "contradicts itself", f"{sum(parts):,.1f} M")


def lowered(claim):
    (claimed,) = numbers(claim.figures)
    found = 100 * (1 - peak(fp8=True) / peak())
    return compare(claimed, found, lambda n: f"{n:.0f}% less", within=0.05)


def small_card(claim):
    (claimed,) = numbers(claim.figures)
    best = max((b for b in range(1, 17) if plain_peak(b) <= limit(CARD)), default=0)
    found = f"batch 1, uncompiled: {text(plain_peak(1))} of {text(limit(CARD))}"
    if best == claimed:
        return Finding(found)
    return Finding(found, "wrong model", f"batch {best}")


def scaling(shape):
    """The parameters that nanochat's choice of a batch goes by: those of matrices and head."""
    with torch.device("meta"):
        of = groups(NanoChat(shape, flash=True))
    return sum(p.numel() for name in ("transformer_matrices", "lm_head") for p in of[name])


def together(claim):
    """Gradients are None until the first backward; so they meet the rest only from the second on.

    Source      scripts/base_train.py at 2c062aa: tokens a step, a power of two, from those of d12
    """
    torch.manual_seed(0)
    small, there = NanoChat(SMALL), []
    with one_thread():
        for ids in batches(8, 65, steps=2):
            loss = small(ids[:, :-1], ids[:, 1:])
            there.append(sum(p.grad.nbytes for p in small.parameters() if p.grad is not None))
            loss.backward()
    ratio = scaling(D26) / scaling(Shape(12, 768, 6))
    tokens = 2 ** round(math.log2(2**19 * ratio**0.383))
    each = tokens // (8 * BATCH * TOKENS)
    found = f"gradients of the small model: {there[0]} B before the first backward pass, "
    found += f"{there[1]:,} B before the second; a step of d26 on 8 GPUs takes {each} "
    found += "batches of 16 on each"
    holds = each > 1 and there[1] == sum(p.nbytes for p in small.parameters())
    return Finding(found) if holds else Finding(found, "wrong model", "not at one time")


def scales(claim):
    """One fp32 number goes with each cast tensor: weight, input and gradient of a layer."""
    (claimed,) = numbers(claim.figures)
    layers = [m for m in net(fp8=True).modules() if type(m).__name__ == "Float8Linear"]
    casts = ("cast_config_weight", "cast_config_input", "cast_config_grad_output")
    by = {getattr(m.config, each).scaling_granularity.name for m in layers for each in casts}
    size = 4 * len(casts) * len(layers)
    found = f"{', '.join(sorted(by)).lower()}, three in each of {len(layers)} layers: {size:,} B"
    holds = by == {"TENSORWISE"} and abs(claimed * GB - size) < 0.001 * GB
    return Finding(found) if holds else Finding(found, "missing term", f"{size:,} B")


# Source: https://developer.nvidia.com/cuda-gpus
CAPABILITY = {"RTX 4090": (8, 9), "RTX A6000": (8, 6), "H100 80GB": (9, 0)}


def fp8_cards(claim):
    """torchao is asked what it would say on each card."""
    said = {}
    for name in claim.figures.split(", "):
        with (
            patch("torch.cuda.is_available", return_value=True),
            patch("torch.version.cuda", "13.0"),
            patch("torch.cuda.get_device_capability", return_value=CAPABILITY[name]),
        ):
            said[name] = bool(torchao("utils").is_sm_at_least_89())
    of = {name: f"{name} has {'.'.join(map(str, CAPABILITY[name]))}" for name in said}
    found = f"FP8 products need compute capability 8.9; {', '.join(of.values())}"
    without = [name for name, can in said.items() if not can]
    if not without:
        return Finding(found)
    return Finding(found, "wrong about an API", f"no FP8 products on an {', '.join(without)}")
