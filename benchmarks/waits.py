"""How long an answer takes and how much memory: whole processes, beside `import torch`.

    python benchmarks/waits.py            # a minute; --runs 5 for a machine with other work

Every command runs in a process of its own, several times, and the fastest counts. Times are ratios
to `python -c "import torch"` in the same run, so that a slow machine says the same as a fast one;
memory is the most that the process had resident.
"""

import argparse
import os
import subprocess
import sys
import time

from memlab import Model
from memlab.base.table import as_text
from memlab.units import text

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


def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="the fastest of N counts")
    runs = parser.parse_args().runs
    torch = taken([sys.executable, "-c", "import torch"], runs)
    rows = [["asked", "parameters", "seconds", "of import torch", "memory"]]
    rows.append(['python -c "import torch"', "", f"{torch[0]:.2f}", "1.0x", text(torch[1])])
    for command, name, more in ASKED:
        asked = f"memlab {command} {name} {QUESTION}{more}"
        words = [sys.executable, "-m", *asked.split()]
        seconds, resident, status = taken(words, runs)
        size = f"{Model.preset(name).parameter_count / 1e9:,.0f} B"
        ratio = f"{seconds / torch[0]:.1f}x" if not status else f"exit {status}"
        rows.append([asked, size, f"{seconds:.2f}", ratio, text(resident)])
    print(as_text(rows))


if __name__ == "__main__":
    main()
