"""Note 003: a guide to small models in little memory, from quantization to monitoring.

It has few figures and many names, so most checks run a technique on the small Llama, or ask the
installed library. Verdicts follow from what is found: none is written where nothing is computed.
"""

import atexit
import inspect
import re
import shutil
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from audit.judge import Finding, compare
from torch.nn.utils import prune as torch_prune

from memlab import MiB, Model, Recipe, Run, bytes_per_value, estimate, storage, text
from memlab.lab import prune
from memlab.lab.generate import Cache, generate
from memlab.lab.host import File
from memlab.lab.lora import adapt, merge
from memlab.lab.models import TinyLlama
from memlab.lab.quantize import dequantize, quantize
from memlab.lab.streaming import stream
from memlab.measure import Saved, Tracker, storage_bytes
from memlab.step import Lora
from memlab.step.closed.own_calls import decode, prefill
from memlab.step.simulate import simulate
from memlab.terms import offloading as bus
from memlab.terms.allocator import CachingAllocator
from memlab.terms.kv_cache import kv_cache, per_token
from memlab.terms.loading import moments, peak, shards
from memlab.terms.sparse import csr_break_even

FULL = Model.preset("tinyllama-1.1b")
TINY = Model.preset("tiny-llama")
LAPTOP, SMALL_CARD = 8 * 10**9, 16 * 10**9
LAYERS = {"other": "fp16", "head": "fp16", "gradients": None}  # what a quantizer leaves alone
RANK = 16  # of LoRA
IDS = torch.arange(8 * 32).remainder(256).view(8, 32)


def size(count):
    return text(count, decimal=True, digits=3)


def times(ratio):
    return f"{ratio:.2f}×"


def judged(good, result, verdict, right):
    return Finding(result) if good else Finding(result, verdict, right)


def figure(claim):
    return float(re.search(r"[\d.]+", claim.figures)[0])


def tiny():
    torch.manual_seed(0)
    return TinyLlama(TINY)


def weights(format):
    """All of the model's weights: its layers in `format`, embedding, head and norms in fp16."""
    return estimate(FULL, Recipe(weights=format, **LAYERS))["weights"].derived


def wide():
    return storage(FULL.parameter_count, "fp32")


@cache
def step(recipe="fp32", tokens=512, lora=None, **how):
    run = Run.cpu(batch=1, tokens=tokens, implementation="memlab", lora=lora, **how)
    return simulate(FULL, recipe, run)


STORED = torch.float32  # the format of a checkpoint


@cache
def checkpoint(limit="50GB"):
    """A tiny Llama of transformers on disk."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=256, num_attention_heads=4, num_key_value_heads=2, **shape)
    LlamaForCausalLM(config).to(STORED).save_pretrained(folder, max_shard_size=limit)
    return folder


def from_pretrained(limit="50GB", **how):
    from transformers import AutoModelForCausalLM

    with Tracker(device="cpu") as tracker:
        net = AutoModelForCausalLM.from_pretrained(checkpoint(limit), **how)
    return net.state_dict(), tracker.peak


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


# 1. Where memory goes


def small_models_fit(claim):
    distil = Model.preset("gpt2").replace(layers=6)
    held = decode(FULL, batch=1, tokens=2047, format="fp16").total()
    found = f"answering in fp16 with 2,048 tokens: {size(held)}; DistilGPT-2's weights in fp32: "
    found += size(storage(distil.parameter_count, "fp32"))
    return judged(held < LAPTOP, found, "wrong model", f"more than {size(LAPTOP)}")


def still_a_bottleneck(claim):
    held = step().peak.bytes
    found = f"a fp32 AdamW step of TinyLlama-1.1B on one sequence of 512 tokens: {size(held)}"
    return judged(held > SMALL_CARD, found, "wrong model", f"fits {size(SMALL_CARD)}")


def three_sources(claim):
    terms = claim.claim.lower()
    held = step().rows
    left_out = {k: n for k, n in held.items() if k not in terms and n > held["gradients"] // 20}
    if not left_out:
        return Finding("every large row of a training step is named")
    names = ", ".join(f"{name} {size(n)}" for name, n in left_out.items())
    return Finding(f"not named: {names}", "missing term", f"also {names}, and a KV cache")


def bytes_of_a_billion(claim):
    return compare(figure(claim) * 1e9, storage(10**9, "fp32"), size, slip="arithmetic slip")


def activations_are_temporary(claim):
    net = tiny()
    with Tracker() as tracker:
        tracker.label([net, IDS], "there before")
        before = tracker.current
        loss = net(IDS, IDS)
        kept = tracker.current - before
        loss.backward()
        del loss
        left = tracker.current - before - storage_bytes([p.grad for p in net.parameters()])
    found = f"small Llama: {kept:,} B after forward; {left:,} B after backward, gradients aside"
    return judged(left == 0 < kept, found, "wrong model", f"{left:,} B stay")


def buffers_only_in_training(claim):
    held = storage_bytes(list(tiny().eval().buffers()))
    full = decode(FULL, batch=1, tokens=1, format="fp32")["buffers"].derived
    found = f"the small Llama answers with {held:,} B of buffers (rotary tables)"
    right = f"gradients only in training; buffers always: {size(full)} for TinyLlama-1.1B in fp32"
    return judged(held == 0, found, "wrong model", right)


ANSWERED = {"batch": 16, "tokens": 2047}


def only_weights_and_activations(claim):
    """Beside what a prompt's pass makes for a moment, and what each token after it does."""
    held = decode(FULL, **ANSWERED, format="fp16")
    prompt = prefill(FULL, **ANSWERED, format="fp16", cache="preallocated")
    cache_, others = held["kv_cache"].derived, prompt.total() - prompt["kv_cache"].derived
    batch, tokens = ANSWERED.values()
    found = f"{batch} sequences of {tokens + 1:,} tokens in fp16: KV cache {size(cache_)}, weights "
    found += f"{size(held['weights'].derived)}, activations {size(prompt['activations'].derived)} "
    found += f"while the prompts are read, {size(held['activations'].derived)} at each later token"
    return judged(cache_ < others // 100, found, "missing term", f"KV cache, {size(cache_)}")


def gradients_double(claim):
    held = estimate(FULL, "fp32")
    w, g, s = (held[term].derived for term in ("weights", "gradients", "optimizer"))
    found = f"weights and gradients {times((w + g) / w)} the weights, with AdamW's states "
    found += times((w + g + s) / w)
    wide = estimate(FULL, "megatron")
    thrice = (wide["weights"].derived + wide["gradients"].derived) / wide["weights"].derived
    right = f"gradients add the size of the weights once ({times(thrice)} in all with fp32 "
    right += f"gradients of bf16 weights), AdamW's states twice: {times((w + g + s) / w)} at rest"
    most = max(float(n) for n in re.findall(r"[\d.]+", claim.figures))
    return judged((w + g + s) / w <= 1.005 * most, found, "missing term", right)


TRAINED = "fp32"


def no_optimizer_states(claim):
    held, w = estimate(FULL, TRAINED)["optimizer"].derived, wide()
    found = f"AdamW's states of TinyLlama-1.1B in fp32: {size(held)}, {times(held / w)} its weights"
    return judged(held < w // 20, found, "missing term", size(held))


SERVED = {"batch": 48, "tokens": 2048}


def no_cache(claim):
    shape = dict(layers=FULL.layers, kv_heads=FULL.kv_heads, head_dim=FULL.head_dim, format="fp16")
    each, many = per_token(**shape), kv_cache(**shape, **SERVED)
    int4 = weights("int4/128:fp16")
    found = f"{each:,} B a token in fp16; {SERVED['batch']} sequences of {SERVED['tokens']:,} "
    found += f"tokens: {size(many)}, the weights in int4: {size(int4)}"
    return judged(many < int4 // 20, found, "missing term", f"{each:,} B a token and sequence")


LENGTH = 2048


def no_checkpointing(claim):
    plain, again = (step("fp32", LENGTH, checkpoint=way).peak.bytes for way in ("none", "block"))
    found = f"step at {LENGTH:,} tokens: {size(plain)}, with its layers recomputed in the backward "
    found += f"pass: {size(again)}"
    return judged(again >= plain, found, "missing term", f"{size(plain - again)} less")


# 2. Quantization


FORMATS = "int8/128", "int4/128", "fp16"


def to_smaller_formats(claim):
    each = {name: bytes_per_value(name) for name in FORMATS}
    found = ", ".join(f"{name} {n:g}" for name, n in each.items()) + " bytes a value, fp32 4"
    return judged(max(each.values()) < 4, found, "wrong model", "not smaller")


def ratio_of(claim, format):
    w, ratio = weights(format), wide() / weights(format)
    found = f"TinyLlama-1.1B {size(wide())} → {size(w)}, {times(ratio)}"
    good = abs(ratio - figure(claim)) <= 0.05 * figure(claim)
    half = times(storage(FULL.parameter_count, "fp16") / w)
    right = f"{times(ratio)} with scales, and embedding and head in fp16; {half} from fp16"
    return judged(good, found, "missing term", right)


def ratio_fp16(claim):
    return ratio_of(claim, "fp16")


def ratio_int8(claim):
    return ratio_of(claim, "int8/128:fp16")


def ratio_int4(claim):
    return ratio_of(claim, "int4/128:fp16")


def int4_halves_int8(claim):
    found = weights("int8/128:fp16") / weights("int4/128:fp16")
    return compare(figure(claim), found, times, within=0.05, slip="missing term")


def calibration(claim):
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING as KNOWN

    q = quantize(torch.randn(4, 256, generator=torch.Generator().manual_seed(0)), "int8/128")
    needs = KNOWN["bitsandbytes_8bit"].requires_calibration
    found = f"{q.scales.numel()} scales from the weights alone; bitsandbytes in transformers "
    found += "needs calibration" if needs else "needs no calibration"
    right = "no data: the scale is the largest magnitude of a block; calibration is one choice"
    return judged(needs, found, "wrong model", right)


def tools_exist(claim):
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING as KNOWN

    wanted = {"bitsandbytes_4bit", "bitsandbytes_8bit"}
    found = f"transformers 5 has {len(wanted & set(KNOWN))} quantizers for bitsandbytes, 4 and 8 "
    found += f"bits; accelerate {'is' if find_spec('accelerate') else 'is not'} there"
    good = wanted <= set(KNOWN) and find_spec("accelerate")
    return judged(good, found, "wrong about an API", "transformers has none")


def formats_or_methods(claim):
    """All three are read from files; two of the names are first of all ways to choose the codes."""
    from transformers import GPTQConfig
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING as KNOWN

    read = [name for name in ("gguf", "gptq", "awq") if name in KNOWN]
    data = "dataset" in inspect.signature(GPTQConfig).parameters
    fed = ["GPTQ"] * data + ["AWQ"] * KNOWN["awq"].requires_calibration
    found = f"transformers reads {', '.join(read)}; {' and '.join(fed)} choose the codes from data"
    return judged(len(read) == 3, found, "wrong about an API", "not all are read")


VALUES = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))


def only_int4_loses(claim):
    """The table says of INT4 alone that it may lose precision: what is left of a matrix."""
    w = VALUES
    back = {"FP16": w.half().float()}
    for name in ("int8", "int4"):
        back[name.upper()] = dequantize(quantize(w, f"{name}/128"), torch.float32)
    lost = {name: float((b - w).norm() / w.norm()) for name, b in back.items()}
    found = ", ".join(f"{name} {part:.1g}" for name, part in lost.items())
    found += f" of a matrix's size lost; 70,000 in FP16 is {float(torch.tensor(7e4).half())}"
    others = [part for name, part in lost.items() if name != "INT4"]
    right = "each rounds, INT4 most; and FP16 ends at 65,504, where bf16 has fp32's range"
    return judged(not any(others), found, "wrong model", right)


def fp16_in_training(claim):
    """Mixed precision as it is usual: 16-bit weights and gradients, a master copy, two states."""
    wide, half = (estimate(FULL, recipe).total() for recipe in ("fp32", "zero"))
    found = f"AdamW at rest: {size(wide)} in fp32, {size(half)} with 16-bit weights and gradients "
    found += f"and an fp32 master copy, {times(wide / half)}"
    good = abs(wide / half - figure(claim)) <= 0.05 * figure(claim)
    return judged(good, found, "missing term", times(wide / half))


AROUND = "bf16", "bf16"  # the format of everything but the base


def only_the_weights(claim):
    wide, narrow = (
        step(recipe, lora=Lora(RANK, base=base))
        for recipe, base in zip(AROUND, (None, "nf4"), strict=True)
    )
    a, b = wide.rows["activations"], narrow.rows["activations"]
    found = f"activations of a step of LoRA, base in bf16 {size(a)}, in nf4 {size(b)}"
    return judged(b < a, found, "missing term", "weights alone: activations and cache stay")


# 3. Offloading and streaming


@cache
def streamed():
    """Peak and words of a deeper small Llama, with its weights here and then in a file."""
    deep = TINY.replace(layers=12)
    torch.manual_seed(0)
    net, runs, host = TinyLlama(deep), [], File()
    for where in ("here", "file"):
        if where == "file":
            stream(net, host)
        with torch.no_grad(), Tracker() as tracker:
            tracker.label(net)
            words = generate(net, IDS[:1].clone(), Cache(deep, 1, 40), tokens=8)
        runs.append((words, tracker.peak))
    return runs[0], runs[1], host.brought


def weights_elsewhere(claim):
    (words, there), (again, here), brought = streamed()
    good = torch.equal(words, again) and here < there and brought > 0
    found = f"12 small layers, peak {there:,} B → {here:,} B with the weights in a mapped file, "
    found += "the same output" if torch.equal(words, again) else "another output"
    return judged(good, found, "wrong model", f"{here:,} B")


def price_of_streaming(claim):
    seconds = bus.microseconds(weights("fp16"), bandwidth=bus.pcie(4)) / 1e6
    found = f"TinyLlama-1.1B in fp16 over PCIe 4: {1000 * seconds:.0f} ms for each token"
    return judged(
        seconds < 0.001, found, "missing term", f"at least {1000 * seconds:.0f} ms a token"
    )


def nothing_to_offload(claim):
    """The example on a card of 8 GB: what does not fit there is what device_map moves."""
    half, over = weights("fp16"), wide() - LAPTOP
    found = f"{size(half)} in fp16, {size(wide())} in fp32: a GPU of {size(LAPTOP)} "
    found += f"lacks {size(over)}" if over > 0 else "holds either"
    right = f"nothing is moved while a GPU has more than {size(wide())} free"
    return judged(over > 0, found, "wrong model", right)


WHERE = "disk"


def accelerate_offloads(claim):
    """All but the small Llama's table is handed to it: what stays, and whether it answers alike."""
    from accelerate import dispatch_model

    net = tiny()
    before, loss = storage_bytes(net), net(IDS, IDS)
    with tempfile.TemporaryDirectory() as folder:
        places = {name: WHERE for name, _ in net.named_children()} | {"embedding": "cpu"}
        net = dispatch_model(net, places, main_device="cpu", offload_dir=folder)
        left = storage_bytes([p for p in net.parameters() if not p.is_meta])
        same_loss = torch.equal(loss, net(IDS, IDS))
    found = f"small Llama, device_map {WHERE}: {before:,} B in memory → {left:,} B of weights, "
    found += "the same loss" if same_loss else "another loss"
    return judged(same_loss and left < before // 2, found, "wrong about an API", f"{left:,} B")


def torch_device_map(claim):
    name = re.search(r"torch\.(\w+)", claim.claim)[1]
    found = f"torch {'has' if hasattr(torch, name) else 'has no'} {name}"
    right = 'from_pretrained(…, device_map="auto") of transformers, carried out by accelerate'
    return judged(hasattr(torch, name), found, "wrong about an API", right)


# 4. Pruning


ZEROS, SPARSE = 0.5, False  # the share that is set to zero; and whether zeros are left out


def a_pruned_layer():
    layer = torch.nn.Linear(256, 256, bias=False)
    before = storage_bytes(layer)
    torch_prune.l1_unstructured(layer, "weight", ZEROS)
    under = storage_bytes([layer, layer.weight])
    torch_prune.remove(layer, "weight")
    after = layer.weight.detach().to_sparse() if SPARSE else layer.weight
    parts = [after.values(), after.indices()] if SPARSE else [after]
    return layer, before, under, storage_bytes(parts)


def pruning_is_lighter(claim):
    _, before, under, after = a_pruned_layer()
    found = f"{ZEROS:.0%} of the values zero: {times(under / before)} under the mask, "
    found += times(after / before)
    right = f"{found} made permanent; lighter only in a sparse form, or without whole units"
    return judged(after < before, found + " after it", "wrong model", right)


def zeros_are_isolated(claim):
    layer, *_ = a_pruned_layer()
    zero = layer.weight == 0
    whole_rows = int(zero.all(1).sum() + zero.all(0).sum())
    found = f"{int(zero.sum()):,} of {zero.numel():,} values are zero, {whole_rows} whole rows"
    return judged(zero.any() and not whole_rows, found, "wrong model", "whole rows go")


def units_go(claim):
    net = tiny()
    before = storage_bytes(net)
    after = storage_bytes(prune.shrink(net, TINY.d_ff // 2))
    found = f"half of the feed-forward units: {before:,} B → {after:,} B"
    return judged(after < before, found, "wrong model", f"{after:,} B")


def no_rewriting(claim):
    small = prune.shrink(tiny(), TINY.d_ff // 2)
    try:
        TinyLlama(TINY).load_state_dict(small.state_dict())
        fits = True
    except RuntimeError:
        fits = False
    found = f"a model without half of its units {'fits' if fits else 'does not fit'} the old shapes"
    right = f"the shapes change (d_ff {TINY.d_ff} → {TINY.d_ff // 2}); "
    right += "where they do not, no byte is freed"
    return judged(fits, found, "wrong model", right)


def any_head(claim):
    """One query head out of 32, where eight share a key/value head."""
    try:
        FULL.replace(heads=FULL.heads - 1, head_dim=FULL.head_dim)
        fits = True
    except ValueError:
        fits = False
    group = FULL.heads // FULL.kv_heads
    found = f"TinyLlama-1.1B with {FULL.heads - 1} heads over {FULL.kv_heads} key/value heads "
    found += "is a Llama" if fits else "is no Llama"
    shape = dict(kv_heads=1, head_dim=FULL.head_dim, batch=1, tokens=2048, format="fp16")
    right = f"one head of each group; or a group of {group} with its keys, and "
    right += f"{size(kv_cache(FULL.layers, **shape))} of KV cache"
    return judged(fits, found, "missing term", right)


PLACES = {"format": "fp16", "index_bytes": 8}  # of the values that stay, and of their places


def zeros_that_pay(claim):
    zeros = csr_break_even(2048, columns=2048, **PLACES) / 2048**2
    found = f"2,048 × 2,048 in {PLACES['format']} is smaller in torch's compressed rows "
    found += f"from {zeros:.1%} zeros on"
    return judged(zeros < 0.5, found, "missing term", f"{zeros:.1%} zeros to break even")


# 5. Loading


@cache
def loading(way, shard=None):
    model = [t.numel * 2 for t in FULL.tensors() for _ in range(t.copies)]
    built = [2 * n for n in model]
    return peak(moments(model, new=model, way=way, built=built, shard=shard, device=True)).host


def lazy_loading(claim):
    copied, mapped = loading("copy"), loading("mmap")
    found = (
        f"host memory to bring TinyLlama-1.1B onto a card: {size(copied)} → {size(mapped)} mapped"
    )
    return judged(mapped < copied, found, "wrong model", size(mapped))


SHARD = 500 * 10**6


def shards_help(claim):
    whole, cut = loading("assign"), loading("shards", SHARD)
    found = f"host peak while loading: {size(whole)} whole, {size(cut)} in shards of {size(SHARD)}"
    found += "; later none"
    return judged(cut < whole, found, "wrong model", size(cut))


def one_shard(claim):
    from transformers import PreTrainedModel

    limit = inspect.signature(PreTrainedModel.save_pretrained).parameters["max_shard_size"].default
    model = [t.numel * 4 for t in FULL.tensors() for _ in range(t.copies)]
    files = len(shards(model, limit=int(limit.removesuffix("GB")) * 10**9))
    found = f"by default save_pretrained cuts at {limit}: TinyLlama-1.1B in fp32 is {files} file"
    return judged(files > 1, found, "missing term", "set max_shard_size; or map the one file")


def low_cpu_mem_usage(claim):
    from_pretrained()  # what is made once, by whoever comes first
    plain, least = from_pretrained()
    same_all, ignored = True, True
    for value in (True, "nonsense"):
        other, peak_ = from_pretrained(low_cpu_mem_usage=value)
        same_all, ignored = same_all and same(plain, other), ignored and peak_ == least
    found = "transformers 5 takes any value of it and " + ("ignores it" if ignored else "uses it")
    right = "nothing: from_pretrained always builds on meta and maps the files"
    return judged(not (same_all and ignored), found, "wrong about an API", right)


def device_map_places(claim):
    """Shards load without a device_map, and a device_map asks for accelerate, which places."""
    plain, _ = from_pretrained()
    cut, _ = from_pretrained("100KB")
    files = len(list(Path(checkpoint("100KB")).glob("model-*.safetensors")))
    without = files > 1 and same(cut, plain)
    from transformers.integrations import accelerate

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError, match="accelerate"):
        patch.setattr(accelerate, "is_accelerate_available", lambda *_: False)
        from_pretrained(device_map="auto")
    found = f"{files} shards load, to the same values, "
    found += "without a device_map" if without else "only with one"
    right = (
        "device_map says where modules go, by accelerate; shards and lazy reading are there anyway"
    )
    return judged(not without, found, "wrong about an API", right)


def the_example(claim):
    plain, _ = from_pretrained()
    half, _ = from_pretrained(dtype=torch.float16)
    as_is, less = (sum(t.nbytes for t in state.values()) for state in (plain, half))
    found = f"a checkpoint in fp32 loads as {as_is:,} B, with dtype=torch.float16 as {less:,} B"
    return judged(as_is <= less, found, "missing term", "a dtype, or a quantization_config")


# 6. Fine-tuning


def lora_trains_little(claim):
    lora = Lora(RANK)
    net = adapt(tiny(), RANK)
    trained = sum(p.numel() for p in net.parameters() if p.requires_grad)
    count = lora.parameter_count(FULL)
    assert trained == lora.parameter_count(TINY)
    found = f"rank {RANK} at q and v: {count:,} of {FULL.parameter_count:,} parameters"
    return judged(count < FULL.parameter_count // 100, found, "wrong model", f"{count:,}")


def lora_is_not_qlora(claim):
    base, small = (step("bf16", lora=Lora(16, base=way)).rows["weights"] for way in (None, "nf4"))
    found = f"frozen base and adapters: LoRA on bf16 {size(base)}, QLoRA on nf4 {size(small)}"
    return judged(base == small, found, "missing term", f"QLoRA: {size(base - small)} less base")


def lora_keeps_the_base(claim):
    full, lora = (step("bf16", 512, lora=each) for each in (None, Lora(RANK)))
    small = float(re.search(r"\d+", claim.claim)[0]) / 100 if "%" in claim.claim else 0.01
    share = lora.peak.bytes / full.peak.bytes
    found = f"bf16 step at 512 tokens: {size(full.peak.bytes)} → {size(lora.peak.bytes)}; base and "
    found += f"activations are {size(lora.rows['weights'] + lora.rows['activations'])} of it"
    return judged(
        share < small, found, "missing term", f"{share:.0%} of the step stays, not under 1%"
    )


MERGED = torch.float32  # what an adapted model is stored in


def lora_at_inference(claim):
    net = tiny()
    before = storage_bytes(list(net.parameters()))
    adapted = storage_bytes(list(adapt(net, 16).parameters()))
    merged = storage_bytes(list(merge(net).to(MERGED).parameters()))
    found = f"small Llama: {before:,} B, with adapters {adapted:,} B, merged {merged:,} B"
    return judged(merged < before, found, "wrong model", "nothing at inference: adapters add bytes")


def gradients_of(pieces):
    net = tiny()
    with Tracker() as tracker:
        tracker.label([net, IDS], "there before")
        for piece in IDS.chunk(pieces):
            (net(piece, piece) / pieces).backward()
    return [p.grad for p in net.parameters()], tracker.peak


def accumulation(claim):
    (whole, tall), (cut, low) = gradients_of(1), gradients_of(4)
    equal = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(whole, cut, strict=True))
    found = f"4 pieces of a batch of 8: peak {tall:,} B → {low:,} B, gradients "
    found += "equal but for rounding" if equal else "different"
    return judged(equal and low < tall, found, "wrong model", f"{low:,} B")


def accumulation_floor(claim):
    held = estimate(FULL, "fp32").total()
    least = simulate(FULL, "fp32", Run.cpu(batch=1, tokens=512, implementation="memlab")).peak.bytes
    found = (
        f"TinyLlama-1.1B in fp32: {size(held)} at rest whatever the batch, {size(least)} at batch 1"
    )
    return judged(held < LAPTOP, found, "missing term", f"{size(held)} stay")


def kept_by_forward(off):
    net = tiny()
    with torch.set_grad_enabled(not off), Saved(exclude=[net, IDS]) as saved:
        loss = net(IDS, IDS)
    return saved.bytes, loss.requires_grad


def no_grad_saves(claim):
    (kept, _), (nothing, _) = kept_by_forward(False), kept_by_forward(True)
    found = f"saved for backward in one forward pass: {kept:,} B, under no_grad {nothing:,} B"
    return judged(nothing == 0 < kept, found, "wrong about an API", f"{nothing:,} B")


def no_grad_gradients(claim):
    net = tiny()
    net(IDS, IDS)
    held = storage_bytes([p.grad for p in net.parameters() if p.grad is not None])
    kept = kept_by_forward(False)[0]
    found = f"forward alone makes {held} B of gradients; no_grad spares {kept:,} B of saved tensors"
    right = "section 1: gradients only in training. What no_grad spares is saved activations"
    return judged(held > 0, found, "contradicts itself", right)


def no_grad_in_training(claim):
    trains = kept_by_forward(True)[1]
    found = "a loss under no_grad " + ("can" if trains else "cannot") + " be trained on"
    right = "in fine-tuning: requires_grad_(False) on what is frozen; no_grad only to evaluate"
    return judged(trains, found, "wrong model", right)


# 7. Monitoring


LARGE, SMALL = 100 * 10**6, 1000  # bytes of what is gone, and of what is alive beside it


def allocated_is_not_all(claim):
    """A small tensor beside a large one that is gone: what is asked, and what the card has lost."""
    allocator = CachingAllocator()
    if LARGE:
        allocator.malloc("large", LARGE)
    allocator.malloc("small", SMALL)
    if LARGE:
        allocator.free("large")
    now, held, highest = allocator.allocated, allocator.reserved, allocator.peak_allocated
    found = f"{SMALL:,} B alive, {size(LARGE)} just freed: allocated {now:,} B, reserved "
    found += f"{size(held)}, highest {size(highest)}"
    right = (
        "living tensors, at this moment: also max_memory_allocated, memory_reserved, the context"
    )
    return judged(now == held == highest, found, "missing term", right)


def memory_tracker(claim):
    name = re.search(r"accelerate\.\w+", claim.claim)[0]
    found = f"accelerate {version('accelerate')} has {'a' if find_spec(name) else 'no'} {name}"
    right = "accelerate.utils.memory; a TrainerMemoryTracker is in transformers.trainer_utils"
    return judged(find_spec(name), found, "wrong about an API", right)


def one_unit(claim):
    """The note divides by 1e6; nvidia-smi prints MiB."""
    found = MiB / float(re.search(r"/ ?(\d[\de]*)", claim.claim)[1])
    result = f"one MiB of nvidia-smi is {found:.4f} of the line's MB"
    return judged(found == 1, result, "unit slip", "divide by 2**20 to compare")


def on_a_cpu(claim):
    before = torch.cuda.memory_allocated()
    net = tiny()
    said = torch.cuda.memory_allocated() - before
    found = f"a model of {storage_bytes(net):,} B on the CPU: memory_allocated adds {said / 1e6} MB"
    right = "it counts CUDA tensors; on a CPU ask the system for the process's memory"
    return judged(said > 0, found, "wrong about an API", right)


PROFILED = True


def profiler(claim):
    with torch.profiler.profile(profile_memory=PROFILED) as profile:
        torch.ones(1000)
    most = max(event.self_cpu_memory_usage for event in profile.key_averages())
    found = f"profile_memory={PROFILED} sees {most:,} B of a tensor of 4,000 B"
    return judged(most >= 4000, found, "wrong about an API", "no memory column")


# What it comes to


def runs_on_a_notebook(claim):
    held = decode(FULL, batch=1, tokens=2047, format="fp16")
    small = held.total() - held["weights"].derived + weights("int4/128:fp16")
    found = f"answering with int4 layers, 2,048 tokens: {size(small)}, in fp16 {size(held.total())}"
    return judged(small < LAPTOP // 4, found, "wrong model", size(small))
