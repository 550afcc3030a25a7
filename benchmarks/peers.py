"""How close memlab and its peers come to the real peak of a training step, and how long they take.

    pip install -r benchmarks/requirements.txt     the peers; memlab itself needs none of them
    python benchmarks/peers.py                     writes benchmarks/results.json

Every tool is asked about the same steps: seeded configs of transformers models, small enough to be
run for real on the CPU, where every byte is counted. A tool that is not installed is recorded as
that. Times are of whole processes, for one step of Qwen3-0.6B, as ratios to `python -c pass`.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "real")]
from predictions import TIMED, TOOLS, Tool  # noqa: E402
from real_steps import Question, random_configs, real_step  # noqa: E402

QUICK = 1.0  # seconds; what is quicker is timed more often
PLAN = {"checkpoints": ("none", "block")}


def installed(tool: Tool) -> str | None:
    """Its version; "" for a rule of thumb, None if it is not there."""
    try:
        return version(tool.package) if tool.package else ""
    except PackageNotFoundError:
        return None


def compare(step: Question, tools: list[Tool]) -> dict:
    """The real peak, what each tool said and how far off that is; reasons where it said nothing."""
    real = real_step(step).peak.bytes
    row = {"step": step.to_json(), "real": real, "predicted": {}, "errors": {}, "no_answer": {}}
    for tool in tools:
        try:
            said = int(tool.predict(step))
        except Exception as error:  # whatever a tool raises is its answer to this step
            row["no_answer"][tool.name] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            continue
        row["predicted"][tool.name] = said
        row["errors"][tool.name] = round(said / real - 1, 6)
    return row


def seconds(command: list[str]) -> float:
    """The median time of a process from its start to its end."""
    taken: list[float] = []
    while len(taken) < (15 if not taken or taken[0] < QUICK else 3):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def command_of(tool: Tool) -> list[str]:
    own = (str(Path(__file__)), "--one", tool.name)
    return [sys.executable, *(tool.command or own)]


def summary(tool: Tool, rows: list[dict], base: float | None) -> dict:
    """One line of the table."""
    found = {"version": installed(tool), "options": tool.options, "counts": tool.counts}
    if found["version"] is None:
        return found | {"answers": 0, "why": "not installed"}
    errors = [row["errors"][tool.name] for row in rows if tool.name in row["errors"]]
    found["answers"] = len(errors)
    if errors:
        found["median_error"] = round(statistics.median(map(abs, errors)), 6)
        found["worst_error"] = max(errors, key=abs)
    if base and tool.timed:
        found["time_ratio"] = round(seconds(command_of(tool)) / base, 1)
    return found


def benchmark(count: int, seed: int, times: bool) -> dict:
    tools = [tool for tool in TOOLS if installed(tool) is not None]
    rows = []
    for step in random_configs(count, seed, **PLAN):
        rows.append(compare(step, tools))
        print(f"{rows[-1]['real']:>13,} B  {step}", file=sys.stderr)
    base = seconds([sys.executable, "-c", "pass"]) if times else None
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    )
    return {
        "command": f"python benchmarks/peers.py --configs {count} --seed {seed}",
        "date": date.today().isoformat(),
        "commit": head.stdout.strip(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "timed": "one step of Qwen3-0.6B under autocast(bf16), B=1, T=512, as a whole process",
        "tools": {tool.name: summary(tool, rows, base) for tool in TOOLS},
        "configs": rows,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--no-times", action="store_true", help="measure no time")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    parser.add_argument("--one", choices=[tool.name for tool in TOOLS], help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if chosen.one:
        print(next(tool for tool in TOOLS if tool.name == chosen.one).predict(TIMED))
        return 0
    found = benchmark(chosen.configs, chosen.seed, not chosen.no_times)
    chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, one in found["tools"].items():
        said = one.get("why") or (
            f"{one['answers']:3} answers, median {one.get('median_error', 0):8.3%}, "
            f"worst {one.get('worst_error', 0):+9.3%}, {one.get('time_ratio', '-')} x"
        )
        print(f"{name:24} {one['version'] or '-':12} {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
