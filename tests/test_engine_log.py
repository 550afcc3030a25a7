"""Start-up logs of vLLM and SGLang: read in every wording, refused by nobody's bytes.

The logs are written here, in the engines' own format strings; figures that threads posted stand
with their address in test_engines.py and are asked again through `memlab explain` below.
"""

import json
import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.cli import main
from memlab.cli.schema import schema
from memlab.files.engine_lines import MOMENTS
from memlab.files.engine_log import ENDS, NAMES, read
from memlab.units import GiB

GB = round(GiB / 100)  # of figures with two decimals, the unit of the last one
LENGTH = (
    "ValueError: To serve at least one request with the model{s} max seq len (131072), {paren}12.00"
    " GiB KV cache is needed, which is larger than the available KV cache memory (8.69 GiB). Based "
    "on the available memory, the estimated maximum model length is 94912. Try increasing "
    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a total "
OOM += "capacity of 23.53 GiB of which 361.00 MiB is free."
# A wording of some version: its lines, what is read of them (sizes in hundredths of GiB).
CORPUS = {
    "vllm 0.6.3": (
        "INFO 11-27 02:01:37 api_server.py:585] vLLM API server version 0.6.3.post1\n"
        "INFO 11-27 02:01:37 api_server.py:586] args: Namespace(model_tag='org/model', "
        "gpu_memory_utilization=0.9, max_model_len=None, max_num_seqs=256, dtype='auto')\n"
        "INFO 11-27 02:01:39 model_runner.py:1077] Loading model weights took 2.0500 GB\n"
        "INFO 11-27 02:01:40 worker.py:232] Memory profiling results: total_gpu_memory=139.80GiB "
        "initial_memory_usage=2.71GiB peak_torch_memory=2.38GiB memory_usage_post_profile=2.81Gib "
        "non_torch_memory=0.73GiB kv_cache_size=122.71GiB gpu_memory_utilization=0.90\n"
        "INFO 11-27 02:01:41 gpu_executor.py:113] # GPU blocks: 365549, # CPU blocks: 11915\n"
        "INFO 11-27 02:01:41 gpu_executor.py:117] Maximum concurrency for 2048 tokens per request: "
        "2855.85x\n"
        "INFO 11-27 02:01:49 model_runner.py:1518] Graph capturing finished in 8 secs, took 0.23 "
        "GiB",
        {"weights": 205, "activations": 33, "non_torch": 73, "available": 12271, "graphs": 23},
        {"blocks": 365549, "concurrency": 2855.85, "longest": 2048, "version": "0.6.3.post1"}
        | {"v0": True, "decimal": True, "seqs": 256, "utilization": 0.9, "model": "org/model"},
    ),
    "vllm 0.7, two ranks": (
        "INFO 12-20 20:25:40 llm_engine.py:234] Initializing a V0 LLM engine (v0.7.3) with config: "
        "model='org/model', dtype=torch.float16, max_seq_len=40000, tensor_parallel_size=2, "
        "quantization=awq, enforce_eager=False, kv_cache_dtype=fp8, \n"
        "(VllmWorkerProcess pid=90) INFO 12-20 20:25:46 worker.py:267] model weights take 9.99GiB; "
        "non_torch_memory takes 9.99GiB; PyTorch activation peak memory takes 9.99GiB; the rest of "
        "the memory reserved for KV Cache is 9.99GiB.\n"
        "INFO 12-20 20:25:46 worker.py:267] Memory profiling takes 19.77 seconds\n"
        "INFO 12-20 20:25:46 worker.py:267] the current vLLM instance can use total_gpu_memory "
        "(15.77GiB) x gpu_memory_utilization (0.90) = 14.20GiB\n"
        "INFO 12-20 20:25:46 worker.py:267] model weights take 7.51GiB; non_torch_memory takes "
        "0.39GiB; PyTorch activation peak memory takes 2.53GiB; the rest of "
        "the memory reserved for "
        "KV Cache is 3.76GiB.\n"
        "INFO 12-20 20:25:46 executor_base.py:111] # cuda blocks: 3852, # CPU blocks: 4096\n"
        "ValueError: The model's max seq len (40000) is larger than the maximum number of tokens "
        "that can be stored in KV cache (24480). Try increasing `gpu_memory_utilization`",
        {"total": 1577, "share": 1420, "weights": 751, "activations": 253, "available": 376},
        {"blocks": 3852, "v0": True, "dtype": "fp16", "quantization": "awq", "kv_dtype": "fp8"}
        | {"tensor": 2, "max_model_len": 40000, "refused": "length", "ranks": 2, "tokens": 24480},
    ),
    "vllm 0.8": (
        "(VllmWorker rank=1 pid=9) INFO 04-15 13:36:48 [gpu_model_runner.py:1276] Model loading "
        "took 13.95 GiB and 12.2 seconds\n"
        "(VllmWorker rank=0 pid=8) INFO 04-15 13:36:48 [gpu_model_runner.py:1276] Model loading "
        "took 13.90 GiB and 12.1 seconds\n" + LENGTH.format(s="s's", paren="("),
        {"weights": 1395, "needed": 1200, "available": 869},
        {"rank": 1, "ranks": 2, "estimated": 94912, "refused": "length", "version": None}
        | {"max_model_len": 131072},
    ),
    "vllm 0.11": (
        "(EngineCore_DP0 pid=2) DEBUG 09-28 21:12:43 [v1/worker/gpu_worker.py:284] Initial free "
        "memory: 23.08 GiB; Requested memory: 0.80 (util), 18.82 GiB\n"
        "(EngineCore_DP0 pid=2) DEBUG 09-28 21:12:43 "
        "[v1/worker/gpu_worker.py:297] Memory profiling "
        "takes 14.40 seconds. Total non KV cache memory: 10.22GiB; torch peak memory increase: "
        "1.40GiB; non-torch forward increase memory: 0.02GiB; weights memory: 8.80GiB.\n"
        "(EngineCore_DP0 pid=2) INFO 09-28 21:12:43 [gpu_worker.py:298] Available KV cache memory: "
        "8.60 GiB\n"
        "(EngineCore_DP0 pid=2) INFO 09-28 21:12:44 [kv_cache_utils.py:864] GPU KV cache size: "
        "62,608 tokens\n"
        "(EngineCore_DP0 pid=2) INFO 09-28 21:12:44 [kv_cache_utils.py:868] "
        "Maximum concurrency for "
        "1,024 tokens per request: 61.14x\n" + OOM + "\nRuntimeError: CUDA out of memory occurred "
        "when warming up sampler with 256 dummy requests. Please try lowering `max_num_seqs`",
        {"share": 1882, "activations": 140, "non_torch": 2, "weights": 880, "available": 860},
        {"tokens": 62608, "longest": 1024, "concurrency": 61.14, "refused": "sampler", "seqs": 256}
        | {"utilization": 0.8, "asked": 594 * 2**20, "free": 361 * 2**20},
    ),
    "vllm 0.21": (
        "(APIServer pid=1) INFO 07-12 02:34:00 [api_utils.py:339] vLLM API server version 0.21.0\n"
        "(APIServer pid=1) INFO 07-12 02:34:00 [utils.py:233] non-default args: {'model_tag': "
        "'org/model', 'gpu_memory_utilization': 0.95, 'tensor_parallel_size': 2, "
        "'max_num_batched_tokens': 4096, 'block_size': 32}\n"
        "(Worker_TP0_EP0 pid=5) INFO 07-12 02:35:26 [gpu_model_runner.py:6639] "
        "Estimated CUDA graph "
        "memory: 1.58 GiB total\n"
        "(Worker_TP0_EP0 pid=5) INFO 07-12 02:35:26 [gpu_worker.py:538] Available KV cache memory: "
        "10.29 GiB\n"
        "(Worker_TP1_EP1 pid=6) INFO 07-12 02:35:26 [gpu_worker.py:538] Available KV cache memory: "
        "10.41 GiB\n"
        "(Worker_TP0_EP0 pid=5) INFO 07-12 02:35:29 [gpu_worker.py:793] CUDA graph pool memory: "
        "1.33 GiB (actual), 1.58 GiB (estimated), difference: 0.25 GiB (18.8%).\n"
        "(Worker_TP0_EP0 pid=5) INFO 07-12 02:35:30 [gpu_worker.py:857] Free memory on device "
        "(78.84/79.25 GiB) on startup. Desired GPU memory utilization is (0.95, 75.29 GiB). Actual "
        "usage is 60.69 GiB for weight, 2.31 GiB for peak activation, 0.95 GiB for non-torch "
        "memory, and 1.33 GiB for CUDAGraph memory.",
        {"reserved_graphs": 158, "graphs": 133, "weights": 6069, "activations": 231}
        | {"non_torch": 95, "total": 7925, "share": 7529, "unused": 7884, "available": 1029},
        {"version": "0.21.0", "rank": 0, "ranks": 2, "batched": 4096, "block_size": 32, "tensor": 2}
        | {"v0": False, "refused": None, "decimal": False},
    ),
    "vllm after 0.25": (
        "vllm serve org/model --max-model-len 8192 --gpu-memory-utilization=0.92 -tp 4\n"
        "(EngineCore pid=3) DEBUG Memory profiling takes 31.20 seconds. Total non KV cache memory: "
        "63.53GiB; torch peak memory increase: 2.04GiB; total consumed (from mem_get_info): "
        "61.49GiB; weights memory: 55.87GiB.\n"
        "(EngineCore pid=3) INFO [kv_cache_utils.py:2464] GPU KV cache size: "
        "460,496 tokens, Maximum "
        "concurrency for 8,192 tokens per request: 56.21x\n"
        "(EngineCore pid=3) INFO [gpu_worker.py:955] Free memory on device (78.84/79.25 GiB) on "
        "startup. Desired GPU memory utilization is (0.92, 72.91 GiB). Actual usage is 61.49 GiB "
        "for consumed memory (weights + non-torch), 2.04 GiB for peak activation, and 0.23 GiB for "
        "CUDAGraph memory.",
        {"consumed": 6149, "weights": 5587, "activations": 204, "non_torch": 562, "graphs": 23},
        {"tokens": 460496, "concurrency": 56.21, "tensor": 4, "max_model_len": 8192}
        | {"utilization": 0.92, "model": "org/model"},
    ),
    "vllm, the card is taken": (
        "ValueError: Free memory on device cuda:0 (5.01/23.52 GiB) on startup is less than desired "
        "GPU memory utilization (0.9, 21.17 GiB). Decrease GPU memory utilization or reduce GPU "
        "memory used by other processes.",
        {"unused": 501, "total": 2352, "share": 2117},
        {"refused": "start", "utilization": 0.9},
    ),
    "vllm, no blocks": (
        "INFO [gpu_worker.py:538] Available KV cache memory: -0.41 GiB\nValueError: No available "
        "memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing",
        {"available": -41},
        {"refused": "cache"},
    ),
    "vllm, in the weights": (
        'File "/x/site-packages/vllm/v1/worker/gpu_worker.py", line 213, in load_model\n' + OOM,
        {},
        {"engine": "vllm", "refused": "weights"},
    ),
    "vllm, in the profile run": (
        'Model loading took 15.0 GiB memory and 5.4 seconds\nFile "/x/vllm/v1/worker/a.py", line 2,'
        " in profile_run\n" + OOM,
        {"weights": 1500},
        {"refused": "profile"},
    ),
    "sglang 0.4": (
        "[2025-03-25 16:36:59] server_args=ServerArgs(model_path='org/model', "
        "mem_fraction_static=0.88, tp_size=1, context_length=None, "
        "quantization=None, dtype='auto')\n"
        "[2025-03-25 16:37:00 TP0] Load weight begin. avail mem=78.59 GB\n"
        "[2025-03-25 16:37:06 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, "
        "avail mem=63.48 GB, mem usage=15.11 GB.\n"
        "[2025-03-25 16:37:06 TP0] KV Cache is allocated. #tokens: 442750, K "
        "size: 27.02 GB, V size: "
        "27.02 GB\n"
        "[2025-03-25 16:37:06 TP0] Memory pool end. avail mem=8.90 GB\n"
        "[2025-03-25 16:37:16 TP0] Capture cuda graph end. Time elapsed: 9.61 "
        "s. mem usage=1.93 GB. "
        "avail mem=6.97 GB.\n"
        "[2025-03-25 16:37:17 TP0] max_total_num_tokens=442750, chunked_prefill_size=8192, "
        "max_prefill_tokens=16384, max_running_requests=2048, context_len=131072, "
        "available_gpu_mem=6.97 GB",
        {"before": 7859, "weights": 1511, "available": 5404, "graphs": 193},
        {"engine": "sglang", "tokens": 442750, "longest": 131072, "utilization": 0.88, "tensor": 1}
        | {"decimal": True, "refused": None, "model": "org/model"},
    ),
    "sglang 0.3": (
        "[01:39:40] Load weight begin. avail mem=78.81 GB\n"
        "[01:39:42] Load weight end. type=LlamaForCausalLM, "
        "dtype=torch.bfloat16, avail mem=63.70 GB\n"
        "[01:39:43] KV Cache is allocated. dtype: torch.bfloat16, #tokens: "
        "20480, KV size: 1.25 GB\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current "
        "value: mem_fraction_static=0.25",
        {"weights": 1511, "available": 125},
        {"engine": "sglang", "tokens": 20480, "refused": "cache", "utilization": 0.25},
    ),
    "sglang, decoding": (
        "[2025-03-25 17:00:00 TP1] Load weight end. type=X, avail mem=1.00 GB, mem usage=2.00 GB.\n"
        "[2025-03-25 17:00:00 TP1] Decode out of memory. Try to lower your batch size.",
        {"weights": 200},
        {"engine": "sglang", "refused": "running", "rank": 1},
    ),
}


def told(log):
    """Everything that a log says, under one name each."""
    named = {name: getattr(log, name) for name in ("engine", "version", "v0", "rank", "ranks")}
    named |= {name: getattr(log, name) for name in ("model", "decimal", "refused")}
    return log.options | log.figures | named


def check(log, sizes, others):
    for name, hundredths in sizes.items():
        close = pytest.approx(hundredths * GiB / 100, abs=GB / 100)
        assert log.figures[name] == close, name
    for name, value in others.items():
        assert told(log)[name] == value, name


@pytest.mark.parametrize("name", CORPUS)
def test_each_wording_is_read(name):
    text, sizes, others = CORPUS[name]
    log = read(text)
    assert log.engine == others.get("engine", "vllm")
    check(log, sizes, others)
    assert log.refused in (None, *MOMENTS) and set(log.options) <= {*NAMES.values()}


def colours(line):
    return f"\x1b[1;36m{line[: len(line) // 3]}\x1b[0;0m{line[len(line) // 3 :]}\x1b[K"


AROUND = {
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "of a container": lambda text: "".join(
        f"2026-04-19T12:09:31.717Z server-0 | {line}\r\n" for line in text.splitlines()
    ),
    "coloured": lambda text: "\n".join(map(colours, text.splitlines())),
    "among others": lambda text: "# What I did\nI ran it on my GPU of 24 GB.\n" + text + "\nHelp!",
    "translated around": lambda text: "今回のログ：\n" + text + "\nо памяти не хватает",
    "twice": lambda text: text + "\n" + text,
}


@pytest.mark.parametrize("how", AROUND)
@pytest.mark.parametrize("name", CORPUS)
def test_what_stands_around_it_changes_nothing(name, how):
    text, sizes, others = CORPUS[name]
    check(read(AROUND[how](text)), sizes, others)


def test_a_long_log_is_read_at_both_ends():
    text, sizes, others = CORPUS["vllm 0.11"]
    first, _, last = text.partition("torch.OutOfMemoryError")
    log = read(first + "INFO: 200 OK\n" * (ENDS // 5) + "torch.OutOfMemoryError" + last)
    check(log, sizes, others)


def test_a_message_that_a_terminal_broke_is_read():
    text = (
        LENGTH.format(s="'s", paren="")
        .replace(" GiB KV", "\nGiB KV")
        .replace("is larger", "is\n larger")
    )
    log = read(text)
    assert log.refused == "length" and log.figures["needed"] == 12 * GiB


def test_of_two_start_ups_the_last_is_told():
    first, second = CORPUS["vllm 0.6.3"][0], CORPUS["vllm 0.21"][0]
    assert read(first + "\n" + second).version == "0.21.0"
    assert read(second + "\n" + first).version == "0.6.3.post1"
    assert read(first + "\nvLLM API server version 0.9.0\n").version == "0.6.3.post1"


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello", "80 GiB", OOM, "\x00" * 99, "set gpu_memory_utilization=0.9"),
        "Model loading took a while",
        "Maximum concurrency for many tokens",
        "the user model weights take some GiB",
    ],
)
def test_a_text_without_a_line_of_theirs_is_none(text):
    assert read(text) is None


@pytest.mark.parametrize(
    "piece",
    [
        *("Load weight end.", "KV Cache is allocated.", "Free memory on device", "max seq len ("),
        *("Model loading took 1", "KV cache size: 1,", "KV cache size: 1 tokens ", "TP1" * 3),
        *(
            "vLLM API server version 0.6.4 ",
            "server_args=ServerArgs(",
            "\x1b[",
            "dtype= ",
            "--" * 9,
        ),
        *("'gpu_memory_utilization", "model='", "model weights take 1GiB; ", "1" * 99, " \n"),
        *("out of memory. Tried to allocate 1 MiB ", "vllm/v", "(VllmWorkerProcess pid=1) "),
    ],
)
def test_no_text_makes_it_slow(piece):
    begin = time.process_time()
    read(piece * (2 * ENDS // len(piece)))
    assert time.process_time() - begin < 20  # on a slow, shared machine; quadratic would be hours


PIECES = [line for text, *_ in CORPUS.values() for line in text.splitlines()]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_cut_doubled_and_foreign_text_is_read_or_is_none(data):
    lines = data.draw(st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=8))
    text = data.draw(st.sampled_from(["\n", "\r\n", " ", ""])).join(lines)
    for _ in range(data.draw(st.integers(0, 3))):
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        put = data.draw(st.text(max_size=9) | st.just(2 * text[first:last]) | st.just(""))
        text = text[:first] + put + text[min(last, first + 9) :]
    log = read(text)
    if log is not None:
        assert log.engine in ("vllm", "sglang") and log.refused in (None, *MOMENTS)
        assert set(log.figures) == set(log.rounding)
        assert all(isinstance(value, (int, float)) for value in log.figures.values())
        assert log.rank >= 0 and log.ranks >= 1


def shell(capsys, *words):
    try:
        status = main(["explain", *words])
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    return status, out or err


def answered(capsys, tmp_path, text, *words):
    """The answer for programs, by row."""
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    status, said = shell(capsys, *words, "--seen", str(path), "--json")
    found = json.loads(said)
    jsonschema.validate(found, schema("explain --engine"))
    return status, found, {row["term"]: row for row in found["rows"]}


PARTS = ("weights", "activations", "other", "kv_cache")  # of the share


def log_v0(
    weights, other, step, left, blocks, tokens, concurrency, total="23.58", utilization="0.90"
):
    share = float(total) * float(utilization)
    return (
        f"INFO worker.py:241] the current vLLM instance can use total_gpu_memory ({total}GiB) x "
        f"gpu_memory_utilization ({utilization}) = {share:.2f}GiB\n"
        f"INFO worker.py:241] model weights take {weights}GiB; non_torch_memory takes {other}GiB; "
        f"PyTorch activation peak memory takes {step}GiB; the rest of the memory reserved for KV "
        f"Cache is {left}GiB.\nINFO # GPU blocks: {blocks}, # CPU blocks: 4096\n"
        f"INFO Maximum concurrency for {tokens} tokens per request: {concurrency}x\n"
    )


def test_posted_readings_differ_here_as_they_do_in_the_tests_of_the_engines(capsys, tmp_path):
    # vllm issues/10517: in test_engines.POSTED it comes out to the last digit, blocks to 2.
    text = log_v0("14.99", "0.35", "2.07", "3.81", 1952, 20000, "1.56")
    status, found, rows = answered(
        capsys, tmp_path, text, "llama-3.1-8b", "--non-torch", "0.35 GiB"
    )
    assert status == 0 and found["refused"] is None and found["device"] == "23.58 GiB"
    for term in ("weights", "activations", "other", "kv_cache", "concurrency"):
        assert abs(rows[term]["derived"] - rows[term]["logged"]) <= rows[term]["rounding"], term
        assert rows[term]["why"] == ""
    assert abs(rows["blocks"]["derived"] - 1952) <= 2
    # vllm pull/10511, Llama-3-8B on an H100: 14.96, 1.26, and 1.79 outside PyTorch.
    text = log_v0("14.96", "1.79", "1.26", "53.29", 27284, 8192, "53.29", total="79.22")
    _, found, rows = answered(capsys, tmp_path, text, "llama-3-8b", "--on", "79.22 GiB")
    for term, close in (("weights", 0.01), ("activations", 0.03)):
        assert abs(rows[term]["derived"] - rows[term]["logged"]) <= close * GiB
    assert rows["kv_cache"]["why"] == "what the rows above leave of the share"
    assert "--non-torch says yours" in rows["other"]["why"]
    assert rows["blocks"]["why"] == "the log's own bytes make it"


def test_the_share_that_a_log_does_not_print_is_its_version_s_default(capsys, tmp_path):
    words, found = ("llama-3.1-8b", "--on", "80 GiB"), {}
    for version in ("0.12.0", "0.21.0"):
        text = f"vLLM API server version {version}\nAvailable KV cache memory: 54.00 GiB\n"
        _, _, rows = answered(capsys, tmp_path, text, *words)
        found[version] = sum(rows[term]["derived"] for term in PARTS)
    assert found == {"0.12.0": int(0.9 * 80 * GiB), "0.21.0": int(0.92 * 80 * GiB)}


def test_a_pool_that_no_row_accounts_for_is_named(capsys, tmp_path):
    # sglang pull/18263: a workspace of 51.75 GB that the log has no line about.
    text = (
        "server_args=ServerArgs(mem_fraction_static=0.911)\n"
        "[2026-01-01 00:00:05] Load weight begin. avail mem=287.18 GB\n"
        "[2026-01-01 00:00:06] Load weight end. type=X, avail mem=230.20 GB, mem usage=56.98 GB.\n"
        "[2026-01-01 00:00:07] KV Cache is allocated. #tokens: 1669816, K size: 76.44 GB, V size: "
        "76.44 GB\n"
    )
    _, _, rows = answered(capsys, tmp_path, text, "qwen3-30b-a3b")
    assert rows["kv_cache"]["why"].startswith("no row of the log says where 51.7")
    assert rows["tokens"]["why"] == "the log's own bytes make it"
    status, said = shell(capsys, "qwen3-30b-a3b", "--engine", "vllm", "--seen", text)
    assert status == 2 and "--engine vllm: the log is of sglang" in said


def test_other_weights_are_found_by_their_format(capsys, tmp_path):
    text = "Model loading took 28.5 GiB and 3.1 seconds\nAvailable KV cache memory: -11.00 GiB\n"
    words = ("qwen2.5-7b", "--on", "24 GB")
    _, _, rows = answered(capsys, tmp_path, text, *words, "--max-model-len", "512")
    assert rows["weights"]["why"].startswith("--precision fp32: 28.")
    text = text.replace("28.5", "3.33").replace("-11", "10")
    _, _, rows = answered(capsys, tmp_path, text, *words)
    assert rows["weights"]["why"] == "another model, format or number of ranks than was said"


def test_the_first_step_is_found_by_its_sampler_and_limits(capsys, tmp_path):
    text = log_v0("14.99", "0.35", "2.07", "3.81", 1952, 20000, "1.56")
    words = ("llama-3.1-8b", "--max-num-seqs", "128", "--max-num-batched-tokens", "2048")
    _, found, rows = answered(capsys, tmp_path, text, *words)
    assert rows["activations"]["why"] == ""  # both were said, and nothing else makes it
    text = (
        "vLLM API server version 0.12.0\nActual usage is 14.99 GiB for weight, 1.52 GiB for peak "
    )
    text += "activation, 0.30 GiB for non-torch memory, and 0.10 GiB for CUDAGraph memory.\n"
    _, found, rows = answered(capsys, tmp_path, text, "llama-3.1-8b", "--on", "RTX 3090")
    assert any("torch.sort" in note for note in found["notes"])
    assert any("0.12.0; before 0.21" in note for note in found["notes"])


# What was refused, how it was started, and what would do: flags and the least of each.
REFUSED = [
    (
        "Model loading took 13.95 GiB and 3.0 seconds\n" + LENGTH.format(s="s's", paren="("),
        ("qwen2.5-14b", "--on", "23.55 GiB", "--tensor-parallel", "2")
        + ("--gpu-memory-utilization", "0.98"),
        {"--max-model-len": "94912", "--kv-cache-dtype": "fp8", "--tensor-parallel-size": "4"},
        {"--gpu-memory-utilization", "--max-num-seqs"},
        "The pool does not hold",
    ),
    (
        "Model loading took 14.25 GiB and 3.0 seconds\nAvailable KV cache memory: 4.80 GiB\n"
        + OOM
        + "\nRuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy "
        "requests.",
        ("qwen3-30b-a3b", "--on", "23.53 GiB", "--tensor-parallel", "4"),
        {"--gpu-memory-utilization": "0.91", "--max-num-seqs": "128"},
        set(),
        "594 MiB were asked, 361 MiB were free",
    ),
    (
        CORPUS["vllm, the card is taken"][0].replace("5.01", "20.00"),
        ("llama-3.2-1b",),
        {"--gpu-memory-utilization": "0.85"},
        set(),
        "20 GiB of 23.52 GiB were free, the share is 21.17 GiB",
    ),
    (
        CORPUS["vllm, in the weights"][0],
        ("llama-3.1-8b", "--on", "RTX 3060", "--max-model-len", "4096"),
        {"--tensor-parallel-size": "2"},
        set(),
        "while the weights were loaded",
    ),
    (
        "server_args=ServerArgs(mem_fraction_static=0.15)\nLoad weight begin. avail mem=78.00 GB\n"
        "Not enough memory. Please try to increase --mem-fraction-static.",
        ("llama-3.1-8b", "--max-model-len", "8192"),
        {"--mem-fraction-static": "0.21", "--tp-size": "2"},
        set(),
        "leave no room for the cache",
    ),
]


@pytest.mark.parametrize(("text", "words", "flags", "not_", "said"), REFUSED)
def test_a_refusal_is_told_with_what_would_do(capsys, tmp_path, text, words, flags, not_, said):
    status, found, _ = answered(
        capsys, tmp_path, text, *words, *(() if "ServerArgs" in text else ("--engine", "vllm"))
    )
    made = {each["flag"]: each["value"] for each in found["remedies"]}
    assert status == 1 and said in found["refused"]
    assert flags.items() <= made.items() and not_ <= set(found["useless"])
    status, told = shell(capsys, *words, "--seen", text)
    assert status == 1 and "what would make it start, each alone" in told


def test_a_figure_of_serving_is_answered_by_the_share(capsys):
    words = ("llama-3.1-8b", "--engine", "vllm", "--on", "RTX 4090", "--max-model-len", "8192")
    status, said = shell(capsys, *words, "--seen", "23.53 GiB")
    assert status == 0 and "--gpu-memory-utilization 0.92 takes 21.75 GiB of 23.64 GiB" in said
    assert "the CUDA context and CUDA graphs lie beyond it" in said
    assert "--gpu-memory-utilization 0.72 would hold one request of 8,192 tokens" in said
    assert "tied" not in said and "SGD" not in said
    status, said = shell(capsys, *words[:5], "--seen", "3 GiB")
    assert status == 0 and "holds one of" in said and "less than this share" in said


def test_the_shell_refuses_what_it_does_not_read(capsys):
    for words, said in (
        (("--seen", "hello", "--on", "H100"), "hello: no line about memory"),
        (("--seen", "20 GiB"), "--seen 20 GiB: on which card? --on CARD"),
        (("--seen", "Available KV cache memory: 8 GiB"), "how large the card is: --on CARD"),
        (("--seen", "20 GiB", "--on", "H100", "--batch", "4"), "--batch 4: nothing in this"),
        (("--seen", "x" * 99, "--on", "H100"), "x" * 40 + " ...: no line"),
    ):
        status, heard = shell(capsys, "llama-3-8b", "--engine", "vllm", *words)
        assert status == 2 and said in heard
