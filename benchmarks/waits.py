"""How long an answer takes and how much memory: whole processes, beside `import torch`.

    python benchmarks/waits.py            # a minute; --runs 5 for a machine with other work
    python benchmarks/waits.py --write    # into benchmarks/waits.json, for the page on answers

Every command runs in a process of its own, several times, and the fastest counts. Times are ratios
to `python -c "import torch"` in the same run, so that a slow machine says the same as a fast one;
memory is the most that the process had resident.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memlab import Model
from memlab.base.table import as_text
from memlab.units import text

OUT = Path(__file__).resolve().parent / "waits.json"
QUESTION = "--precision bf16 --tokens 4096"
ASKED = (
    ("estimate", "llama-3-8b", ""),
    ("estimate", "llama-3.1-405b", ""),
    ("estimate", "qwen3-235b-a22b", ""),
    ("estimate", "deepseek-v3", ""),
    ("estimate", "qwen3-30b-a3b", " --fsdp 8 --expert 8"),
    ("trace", "llama-3-8b", ""),
    ("trace", "qwen3-30b-a3b", ""),
)


def taken(words: list[str], runs: int) -> tuple[float, int, int]:
    """Seconds, bytes resident at most, exit status; of the fastest of so many runs."""
    found = []
    for _ in range(runs):
        began = time.perf_counter()
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        found.append((time.perf_counter() - began, usage.ru_maxrss * 1024, child.returncode))
    return min(found)


def asked(runs: int) -> list[dict[str, Any]]:
    """A row for `import torch` and for each command; each of so many rounds asks all of them.

    So a busy minute slows neither side of a ratio alone.
    """
    told: list[tuple[str, int | None, list[str]]]
    told = [('python -c "import torch"', None, ["-c", "import torch"])]
    for command, name, more in ASKED:
        words = f"memlab {command} {name} {QUESTION}{more}"
        told.append((words, Model.preset(name).parameter_count, ["-m", *words.split()]))
    rounds = [[taken([sys.executable, *words], 1) for *_, words in told] for _ in range(runs)]
    best = [min(each) for each in zip(*rounds, strict=True)]
    return [
        {"asked": words, "parameters": count, "exit": status, "seconds": seconds}
        | {"ratio": seconds / best[0][0], "bytes": resident}
        for (words, count, _), (seconds, resident, status) in zip(told, best, strict=True)
    ]


def run_of(runs: int) -> dict[str, str]:
    """What a reader needs to ask the same again."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {
        "command": f"python benchmarks/waits.py --write --runs {runs}",
        "date": date.today().isoformat(),
        "commit": head.stdout.strip(),
        "python": sys.version.split()[0],
        **{name: version(name) for name in ("torch", "transformers")},
    }


def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="the fastest of N counts")
    parser.add_argument("--write", action="store_true", help=f"into {OUT.name} as well")
    options = parser.parse_args()
    found = asked(options.runs)
    rows = [["asked", "parameters", "seconds", "of import torch", "memory"]]
    for row in found:
        size = f"{row['parameters'] / 1e9:,.0f} B" if row["parameters"] else ""
        ratio = f"exit {row['exit']}" if row["exit"] else f"{row['ratio']:.1f}x"
        rows.append([row["asked"], size, f"{row['seconds']:.2f}", ratio, text(row["bytes"])])
    print(as_text(rows))
    if options.write:
        kept = run_of(options.runs) | {
            "rows": [
                row | {"seconds": round(row["seconds"], 2), "ratio": round(row["ratio"], 2)}
                for row in found
            ]
        }
        OUT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
