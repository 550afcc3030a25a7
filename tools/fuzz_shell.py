"""Questions that nobody would ask, asked of the command line: odd configs, odd flags, both.

Each runs through memlab.cli.main in a process of its own that may take 10 seconds of a processor
and 1 GiB more memory than it began with. It must end in status 0, 1 or 2; a refusal is one line (or
argparse's usage), an answer is printable, and what --json prints is JSON. All else is a finding.

A long file: it holds the values of every flag.
"""

import contextlib
import io
import json
import os
import random
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from importlib import import_module

from fuzz_files import CONFIG, ODD

from memlab.cli import COMMANDS, main
from memlab.model import presets
from memlab.model.config import KEYS

SECONDS, BYTES = 10, 2**30
PATIENCE = 120  # seconds of a clock, after which a child that uses no processor is lost


class Late(BaseException):
    """The time is up: nothing between here and the fuzzer may catch it."""


# Every family finds its own keys in it; the others are as if a config had been edited by hand.
SHAPE = CONFIG | {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 256, "ffn_dim": 128}
SHAPE |= {"word_embed_proj_dim": 128, "rotary_pct": 0.25, "head_dim": 32, "sliding_window": 64}
LARGE = [1000, 1001, 10**5, 10**9, 10**12, 10**30, 2**63]
ADAPTER = "adapter_config.json"  # made anew for each question
EVIL = ["\x1b[2J\x07", "\u202e", "../../etc/passwd", "a" * 5000, {"rope_type": 7}, "inf", [[[]]]]

Values = list[str | None]  # of a flag; None: the flag alone
COUNT: Values = ["1", "2", "3", "64", "0", "-5", "1000000", "1" + "0" * 30, "x", "1.5", ""]
SIZES: Values = [
    "80GB",
    "24 GiB",
    "24",
    "4090",
    "RTX 4090",
    "h100",
    "-1 GB",
    "0",
    "1e9 B",
    "x",
    "",
    "9 PB",
]
CHOICES: dict[str, Values] = {
    "--batch": COUNT,
    "--tokens": COUNT,
    "--precision": ["fp32", "bf16", "autocast-bf16", "fp16", "autocast-fp16", "int3"],
    "--recipe": ["fp32", "bf16", "autocast", "zero", "playbook", "x", ""],
    "--optimizer": ["adamw", "sgd", "muon", "adafactor", "galore/8", "galore/0", "x"],
    "--optimizer-impl": ["forloop", "foreach", "fused"],
    "--attention": ["eager", "sdpa", "flash", "flash_attention_2"],
    "--checkpoint": ["none", "block"],
    "--micro-batches": COUNT,
    "--completion": COUNT,
    "--eval-batch": COUNT,
    "--eval-logits": COUNT,
    "--window": COUNT,
    "--kernel": ["auto", "flash", "math", "x"],
    "--loop": [
        *("plain", "trainer", "sft", "dpo", "grpo", "nanogpt", "keeps-outputs", "gkd"),
        *("distillation", "x"),
    ],
    "--teacher": ["tiny-llama", "llama-3-8b", "x", "", "."],
    "--teacher-weights": ["fp32", "bf16", "nf4", "x"],
    "--texts": ["packed", "padded", "full"],
    "--reference": ["model", "precomputed"],
    "--compile": [None, "inductor", "x"],
    "--frozen": ["embedding", "attention,norm", "x", "", ","],
    "--offload": ["saved", "states", "optimizer,gradients", "x", ""],
    "--holds": ["output", "model,batch", "state_dict", "logits,graph", "x", ""],
    "--step-in-backward": [None],
    "--clip": [None],
    "--no-clip": [None],
    "--loss": ["plain", "chunked", "fused_head"],
    "--loss-chunks": COUNT,
    "--adapter": [ADAPTER, "x", ".", "/dev/null"],
    "--lora-dora": [None],
    "--lora-rank": COUNT,
    "--lora-targets": ["q,v", "q", "qkv", "all", "q,q", "", ","],
    "--lora-base": ["nf4", "fp32", "x"],
    "--lora-dtype": ["fp32", "bf16", "x"],
    "--lora-saved": ["lm_head", "embedding,lm_head", "norm", ""],
    "--lora-dropout": ["0", "0.1", "1", "nan", "x"],
    "--ia3": ["k,v,down", "q", "all", ""],
    "--vera-rank": COUNT,
    "--prompt-tokens": COUNT,
    "--backend": ["cpu", "cuda"],
    "--dropout": ["0", "0.1", "1", "7", "nan", "-1"],
    "--implementation": ["transformers", "memlab"],
}
SHARES: Values = ["0.9", "0", "1", "1.5", "-1", "nan", "x", ""]
SHARD: dict[str, Values] = {
    f"--{name}-parallel": COUNT for name in ("tensor", "pipeline", "context")
}
SHARD |= dict.fromkeys(("--tensor", "--pipeline", "--ranks"), COUNT)
SHARD |= dict.fromkeys(("--stages-per-rank", "--reduce-bucket-size"), COUNT)
SHARD |= dict.fromkeys(("--overlap-comm", "--no-outputs", "--sequence", "--deepspeed"), [None])
SHARD |= {"--no-memory-efficient-linear": [None], "--offload-optimizer": ["cpu", "nvme", ""]}
SHARD |= {"--deepspeed-config": ["", "/nowhere.json", "README.md"]}
SHARD |= dict.fromkeys(("--prefetch-bucket-size", "--param-persistence-threshold"), COUNT)
SHARD |= dict.fromkeys(("--max-live-parameters", "--max-reuse-distance", "--sub-group-size"), COUNT)
FSDP: dict[str, Values] = {
    **dict.fromkeys(("--fsdp", "--replicas", "--expert"), COUNT),
    **dict.fromkeys(("--param-dtype", "--reduce-dtype"), ["bf16", "fp32", "x"]),
    "--no-reshard": [None],
    "--gradient-sync": ["every", "last", "shards", "x"],
    "--cpu-offload": [None, "pinned", "pageable", "x"],
    "--routing": ["even", "fullest", "x"],
}
SHARD |= FSDP | {
    "--zero": ["0", "1", "2", "3", "4", "-1"],
    "--schedule": ["gpipe", "1f1b", "interleaved1f1b", "x"],
    "--no-contiguous-gradients": [None],
    "--plan": ["torch", "transformers"],
}
SERVER: dict[str, Values] = {
    "--engine": ["vllm", "sglang", "x"],
    "--on": SIZES,
    "--gpu-memory-utilization": SHARES,
    "--mem-fraction-static": SHARES,
    "--kv-dtype": ["auto", "fp8", "int8_per_token_head", "x"],
    "--quantization": ["awq", "fp8-block", "nf4", "none", "x"],
    "--sampler": ["fused", "sort"],
    **dict.fromkeys(("--max-model-len", "--block-size", "--max-num-batched-tokens"), COUNT),
    **dict.fromkeys(("--max-num-seqs", "--shared-prefix"), COUNT),
    **dict.fromkeys(("--loaded", "--activation-peak", "--non-torch", "--cuda-graphs"), SIZES),
}
OF_PHASE: dict[str, Values] = {
    "--phase": ["train", "prefill", "decode"],
    "--logits": ["all", "last"],
    "--inference-mode": [None],
}
MORE: dict[str, dict[str, Values]] = {
    "estimate": SHARD | SERVER | OF_PHASE | {"--against": ["bf16", "zero", "x"], "--posted": SIZES},
    "fit": SHARD | OF_PHASE | {"--on": SIZES, "--spare": SIZES, "--cards": COUNT},
    "explain": SHARD
    | {
        **dict.fromkeys(("--seen", "--predicted", "--on"), SIZES),
        "--level": ["tensors", "reserved", "process", "x"],
        "--weights": ["bf16", "fp32", "x"],
        "--master": ["fp32", "x"],
        "--states": ["bf16", "x"],
    },
}
NEEDED = {"fit": "--on", "explain": "--seen"}
CLAIM = ("figure", "ask", "line", "within", "unchecked", "verdict", "reason", "where", "x")
LISTS = ("models", "devices", "formats", "recipes", "claims")


def config(rng):
    """A config.json: of a family, and up to three of its values odd or enormous."""
    made = SHAPE | {"model_type": rng.choice([*KEYS, *KEYS, "unknown"])}
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        made[rng.choice(list(made))] = rng.choice([*ODD, *LARGE, *EVIL])
    return made


def question(seed, folder):
    """The words of one command line."""
    rng = random.Random(f"shell {seed}")
    kinds = ["estimate"] * 5 + ["fit"] * 2 + ["explain"] * 2 + [rng.choice(LISTS), "audit"]
    command = rng.choice(kinds)
    words = [command]
    if command == "audit":
        return [command, _list(rng, folder), *rng.choice([[], ["--json"]])]
    if command in LISTS:
        words += rng.choice([[], ["--json"], ["--verdict", "holds"], ["004"], ["x"]])
        return words
    if rng.random() < 0.25:
        words.append(rng.choice([*presets(), "gpt5", ""]))
    else:
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            json.dump(config(rng), file)
        words.append(path)
    pool = CHOICES | MORE[command]
    if command == "estimate" and rng.random() < 0.25:
        pool = SERVER | SHARD
        chosen = ["--engine", "--on", *rng.sample(list(pool), rng.randint(0, 4))]
    else:
        chosen = rng.sample(list(pool), rng.randint(0, 5))
    chosen += [NEEDED[command]] if command in NEEDED else []
    # Two of three questions name a size that makes sense, so that they get beyond the first check.
    if rng.random() < 0.7:
        chosen.append("--tokens")
    for flag in dict.fromkeys(chosen):
        usual = rng.random() < 0.6
        values = (CHOICES | pool)[flag]
        value = values[0 if usual else rng.randrange(len(values))]
        words += [flag] if value is None else [flag, value]
    if ADAPTER in words:
        words[words.index(ADAPTER)] = _adapter(rng, folder)
    return [*words, "--json"] if rng.random() < 0.4 else words


def _adapter(rng, folder):
    """The path of peft's config of some adapter, up to two of its values odd."""
    made = {"peft_type": rng.choice(["LORA", "LORA", "IA3", "VERA", "PROMPT_TUNING", "X"]), "r": 8}
    made |= {"target_modules": rng.choice([["q_proj", "v_proj"], "all-linear", ["down_proj"]])}
    made |= {"feedforward_modules": ["down_proj"], "num_virtual_tokens": 8, "lora_dropout": 0.1}
    for _ in range(rng.choice([0, 1, 2])):
        made[rng.choice([*made, "use_dora", "modules_to_save", "bias"])] = rng.choice([*ODD, *EVIL])
    path = os.path.join(folder, ADAPTER)
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        json.dump(made, file)
    return path


def _list(rng, folder):
    """The path of a list of claims, whose questions are asked in turn."""
    usual = {"figure": "16 GB", "ask": "estimate llama-3.1-8b --precision bf16", "line": "weights"}
    lines = ["# claims"]
    for _ in range(rng.randint(0, 3)):
        items = dict(usual)
        for _ in range(rng.choice([0, 1, 2])):
            value = rng.choice([*ODD, *EVIL, *SIZES, "at least 1 GB", "yes", "5 %", "rows.x.y"])
            items[rng.choice(CLAIM)] = value
        lines += ["", rng.choice(["## a claim", "## ", "### x"])]
        lines += [f"- {key}: {value}" for key, value in items.items()]
    path = os.path.join(folder, "claims.md")
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write("\n".join(lines))
    return path


def attempt(seed, folder):
    """None, or what a command line did that it must not."""
    words = question(seed, folder)
    wrong = _child(words)
    return None if wrong is None else f"{wrong}   memlab {' '.join(map(repr, words))}"


def _child(words):
    _ready()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            said = _limited(words)
        except BaseException as error:  # nothing of the child may go on in the parent's loop
            said = f"the fuzzer: {error!r}"
        os.write(write, (said or "").encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(write)
    try:
        if not select.select([read], [], [], PATIENCE)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"no end after {PATIENCE} s"
        said = os.read(read, 4000).decode()
    finally:
        os.close(read)
    status = os.waitpid(child, 0)[1]
    return said or (f"ended by signal {status}" if status else None)


def _ready():
    """Import once what every question imports, so that a child pays for its answer alone."""
    for name in set(COMMANDS.values()) - {"trace", "measure", "watch", "record"}:
        import_module(f"memlab.cli.{name}")
    import_module("memlab.step")


def _limited(words):
    """In the child: what was wrong, or None."""
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    where: list = []

    def late(_, frame):
        where.extend(traceback.extract_stack(frame))
        raise Late

    signal.signal(signal.SIGPROF, late)
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    status: object
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                status = main(words)
    except SystemExit as end:
        status = end.code
    except Late:
        status = None
    except MemoryError:
        return f"memory: more than 1 GiB at {_raised()}"
    except BaseException as error:
        return f"{type(error).__name__}: {error} at {_raised()}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if where or time.process_time() - began > SECONDS:
        return f"hang: more than {SECONDS} s at {_place(where)}"
    return _judged(status, out.getvalue(), err.getvalue(), "--json" in words)


def _raised():
    return _place(traceback.extract_tb(sys.exc_info()[2]))


def _place(frames):
    ours = [f for f in frames if "memlab" in f.filename and "tools" not in f.filename] or frames
    return f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "?"


def _judged(status, out, err, as_json):
    if status not in (0, 1, 2):
        return f"status {status}"
    if status == 2:
        usage = err.startswith("usage: ")
        if out or not (usage or err.startswith("memlab: ") and err.count("\n") == 1):
            return f"refusal: not one line: {err[:200]!r}"
        return None
    if not out.strip():
        return "silence: no answer"
    if any(not (c.isprintable() or c == "\n") for c in out):
        return f"unprintable: {[c for c in out if not c.isprintable() and c != chr(10)][:3]}"
    if as_json:
        try:
            json.loads(out)
        except ValueError as error:
            return f"not JSON: {error}"
    return None
