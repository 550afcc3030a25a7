"""The lines about memory that vLLM and SGLang print when they start: their wordings, as data.

A place is {name:kind}: `size` (a number and its unit), `count` (1,381), `real` (10.79); {} is what
else stands on the line. A blank is any white space, for whoever pastes a line may have broken it.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from re import Pattern

# Every part has a bound, so that no text makes a search slow.
BLANK = r"\s{1,40}"
KINDS = {
    "size": r"(?P<{name}>-?\d[\d,]{{0,15}}(?:\.\d{{1,6}})?)"
    r"\s{{0,4}}(?P<{name}_unit>[KMGT]i?[Bb])\b",
    "count": r"(?P<{name}>\d[\d,]{{0,18}})",
    "real": r"(?P<{name}>\d{{1,15}}(?:\.\d{{1,6}})?)",
    "": r"[^\n]{{0,300}}?",
}
PLACE = re.compile(r"\{(\w*):?(\w*)\}")


def pattern(form: str) -> Pattern[str]:
    """What finds a line of this form in a text."""
    parts, end = [], 0
    for place in PLACE.finditer(form):
        parts.append(re.escape(form[end : place.start()]).replace(r"\ ", BLANK))
        parts.append(KINDS[place[2]].format(name=place[1]))
        end = place.end()
    return re.compile("".join([*parts, re.escape(form[end:]).replace(r"\ ", BLANK)]))


# Sources: vLLM, worker/worker.py and worker/model_runner.py (V0), v1/worker/gpu_worker.py,
# v1/worker/gpu_model_runner.py, v1/core/kv_cache_utils.py, utils/mem_utils.py; SGLang,
# model_executor/model_runner.py, mem_cache/memory_pool.py, managers/scheduler.py. By engine and by
# what is said of whom: V0 was vLLM's engine to 0.7, and to 0.9 for some models.
V0 = (
    "total_gpu_memory ({total:size}) x gpu_memory_utilization ({utilization:real}) = {share:size}",
    "model weights take {weights:size}; non_torch_memory takes {non_torch:size}; PyTorch "
    "activation peak memory takes {activations:size}; the rest of the memory reserved for KV Cache "
    "is {available:size}",
    "total_gpu_memory={total:size} initial_memory_usage={initial:size} "
    "peak_torch_memory={torch:size} memory_usage_post_profile={after:size} "
    "non_torch_memory={non_torch:size} kv_cache_size={available:size} "
    "gpu_memory_utilization={utilization:real}",
    "max seq len ({longest:count}) is larger than the maximum number of tokens that can be stored "
    "in KV cache ({tokens:count})",
)
VLLM = (
    "Model loading took {weights:size}",
    "Loading model weights took {weights:size}",
    "Total non KV cache memory: {taken:size}; torch peak memory increase: {activations:size}; "
    "non-torch forward increase memory: {non_torch:size}; weights memory: {weights:size}",
    "torch peak memory increase: {activations:size}; total consumed (from mem_get_info): "
    "{consumed:size}; weights memory: {weights:size}",
    "Requested memory: {utilization:real} (util), {share:size}",
    "Free memory on device{}({unused:real}/{total:size}) on startup",
    "GPU memory utilization is ({utilization:real}, {share:size})",
    "GPU memory utilization ({utilization:real}, {share:size})",
    "Actual usage is {weights:size} for weight, {activations:size} for peak activation, "
    "{non_torch:size} for non-torch memory, and {graphs:size} for CUDAGraph memory",
    "Actual usage is {consumed:size} for consumed memory (weights + non-torch), "
    "{activations:size} for peak activation, and {graphs:size} for CUDAGraph memory",
    "Available KV cache memory: {available:size}",
    "# GPU blocks: {blocks:count}",
    "# cuda blocks: {blocks:count}",
    "KV cache size: {tokens:count} tokens",
    "Maximum concurrency for {longest:count} tokens per request: {concurrency:real}x",
    "Estimated CUDA graph memory: {reserved_graphs:size}",
    "CUDA graph pool memory: {graphs:size} (actual)",
    "Graph capturing finished in {seconds:real} secs, took {graphs:size}",
    "warming up sampler with {seqs:count} dummy requests",
    "max seq len ({longest:count}), {}{needed:size} KV cache is needed, which is larger than the "
    "available KV cache memory ({available:size})",
    "the estimated maximum model length is {estimated:count}",
)
SGLANG = (
    "Load weight begin. avail mem={before:size}",
    "Load weight end.{}avail mem={left:size}",
    "Load weight end.{}mem usage={weights:size}",
    "KV Cache is allocated.{}#tokens: {tokens:count}, K size: {keys:size}, V size: {values:size}",
    "KV Cache is allocated.{}#tokens: {tokens:count}, KV size: {available:size}",
    "Memory pool end. avail mem={after:size}",
    "max_total_num_tokens={tokens:count}",
    "context_len={longest:count}",
    "Capture cuda graph end.{}mem usage={graphs:size}",
    "Current value: mem_fraction_static={utilization:real}",
)
TORCH = (  # of both: PyTorch's own message
    "out of memory. Tried to allocate {asked:size}",
    "of which {free:size} is free",
)
FORMS = {
    engine: tuple(pattern(form) for form in forms)
    for engine, forms in (("vllm", V0 + VLLM), ("sglang", SGLANG), ("", TORCH))
}
OLD = FORMS["vllm"][: len(V0)]
# What is refused, and what was being done: one of MOMENTS. PyTorch's message does not say it.
REFUSALS = tuple(
    (engine, moment, pattern(form))
    for engine, moment, form in (
        ("vllm", "start", "on startup is less than desired GPU memory utilization"),
        ("vllm", "sampler", "out of memory occurred when warming up sampler"),
        ("vllm", "length", "KV cache is needed, which is larger than the available KV cache"),
        ("vllm", "length", "is larger than the maximum number of tokens that can be stored in KV"),
        ("vllm", "cache", "No available memory for the cache blocks"),
        ("sglang", "cache", "Not enough memory. Please try to increase --mem-fraction-static"),
        ("sglang", "graphs", "Capture cuda graph failed"),
        ("sglang", "graphs", "Capture CUDA graph failed"),
        ("sglang", "running", "Prefill out of memory"),
        ("sglang", "running", "Decode out of memory"),
        ("", "", "out of memory. Tried to allocate"),
    )
)
# Functions of a traceback, the innermost first: what was being done.
FRAMES = (
    ("_dummy_sampler_run", "sampler"),
    ("capture_model", "graphs"),
    ("init_cuda_graphs", "graphs"),
    ("init_device_graphs", "graphs"),
    ("initialize_kv_cache", "cache"),
    ("initialize_cache", "cache"),
    ("init_memory_pool", "cache"),
    ("profile_run", "profile"),
    ("load_model", "weights"),
)
MOMENTS = ("start", "weights", "profile", "sampler", "cache", "length", "graphs", "running")
# Which figures show that a moment is over, the last one first.
PASSED: tuple[tuple[str, str], ...] = (("graphs", "running"), ("tokens", "graphs"))
PASSED += (("available", "cache"), ("weights", "profile"))
