"""Note 004: a model of 197 M parameters, tables of batches by length, and 22 GB to spare.

Each check takes its numbers from the claim where it can, so a figure changed there is judged anew.
Verdicts follow from what is computed; `SPARING` are two techniques that the note does not mention.
"""

import re
from functools import cache
from types import SimpleNamespace
from unittest import mock

import torch
from audit.judge import Finding

from memlab import GB, MB, MiB, Recipe, text
from memlab.cases.planner import (
    OWN_BLOCKS,
    RTX_4090,
    SMALL_WIDE,
    Roofline,
    flops_per_token,
    intensity,
    plan,
    seconds_per_token,
)
from memlab.devices import device
from memlab.estimate import peak
from memlab.fit import largest_batch, limit_of
from memlab.lab import fp8 as lab_fp8
from memlab.lab.models import TinyLlama
from memlab.model import Model
from memlab.terms import fp8
from memlab.terms.context import CONTEXT

CARD = "RTX 4090"
SPARING = OWN_BLOCKS.replace(loss="chunked", loss_chunks=64, checkpoint="block")
# The note's own columns, for the claims that speak of several rows at once.
TABLE = {8: 8192, 16: 8192, 32: 4096, 64: 2048, 128: 1024}
TABLE |= {256: 512, 512: 256, 768: 256, 1536: 128, 2048: 64}
CONFIG = {8: 4096, 16: 4096, 32: 2048, 64: 1024, 128: 512, 256: 256, 512: 128, 2048: 32}
PIECES = dict.fromkeys(CONFIG, 1) | {2048: 2}
RATES = {8: 50e3, 16: 48e3, 32: 45e3, 64: 42e3, 128: 40e3, 256: 38e3, 512: 35e3, 2048: 25e3}
BF16_MIB, FP8_MIB, ADAM_MIB = 374.5, 187.3, 1872.6
IMPLIED = BF16_MIB * MiB / 2  # parameters, if its MB are MiB
WIDE_STATES = Recipe(weights="bf16", gradients="bf16", states=("fp32", "fp32"))


def numbers(words):
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", words)]


@cache
def step(tokens, batch, sparing=False, recipe="bf16"):
    how = SPARING if sparing else OWN_BLOCKS
    return peak(SMALL_WIDE, recipe, how.replace(batch=batch, tokens=tokens))


@cache
def largest(tokens, card=CARD, model=None):
    """Sequences that fit, of those that the note asks for at most."""
    run = OWN_BLOCKS.replace(tokens=tokens)
    found = largest_batch(model or SMALL_WIDE, "bf16", run, on=card, spare=CONTEXT)
    return min(found.value, max(TABLE.values()))


@cache
def pieces(tokens, batch):
    return plan(SMALL_WIDE, [(tokens, batch)], on=CARD)[0].pieces


def fits(size, card=CARD):
    return size <= limit_of(card)[0]


def logits(tokens):
    return 2 * SMALL_WIDE.vocab * tokens


def share(tokens, kind):
    return RATES[tokens] * seconds_per_token(SMALL_WIDE, tokens, RTX_4090, kind)["products"]


def fp8_takes(inputs, outputs):
    """Whether some GPU's kernel of FP8 multiplies by a matrix of this shape."""
    part = SimpleNamespace(device=SimpleNamespace(type="cuda"), shape=(inputs, outputs))
    with mock.patch("torch.cuda.get_device_capability", return_value=(10, 0)):
        return lab_fp8.kernel_takes(part, part)


def percent(x):
    return f"{x:.0%}"


# The model and what is always there.


def matrices():
    """Parameters as the note counts: no norms, and one projection for both ends of the model."""
    norms, projection = SMALL_WIDE.parameters()["norm"], SMALL_WIDE.embed_dim * SMALL_WIDE.d_model
    return SMALL_WIDE.parameter_count - norms - projection


def parameters(claim):
    (claimed,) = numbers(claim.figures)
    near = abs(claimed * 1e6 / IMPLIED - 1) < 0.005
    found = f"{IMPLIED / 1e6:.1f} M by its size in bf16"
    found += f"; rebuilt: {SMALL_WIDE.parameter_count / 1e6:.1f} M"
    found += f", {matrices():,} without norms"
    return Finding(found) if near else Finding(found, "arithmetic slip", f"{IMPLIED / 1e6:.1f} M")


def tokenizer(claim):
    # V·D - (V·E + E·D) = 127.9 M, for D = 768 and E = 128; rounding leaves some 80 either way.
    D, E = SMALL_WIDE.d_model, SMALL_WIDE.embed_dim
    low, high = ((n * 1e6 + E * D) / (D - E) for n in (127.85, 127.95))
    found = f"127.9 M saved at D = {D}, E = {E}: V = {low:,.0f} to {high:,.0f}, as the 200k of "
    found += "this tokenizer; t80k is no 80,000, with which a token's logits in bf16 would be "
    found += f"{T80K:,} B and not {logits(1):,} B"
    if low <= 200_000 <= high:
        return Finding(found)
    return Finding(found, "wrong model", f"{low:,.0f}")


T80K = 2 * 80_000


def size_of_weights(claim):
    (claimed,) = numbers(claim.figures)
    if "FP8" in claim.claim:
        return size_in_fp8(claimed)
    size = 2 * 197e6  # what the model's name says
    as_mb, as_mib = abs(claimed * MB / size - 1), abs(claimed * MiB / size - 1)
    right = f"{claimed} MiB, which are {claimed * MiB / MB:.1f} MB"
    if as_mb < 0.01:
        return Finding(f"{size / MB:.1f} MB")
    slip = "unit slip" if as_mib < 0.01 else "wrong model"
    return Finding(f"197 M parameters: {size / MiB:.1f} MiB, {size / MB:.1f} MB", slip, right)


def size_in_fp8(claimed):
    """One byte where a kernel of FP8 takes the matrix; the table is the head as well, and stays."""
    m = SMALL_WIDE
    table = 0 if fp8_takes(m.embed_dim, m.vocab) else m.embed_dim * m.vocab
    mib = (matrices() + table) / MiB
    found = f"layers 1 B, the {m.vocab:,} rows of the table and head {2 if table else 1} B: "
    found += f"{mib:.1f} MiB; {claimed} is {claimed * MiB / matrices():.2f} B for each, in MiB"
    if abs(claimed / mib - 1) < 0.005:
        return Finding(found)
    right = f"{mib:.1f} MiB, with no kernel of FP8 for {m.vocab:,} columns"
    return Finding(found, "wrong model", right)


def adam(claim):
    (claimed,) = numbers(claim.figures)
    states = WIDE_STATES.bytes_per_parameter()["optimizer"]
    found = claimed * MiB / IMPLIED
    right = f"{states * IMPLIED / MiB:,.0f} MiB: two states in fp32, {states:g} B a parameter"
    said = f"{found:.1f} B a parameter"
    if abs(found / states - 1) < 0.01:
        return Finding(said)
    more = found - states
    if abs(more - 2) < 0.05:
        said += (
            f": {states:g} of the states and {more:.0f} more, which gradients in bf16 would take"
        )
    return Finding(said, "wrong model", right)


def total(claim):
    (claimed,) = numbers(claim.figures)
    mib = (FP8_MIB if "FP8" in claim.claim else BF16_MIB) + ADAM_MIB
    found = f"{mib:,.1f} MiB are {mib / 1024:.2f} GiB or {mib * MiB / GB:.2f} GB"
    right = f"{mib / 1024:.2f} GiB or {mib * MiB / GB:.2f} GB"
    if abs(claimed * GB / (mib * MiB) - 1) < 0.005 or abs(claimed / (mib / 1024) - 1) < 0.005:
        return Finding(found)
    slip = "unit slip" if abs(claimed / (mib / 1000) - 1) < 0.005 else "arithmetic slip"
    return Finding(found, slip, right)


def always_there():
    """Weights, gradients, states in bytes: the note's recipe with gradients in bf16."""
    return round(sum(WIDE_STATES.bytes_per_parameter().values()) * IMPLIED)


def left_free(claim):
    (claimed,) = numbers(claim.figures)
    free = limit_of(CARD)[0] - always_there()
    found = f"between two steps {text(free)}, {free / GB:.1f} GB"
    found += f", {text(CONTEXT)} left for the context"
    if abs(claimed * GB / free - 1) < 0.03:
        return Finding(found)
    return Finding(found, "missing term", f"{free / GB:.1f} GB")


def luxury(claim):
    (claimed,) = numbers(claim.figures)
    over = [T for T in TABLE if logits(T * TABLE[T]) > claimed * GB]
    found = f"bf16 logits alone exceed {claimed:g} GB in {len(over)} of {len(TABLE)} rows"
    least = min(step(T, B) for T, B in TABLE.items())
    if not over and fits(least):
        return Finding(found)
    return Finding(found, "missing term", f"the smallest step of the table: {text(least)}")


def totals_differ(claim):
    first, second, apart = numbers(claim.figures)
    found = f"{second - first:.2f}, and {(BF16_MIB - FP8_MIB) / 1000:.2f} by the two sizes"
    holds = abs(second - first - apart) < 0.006
    return Finding(found) if holds else Finding(found, "arithmetic slip", found)


def gradients(claim):
    listed = set(re.findall(r"model|optimizer|gradients", claim.figures))
    size = 2 * IMPLIED
    found = f"gradients in bf16: {size / MiB:.1f} MiB; no line has their name"
    unnamed = ADAM_MIB - WIDE_STATES.bytes_per_parameter()["optimizer"] * IMPLIED / MiB
    if abs(unnamed / (size / MiB) - 1) < 0.01:
        found += ", and Adam's has room for just them"
    if "gradients" in listed:
        return Finding(found)
    return Finding(found, "missing term", f"{size / MiB:.1f} MiB by name, in fp32 twice that")


def all_that_stays(claim):
    (claimed,) = numbers(claim.figures)
    each = sum(WIDE_STATES.bytes_per_parameter().values())
    mib = each * matrices() / MiB
    found = f"{mib:,.1f} MiB: bf16 weights and gradients, two fp32 states, {each:g} B a parameter"
    if abs(claimed / mib - 1) < 0.005:
        return Finding(found)
    return Finding(found, "wrong model", f"{mib:,.1f} MiB")


def own_head(claim):
    (claimed,) = numbers(claim.figures)
    m = SMALL_WIDE
    with_head = m.parameter_count - m.embed_dim * m.d_model + m.d_model * m.vocab
    found = f"its FP8 model has a head of its own, {m.d_model} to {m.vocab:,}: {with_head:,}"
    if abs(claimed * 1e6 / with_head - 1) < 0.005:
        return Finding(found)
    return Finding(found, "missing term", f"{with_head / 1e6:.1f} M")


def by_its_totals(claim):
    share, narrow, wide = numbers(claim.figures)
    found = f"{narrow:g} of {wide:g} GB: {percent(1 - narrow / wide)} less"
    if abs(narrow / wide - share) < 0.05:
        return Finding(found)
    return Finding(found, "contradicts itself", f"{percent(1 - narrow / wide)} less")


def nothing_grows(claim):
    batch = TABLE[128]
    lost = step(128, batch) - always_there()
    found = f"{batch:,} x 128 tokens: {text(lost)} of logits and activations"
    found += f", one bf16 copy of the logits {text(logits(128 * batch))}"
    return Finding(found, "missing term" if lost > always_there() else "holds", text(lost))


def weights_in_fp8(claim):
    torch.manual_seed(0)
    net = TinyLlama(Model.preset("tiny-llama")).to(torch.bfloat16)
    ids = torch.arange(64).reshape(1, 64)
    with lab_fp8.autocast(lab_fp8.FP8Recipe()):
        net(ids, ids).backward()
    sizes = {p.element_size() for p in net.parameters()} | {
        p.grad.element_size() for p in net.parameters()
    }
    (claimed,) = numbers(claim.figures)
    said = claimed * MiB / IMPLIED  # bytes for each parameter
    found = f"weights and gradients of a step in FP8: {', '.join(map(str, sorted(sizes)))} B each"
    if all(abs(size - said) < 0.02 for size in sizes):
        return Finding(found)
    return Finding(found, "wrong model", f"{max(sizes) * IMPLIED / MiB:.1f} MiB")


# Batches.


def rows(claim):
    """Tokens x sequences of each row, with their product where the note has it."""
    said = [tuple(map(int, numbers(each)[:3])) for each in claim.figures.split("; ")]
    slips = [T * B for T, B, *given in said if len(given) and given[0] not in (T * B, 2)]
    if slips:
        return Finding(f"{slips[0]:,} tokens", "arithmetic slip", f"{slips[0]:,}")
    plain, sparing = ([step(T, B, way) for T, B, *_ in said] for way in (False, True))
    counts = [T * B for T, B, *_ in said]
    words = f"{sum(map(fits, plain))} of {len(said)} rows fit: {text(min(plain))} to "
    words += f"{text(max(plain))}, logits in bf16 {text(logits(min(counts)))} to "
    words += f"{text(logits(max(counts)))}; with chunked loss and checkpoints "
    words += f"{text(min(sparing))} to {text(max(sparing))}"
    if all(map(fits, plain)):
        return Finding(words)
    best = ", ".join(f"{largest(T):,} of {T:,}" for T, *_ in said)
    return Finding(words, "missing term", f"sequences that fit: {best} tokens")


def no_pieces(claim):
    needed = {T: pieces(T, B) for T, B in TABLE.items()}
    found = f"{sum(n == 1 for n in needed.values())} of {len(TABLE)} rows fit whole"
    if set(needed.values()) == {1}:
        return Finding(found)
    most, least = max(needed.values()), min(needed.values())
    return Finding(found, "missing term", f"{least} to {most} micro-batches")


def only_the_longest(claim):
    (longest,) = numbers(claim.figures)
    needed = {T: pieces(T, B) for T, B in TABLE.items()}
    short = [T for T, n in needed.items() if n > 1 and T < longest]
    among = sum(T < longest for T in TABLE)
    found = f"{len(short)} of the {among} shorter lengths need accumulation too"
    if not short:
        return Finding(found)
    return Finding(found, "missing term", f"{needed[8]} micro-batches at 8 tokens already")


def no_worry(claim):
    worst = max(B / largest(T) for T, B in TABLE.items())
    found = f"the table asks for up to {worst:.0f} times the batch that fits"
    if worst <= 1:
        return Finding(found)
    right = f"{largest(8)} sequences of 8 tokens, {largest(2048)} of 2,048"
    return Finding(found, "missing term", right)


def times_larger(claim):
    (factor, *_) = numbers(claim.figures)
    cards = ("A100 80GB", "H100 80GB", "H200")
    card = next(name for name in cards if name.split()[0] in claim.claim)
    ratios = [largest(T, card) / largest(T) for T in (8, 128, 512)]
    least, most = min(ratios), max(ratios)
    found = f"{device(card).limit / device(CARD).limit:.2f} times the memory"
    found += f", {least:.1f} to {most:.1f} times the batch"
    if least - 0.1 <= factor <= most + 0.1:
        return Finding(found)
    return Finding(found, "wrong model", f"{least:.1f}x")


def h200_at_128(claim):
    (batch,) = numbers(claim.figures)
    factor = batch / TABLE[128]
    found = f"{factor:g} times the 1,024 of the table; the note says 4 times"
    found += f"; as the program comes {text(step(128, int(batch)))}"
    found += f", with chunked loss and checkpoints {text(step(128, int(batch), sparing=True))}"
    if factor == 4:
        return Finding(found)
    return Finding(found, "contradicts itself", f"{4 * TABLE[128]:,} by its own factor")


def capacities(claim):
    cards = (CARD, "A100 80GB", "H100 80GB", "H200")
    found = [device(name).marketed for name in cards]
    said = "; ".join(f"{name} {text(device(name).limit)} to use" for name in cards)
    right = "/".join(map(str, found))
    holds = numbers(claim.figures) == found
    return Finding(said) if holds else Finding(said, "wrong model", right)


def takes_fp8(claim):
    part = SimpleNamespace(device=SimpleNamespace(type="cuda"), shape=(16, 16))
    capability = tuple(int(digit) for digit in re.search(r"sm_(\d)(\d)", claim.figures).groups())
    taken = {}
    for one in (capability, (8, 6)):
        with mock.patch("torch.cuda.get_device_capability", return_value=one):
            taken[one] = lab_fp8.kernel_takes(part, part)
    name = ".".join(map(str, capability))
    words = {one: "takes" if taken[one] else "refuses" for one in taken}
    found = f"the kernel {words[capability]} capability {name} and {words[8, 6]} 8.6"
    return Finding(found) if taken[capability] else Finding(found, "wrong about an API", "8.9")


def tokens_of_rows(claim):
    rows = [T * B for T, B in TABLE.items() if (T <= 128) == ("Short" in claim.claim)]
    low, high = (n * 1000 for n in numbers(claim.figures))
    found = f"{min(rows):,} to {max(rows):,}"
    if abs(min(rows) - low) < 1000 and abs(max(rows) - high) < 1000:
        return Finding(found)
    return Finding(found, "contradicts itself", found)


def both_double(claim):
    times = zip(("H100 80GB", "H200"), numbers(claim.figures), strict=True)
    sizes = {name: step(128, int(n) * CONFIG[128]) for name, n in times}
    found = ", ".join(f"{text(size)} on {name}" for name, size in sizes.items())
    found = f"512 x 128 tokens, doubled and quadrupled: {found}"
    if all(fits(size, name) for name, size in sizes.items()):
        return Finding(found)
    return Finding(found, "missing term", f"{largest(128, 'H100 80GB')} and {largest(128, 'H200')}")


def half_of_the_table(claim):
    one, of = numbers(claim.figures)
    ratios = {CONFIG[T] / TABLE[T] for T in CONFIG}
    found = f"{', '.join(map(str, sorted(ratios)))} of the table at every length that both have"
    if ratios == {one / of}:
        return Finding(found)
    return Finding(found, "arithmetic slip", found)


def optimum_kept(claim):
    low, high = (n * 1000 for n in numbers(claim.figures))
    found = {T: T * CONFIG[T] * PIECES[T] for T in CONFIG}
    outside = [T for T, n in found.items() if not low <= n < high + 1000]
    words = f"{min(found.values()):,} to {max(found.values()):,} tokens a step"
    if not outside:
        return Finding(words)
    return Finding(words, "contradicts itself", f"{found[outside[0]]:,} at {outside[0]} tokens")


def vocabulary(claim):
    narrow = SMALL_WIDE.replace(vocab=50_257)
    found = (
        f"at 128 tokens {largest(128)} sequences; with 50,257 entries {largest(128, model=narrow)}"
    )
    holds = largest(128) == largest(128, model=narrow)
    right = f"{logits(1):,} B of bf16 logits for each token"
    return Finding(found) if holds else Finding(found, "missing term", right)


def within_reach(claim):
    sizes = [step(T, B, sparing=True) for T, B in TABLE.items()]
    good = sum(map(fits, sizes))
    found = f"{good} of {len(sizes)} rows, {text(min(sizes))} to {text(max(sizes))}"
    return Finding(found) if good == len(sizes) else Finding(found, "wrong model", found)


def left_for_a_token(claim):
    free, tokens = numbers(claim.figures)
    left = free * GB / tokens
    wide, narrow = logits(1), logits(1) // 2
    words = f"{left:,.0f} B for each token; its logits take {wide:,} B in bf16, {narrow:,} B in FP8"
    if left > wide:
        return Finding(words)
    return Finding(words, "missing term", f"{wide:,} B for one copy in bf16")


def equally_full(claim):
    tokens, batch, longer, most = map(int, numbers(claim.figures))
    sizes = step(tokens, batch), step(longer, most)
    ratio = min(sizes) / max(sizes)
    words = f"{tokens * batch:,} and {longer * most:,} tokens: {text(sizes[0])}, {text(sizes[1])}"
    if ratio > 0.9:
        return Finding(words)
    return Finding(words, "contradicts itself", f"one is {percent(ratio)} of the other")


def doubled_is_the_table(claim):
    (factor,) = numbers(claim.figures)
    same = sum(factor * CONFIG[T] <= TABLE[T] for T in CONFIG)
    words = f"{factor:g} times the configuration is within the RTX 4090's table"
    words += f" at {same} of {len(CONFIG)} lengths"
    if same == 0:
        return Finding(words)
    return Finding(words, "contradicts itself", "the RTX 4090's own batches")


def quadrupled(claim):
    factor, batch = numbers(claim.figures)
    found = factor * CONFIG[128]
    words = f"{factor:g} times {CONFIG[128]} are {found:,.0f}"
    if found == batch:
        return Finding(words)
    return Finding(words, "contradicts itself", f"{found:,.0f} or {batch:,.0f}")


def whole_or_in_pieces(claim):
    whole, batch, count = numbers(claim.figures)
    words = f"{batch * count:g} sequences a step, {TABLE[2048]} of them at once by the table"
    if whole != TABLE[2048]:
        return Finding(words, "arithmetic slip", f"{TABLE[2048]} sequences")
    if count == 1 or batch * count > whole:
        return Finding(words)
    return Finding(words, "contradicts itself", f"{whole:g} in one piece, or {batch:g} x {count:g}")


def same_text(claim):
    fewer, vocab, small = numbers(claim.figures)
    ratio = (1 - fewer / 100) * vocab / small
    words = f"logits of the same text: {ratio:.2f} times those of {small:,.0f} entries"
    if ratio <= 1:
        return Finding(words)
    return Finding(words, "missing term", f"{ratio:.2f} times as many")


# Factors.


def spared(claim):
    (claimed,) = numbers(claim.figures)
    V, D, E = SMALL_WIDE.vocab, SMALL_WIDE.d_model, SMALL_WIDE.embed_dim
    found = V * D - (V * E + E * D)
    said = f"{found:,} for V = {V:,}, D = {D}, E = {E} and one projection"
    if abs(claimed * 1e6 - found) < 0.05e6:
        return Finding(said)
    return Finding(said, "arithmetic slip", f"{found:,}")


def one_projection(claim):
    m = SMALL_WIDE
    shared = m.vocab * m.d_model - table_and_projections(1)
    own = m.vocab * m.d_model - table_and_projections(2)
    words = f"{shared:,}: the head goes back through the same projection"
    words += f"; with one of its own {own:,}"
    (claimed,) = numbers(claim.figures)
    if round(shared / 1e6, 1) == claimed:
        return Finding(words)
    return Finding(words, "arithmetic slip", f"{shared / 1e6:.1f} M")


def table_and_projections(projections):
    return SMALL_WIDE.embed_dim * (SMALL_WIDE.vocab + projections * SMALL_WIDE.d_model)


def share_of_free(claim):
    spared_parameters, free = numbers(claim.figures)
    size = spared_parameters * 1e6 * sum(WIDE_STATES.bytes_per_parameter().values())
    words = f"{text(round(size))} with gradients and states, {percent(size / (free * GB))} of it"
    if size > free * GB / 2:
        return Finding(words)
    return Finding(words, "wrong model", text(round(size)))


def kept_by_a_layer(tokens, batch):
    """Bytes that a layer keeps for backward, in bf16 and with FP8 products."""
    m = SMALL_WIDE
    heads = dict(heads=m.heads, kv_heads=m.kv_heads, head_dim=m.head_dim)
    shape = dict(batch=batch, tokens=tokens, d_model=m.d_model, d_ff=m.d_ff, **heads)
    return [fp8.llama_layer(**shape, keep=keep, backend="cuda") for keep in ("original", "fp8")]


def doubled_by_fp8(claim):
    without, with_fp8 = map(int, numbers(claim.figures))
    # What FP8 spares at most: the layers' copies, and half of all weights, which it does not.
    wide, narrow = kept_by_a_layer(8, without)
    whole = step(8, without)
    rest = whole - SMALL_WIDE.layers * (wide - narrow) - IMPLIED
    more = (whole - always_there()) / (rest - (always_there() - IMPLIED))
    words = f"room for {more:.3f} times the batch, with weights of one byte too"
    if with_fp8 <= more * without:
        return Finding(words)
    return Finding(words, "wrong model", f"{more:.3f} times")


def half_by_fp8(claim):
    one, of = numbers(claim.figures)
    wide, narrow = kept_by_a_layer(128, TABLE[128])
    less = SMALL_WIDE.layers * (wide - narrow) / step(128, TABLE[128])
    words = f"a layer keeps {1 - narrow / wide:.1%} less, the step of 1,024 x 128 tokens {less:.1%}"
    if less > 1 - one / of - 0.05:
        return Finding(words)
    return Finding(words, "wrong model", f"{less:.1%} less")


def fewer_tokens(claim):
    (claimed,) = numbers(claim.figures)
    # Its authors set a context of 2,756 tokens where one of 4,096 BPE tokens has as many bytes.
    found = 1 - 2756 / 4096
    words = f"its authors' contexts, 2,756 and 4,096 tokens: {found:.1%} fewer"
    # Characters a token that the note's program states: its own tokenizer, and GPT-2's.
    stated = 1 - 4.488 / 7.184
    words += f"; by its program's 7.184 characters a token, GPT-2's 4.488: {stated:.1%}"
    if abs(claimed / 100 - found) < 0.005:
        return Finding(words)
    if abs(claimed / 100 - stated) > 0.005:
        return Finding(words, "arithmetic slip", f"{stated:.1%}")
    return Finding(words, "cannot be checked here", f"{found:.1%} by its authors")


# Speed.


def multiply(claim):
    tokens, batch, product = map(int, numbers(claim.figures))
    found = f"{tokens * batch:,}"
    if tokens * batch == product:
        return Finding(found)
    return Finding(found, "arithmetic slip", found)


def an_hour(claim):
    samples, claimed = numbers(claim.figures)
    found = samples * 3600
    if abs(claimed / found - 1) < 0.01:
        return Finding(f"{found / 1e6:g} M")
    return Finding(f"{found / 1e6:g} M", "arithmetic slip", f"{found / 1e6:g} M")


def millions_an_hour(claim):
    (tokens,) = map(int, numbers(claim.figures))
    found = RATES[tokens] / tokens * 3600
    words = f"{found / 1e6:.1f} M at {RATES[tokens]:,.0f} tokens/s"
    return Finding(words) if found >= 2e6 else Finding(words, "arithmetic slip", words)


def rates(claim):
    """Samples are printed with two digits, hours with two or three."""
    words, wrong = [], []
    for row in claim.figures.split(" | "):
        tokens, per_second, samples, hours = numbers(row)
        found, needed = per_second / tokens, 1e9 / per_second / 3600
        words.append(f"{tokens:,.0f}: {found:,.1f} and {needed:.2f} h")
        if abs(samples / found - 1) > 0.025 or abs(hours - needed) > 0.06:
            wrong.append(words[-1])
    found = f"sequences a second, and a billion tokens, {'; '.join(words)}"
    return Finding(found, "arithmetic slip", "; ".join(wrong)) if wrong else Finding(found)


# What a row of logits trains: the program compares token t with what is written at t + 1, so the
# last of each sequence has no target (model_fp8_optimized.py: logits[..., :-1, :]).


def targets(tokens):
    ids = torch.arange(tokens).view(1, tokens)
    return ids[:, 1:].numel()


def rows_that_train(claim):
    tokens, batch, claimed = map(int, numbers(claim.figures))
    trained = batch * targets(tokens)
    hours = 1e9 / (RATES[tokens] * targets(tokens) / tokens) / 3600
    words = f"{trained:,} of {tokens * batch:,} rows have a target; the logits of the others train "
    words += f"nothing; {hours:.2f} h to a billion targets at the rate of the table"
    if claimed == trained:
        return Finding(words)
    return Finding(words, "missing term", f"{trained:,} targets; {hours:.2f} h")


def fastest_stage(claim):
    claimed = int(numbers(claim.figures)[0])
    each = {T: RATES[T] * targets(T) / T for T in RATES}
    best = max(each, key=each.get)
    words = f"targets a second by its own rates: {each[claimed]:,.0f} at {claimed} tokens, "
    words += f"{each[best]:,.0f} at {best}"
    if best == claimed:
        return Finding(words)
    return Finding(words, "wrong model", f"{best} tokens: {each[best]:,.0f} targets/s")


def vocabulary_in_fp8(claim):
    vocab = int(numbers(claim.figures)[0])
    E, D = SMALL_WIDE.embed_dim, SMALL_WIDE.d_model
    head = 6 * D * vocab
    layers = flops_per_token(SMALL_WIDE, 8) - 6 * E * (SMALL_WIDE.vocab + D)
    fitting = next(v for v in range(vocab, vocab + 17) if fp8_takes(E, v))
    words = f"the kernel {'takes' if fitting == vocab else 'refuses'} {vocab:,} columns; with the "
    words += f"program's own head {head / (head + layers):.0%} of the products"
    if fitting == vocab:
        return Finding(words + " could be in FP8")
    right = f"pad it to {fitting:,}"
    return Finding(words + " stay in bf16", "wrong about an API", right)


def larger_is_slower(claim):
    batch, samples, half, faster = numbers(claim.figures)
    words = f"a step of {batch:,.0f} takes {batch / samples:.2f} s"
    words += f", one of {half:,.0f} {half / faster:.2f} s"
    if samples >= faster:
        return Finding(words)
    return Finding(words, "contradicts itself", f"{batch / faster:.2f} s at the rate of the table")


def slower_by_products(claim):
    first, last = numbers(claim.figures)
    more = flops_per_token(SMALL_WIDE, 2048) / flops_per_token(SMALL_WIDE, 8)
    words = f"a token's products grow by {percent(more - 1)}: {first / more:,.0f} tokens/s"
    if abs(last * more / first - 1) < 0.1:
        return Finding(words)
    return Finding(words, "wrong model", f"{first / more:,.0f} tokens/s, were compute the limit")


def halves(claim):
    first, last = numbers(claim.figures)
    more = flops_per_token(SMALL_WIDE, 2048) / flops_per_token(SMALL_WIDE, 8) - 1
    words = f"{last / first:g}; the products of a token grow by {percent(more)}"
    return Finding(words) if last / first == 0.5 else Finding(words, "arithmetic slip", words)


def busy(claim):
    """What the note's own rates make of the card's stated peak: the first figure is claimed."""
    claimed, *lengths = numbers(claim.figures)
    lengths = [int(T) for T in lengths if T in RATES]
    best = {kind: max(share(T, kind) for T in lengths) for kind in ("bf16", "fp8")}
    words = f"by its own rates at most {percent(best['bf16'])} of the stated peak in bf16"
    words += f", {percent(best['fp8'])} in FP8"
    if best["bf16"] > claimed / 100 - 0.1:
        return Finding(words)
    return Finding(words, "wrong model", f"{percent(best['fp8'])} to {percent(best['bf16'])}")


def by_memory(claim):
    found = busy(claim)
    if "memory" not in claim.figures:
        return found
    words = "limited by memory, where the key insight says: not memory-bound; " + found.result
    return Finding(words, "contradicts itself", found.right_figure)


def throughout(claim):
    (claimed, *column) = numbers(claim.figures)
    words = f"its own column ends at {min(column):g}%"
    if min(column) >= claimed:
        return Finding(words)
    return Finding(words, "contradicts itself", f"{min(column):g}% at 2,048 tokens, by that column")


def bound_by(claim):
    times = seconds_per_token(SMALL_WIDE, 8, RTX_4090)
    products, moved = (1e6 * times[name] for name in ("products", "logits"))
    memory_first = any(not fits(step(T, B)) for T, B in TABLE.items())
    words = f"a token: products {products:.1f} µs, moving its logits {moved:.1f} µs"
    words += f"; memory ends the batch at {largest(8):,} of {TABLE[8]:,}"
    if products > moved and not memory_first:
        return Finding(words)
    return Finding(words, "missing term", "memory, twice: capacity, and the traffic of the logits")


# Bytes for each logit that the program's loss moves beside planner.LOSS_TRAFFIC.
SHIFTED = {"copy of all words but the last": 2 + 2, "its gradient into a whole tensor": 2 + 2 + 2}


def with_its_own_head(claim):
    """The roofline again, for a head that no narrow table feeds: its width is claimed."""
    (width,) = map(int, numbers(claim.figures))
    m, peak = SMALL_WIDE, RTX_4090.flops["bf16"]
    layers = flops_per_token(m, 8) - 6 * m.embed_dim * (m.vocab + m.d_model)
    head = 6 * width * m.vocab / peak
    times = [1e6 * (layers / RTX_4090.flops[kind] + head) for kind in ("bf16", "fp8")]
    moved = seconds_per_token(m, 8, RTX_4090)["logits"]
    moved = 1e6 * (moved + m.vocab * sum(SHIFTED.values()) / RTX_4090.bandwidth)
    words = f"a token: products {times[0]:.1f} µs, with layers in FP8 {times[1]:.1f} µs"
    words += f"; moving its logits, with a shifted copy, {moved:.1f} µs"
    if times["FP8" in claim.claim] > moved:
        return Finding(words)
    return Finding(words, "missing term", f"the traffic of the logits: {moved:.1f} µs")


def columns_agree(claim):
    """If compute is the limit, what its used share and a token's products make of the rate."""
    full, used, first, last = numbers(claim.figures)
    more = flops_per_token(SMALL_WIDE, 2048) / flops_per_token(SMALL_WIDE, 8)
    rate = first * used / full / more
    words = f"{used:g} of {full:g}%, and {percent(more - 1)} more products: {rate:,.0f} tokens/s"
    if abs(last / rate - 1) < 0.1:
        return Finding(words)
    return Finding(words, "contradicts itself", f"{rate:,.0f} tokens/s, by its own column")


# NVIDIA H100 data sheet, SXM: half of the stated 1,979 TFLOP/s, which are with sparsity.
H100 = Roofline("H100 80GB", {"bf16": 989.5e12}, 3350e9)


def better_use(claim):
    """The most of its bf16 peak that each card can reach, while the logits are moved about."""
    listed = set(re.findall(r"RTX 4090|H100", claim.figures))
    most = {}
    for roof in (RTX_4090, H100):
        times = seconds_per_token(SMALL_WIDE, 128, roof)
        most[roof.name] = times["products"] / max(times.values()), max(times.values())
    (small, slow), (large, fast) = most["RTX 4090"], most["H100 80GB"]
    words = f"at most {percent(large)} of its peak, where an RTX 4090 has {percent(small)}"
    words += f"; {slow / fast:.1f} times as fast"
    if len(listed) < 2 or large >= small:
        return Finding(words)
    return Finding(words, "missing term", f"{percent(large)}, compared with {percent(small)}")


def at_the_limit(claim):
    limit = 1 / seconds_per_token(SMALL_WIDE, 8, RTX_4090)["products"]
    (claimed,) = numbers(claim.figures)
    words = f"products alone would allow {limit:,.0f} tokens/s in bf16"
    if claimed > 0.75 * limit:
        return Finding(words)
    return Finding(words, "wrong model", f"{percent(claimed / limit)} of that limit")


def narrow_head(claim):
    rows, ridge = 65_536, RTX_4090.ridge("bf16")
    (claimed,) = map(int, numbers(claim.figures))
    of_head = intensity(rows, claimed, SMALL_WIDE.vocab)
    wide = intensity(rows, SMALL_WIDE.d_model, SMALL_WIDE.vocab)
    words = f"{of_head:.0f} FLOP/B with E = {claimed}, {wide:.0f} with D = 768; ridge: {ridge:.0f}"
    if of_head > ridge:
        return Finding(words)
    right = f"the narrow head is limited by bandwidth: {of_head:.0f} FLOP/B"
    return Finding(words, "missing term", right)
