"""The tables of the benchmark, from what benchmarks/peers.py wrote."""

import json


def results(root):
    """What benchmarks/peers.py wrote."""
    return json.loads((root / "benchmarks" / "results.json").read_text(encoding="utf-8"))


def accuracy(root):
    """How far each tool was from the real peaks, and how long it took."""
    found = results(root)
    count = len(found["configs"])
    rows = []
    for name, tool in found["tools"].items():
        if not tool["answers"]:
            rows.append(f"| {name} | {tool.get('why', 'no answer')} | — | — | — |")
            continue
        median, worst = f"{tool['median_error']:.1%}", f"{tool['worst_error']:+.1%}"
        exact = not tool["worst_error"]
        errors = "0 B | 0 B" if exact else f"{median} | {worst.replace('-', '−')}"
        time = f"{tool['time_ratio']:,.0f}x" if "time_ratio" in tool else "—"
        rows.append(f"| {name} | {tool['answers']} of {count} | {errors} | {time} |")
    head = ["| tool | steps | median error | worst error | time |", "|---|---|---|---|---|"]
    return "\n".join(head + rows)


def peers(root):
    """Which version of each tool was asked, how, and what its answer holds."""
    rows = [
        f"| {name} | {tool['version'] or '—'} | {tool['options']} | {tool['counts']} |"
        for name, tool in results(root)["tools"].items()
    ]
    return "\n".join(["| tool | version | asked | what it counts |", "|---|---|---|---|", *rows])


def benchmark(root):
    """The run that the two tables come from."""
    found = results(root)
    return (
        f"`{found['command']}` wrote both tables on {found['date']} at commit {found['commit']}, "
        f"with Python {found['python']}, torch {found['torch']} and transformers "
        f"{found['transformers']}. Timed was {found['timed']}."
    )
