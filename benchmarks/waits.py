"""How long an answer takes and how much memory: whole processes, beside `import torch`.

    python benchmarks/waits.py

Every command runs in a process of its own, three times, and the fastest counts. Times are ratios to
`python -c "import torch"` in the same run; memory is the most that the process had resident.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memlab import Model
from memlab.base.table import as_text
from memlab.units import text

RUNS = 3
QUESTION = "--precision bf16 --tokens 4096"
# Published shapes: https://huggingface.co/Qwen/Qwen3-30B-A3B and Qwen3-235B-A22B, config.json
QWEN = {
    **{"model_type": "qwen3_moe", "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128},
    **{"num_experts_per_tok": 8, "vocab_size": 151936, "norm_topk_prob": True},
    **{"max_position_embeddings": 40960, "decoder_sparse_step": 1, "mlp_only_layers": []},
}
CONFIGS = {
    "qwen3-30b-a3b": QWEN
    | {"hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32}
    | {"intermediate_size": 6144, "moe_intermediate_size": 768},
    "qwen3-235b-a22b": QWEN
    | {"hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64}
    | {"intermediate_size": 12288, "moe_intermediate_size": 1536},
}
ASKED = (
    ("estimate", "llama-3-8b"),
    ("estimate", "llama-3.1-405b"),
    ("estimate", "qwen3-235b-a22b"),
    ("trace", "llama-3-8b"),
    ("trace", "qwen3-30b-a3b"),
)


def taken(words: list[str]) -> tuple[float, int, int]:
    """Seconds, bytes resident at most, exit status; of the fastest run."""
    runs = []
    for _ in range(RUNS):
        began = time.perf_counter()
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        runs.append((time.perf_counter() - began, usage.ru_maxrss * 1024, child.returncode))
    return min(runs)


def main() -> None:
    """Ask, and print a table."""
    torch = taken([sys.executable, "-c", "import torch"])
    rows = [["asked", "parameters", "time", "memory"]]
    rows.append(['python -c "import torch"', "", "1.0x", text(torch[1])])
    with tempfile.TemporaryDirectory() as folder:
        for command, name in ASKED:
            path = name
            if name in CONFIGS:
                path = str(Path(folder) / f"{name}.json")
                Path(path).write_text(json.dumps(CONFIGS[name]), encoding="utf-8")
            words = [sys.executable, "-m", "memlab", command, path, *QUESTION.split()]
            seconds, resident, status = taken(words)
            size = f"{Model.preset(name).parameter_count / 1e9:,.0f} B" if path == name else ""
            ratio = f"{seconds / torch[0]:.1f}x" if not status else f"exit {status}"
            rows.append([f"memlab {command} {name} {QUESTION}", size, ratio, text(resident)])
    print(as_text(rows))


if __name__ == "__main__":
    main()
