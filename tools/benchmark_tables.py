"""The tables of the benchmark, from what benchmarks/peers.py wrote."""

import json

from posted import page as posted

from memlab.model.presets import PRESETS
from memlab.page.controls import OPTIMIZERS
from memlab.units import text


def results(root):
    """What benchmarks/peers.py wrote."""
    return json.loads((root / "benchmarks" / "results.json").read_text(encoding="utf-8"))


def accuracy(root):
    """How far from the real peaks each tool was that says a peak, and how long it took."""
    found = results(root)
    count = len(found["configs"])
    rows = []
    for name, tool in found["tools"].items():
        if not of_peak(tool):
            continue
        if not tool["answers"]:
            rows.append(f"| {name} | {tool.get('why', 'no answer')} | — | — | — |")
            continue
        median, worst = f"{tool['median_error']:.1%}", f"{tool['worst_error']:+.1%}"
        exact = not tool["worst_error"]
        errors = "0 B | 0 B" if exact else f"{median} | {worst.replace('-', '−')}"
        time = f"{tool['time_ratio']:,.0f}x" if "time_ratio" in tool else "—"
        rows.append(f"| {name} | {tool['answers']} of {count} | {errors} | {time} |")
    head = ["| tool | runs answered | median error | worst error | time |", "|---|---|---|---|---|"]
    return "\n".join(head + rows)


def of_peak(tool):
    """Whether what a tool says is the peak of a step, the figure that the real steps have."""
    return tool["counts"].startswith("the peak")


def peers(root):
    """Which version of each tool was asked, how, and what its answer holds."""
    rows = [
        f"| {name} | {tool['version'] or '—'} | {tool['options']} | {tool['counts']} |"
        for name, tool in results(root)["tools"].items()
    ]
    return "\n".join(["| tool | version | asked | what it counts |", "|---|---|---|---|", *rows])


RUN = ("date", "commit", "python", "torch", "transformers")


def benchmark(root):
    """The run that the two tables come from."""
    found = results(root)
    # What another run changes stands as code, so that it changes no sentence and no translation.
    run = "".join(f"{name:<13}{found[name]}\n" for name in RUN)
    return (
        f"`{found['command']}` wrote both tables. Timed was {found['timed']}. The run itself:\n\n"
        f"```text\n{run}```"
    )


def waits(root):
    """How long an answer takes beside `import torch`, what it has resident, and the run."""
    found = json.loads((root / "benchmarks" / "waits.json").read_text(encoding="utf-8"))
    rows = ["| asked | time | memory |", "|---|---|---|"]
    rows += [
        f"| `{row['asked']}` | {row['ratio']:.1f}x | {text(row['bytes'])} |"
        for row in found["rows"]
    ]
    run = "".join(f"{name:<13}{found[name]}\n" for name in ("command", *RUN))
    return "\n".join([*rows, "", f"```text\n{run}```"])


# Of the other calculators, what the two pages about them say. A dash: it was not asked, or what it
# says is no peak, which cannot be held against one.
AT_REST, NOT_ASKED = "weights, gradients, optimizer states", "—"
OTHERS = ("bytes per parameter", "accelerate", "DeepSpeed", "torchinfo", "MemTracker")
FEATURES = (
    ("[what its figure is](#accuracy-asked)", "the peak of a step, term by term", AT_REST)
    + (AT_REST, AT_REST, "weights, outputs of layers", "the peak of a step"),
    ("[what it is given](#accuracy-asked)", "a config", "a number of parameters", "a model")
    + ("a number of parameters", "a module and an input", "a loop that trains"),
    ("[asks for batch and length](#accuracy-read)", "yes", "no", "no", "no", "yes", "yes"),
    ("[activations and logits](#accuracy-read)", "yes", "no", "no", "no")
    + ("outputs of layers", "yes"),
    ("[states of the optimizer](#accuracy-read)", f"of {len(OPTIMIZERS)} optimizers")
    + ("two for each weight", "Adam's", "DeepSpeed's own layout", "no", "your optimizer's"),
)
# Of those that are a web page: this page's cells, in the order of web_calculators.json's.
ON_THE_WEB = (
    ("what its figure is", "the peak of a step, term by term"),
    ("what it is given", "a name of {presets}, or a config"),
    ("training", "yes"),
    ("serving", "vLLM, SGLang, transformers"),
    ("adapters", "LoRA and QLoRA"),
    ("optimizers", "{optimizers}"),
    ("several GPUs", "the peak of one: DDP, FSDP2; by a button DeepSpeed, TP, PP"),
    ("tokens a second", "no"),
    ("where it counts", "your browser"),
    ("held against real steps", "[yes](#accuracy-results)"),
)
REAL = "[errors on real steps, on a CPU](#accuracy-results)"


def calculators(root):
    """The page's calculator beside other tools: features, each linked to its facts, and errors."""
    real = results(root)
    tools = [real["tools"][name] for name in OTHERS]
    names = [f"{name} {tool['version']}".strip() for name, tool in zip(OTHERS, tools, strict=True)]
    errors = [_error(tool) for tool in (real["tools"]["memlab estimate"], *tools)]
    rows = [
        ["", "this page", *names],
        ["---"] * (len(OTHERS) + 2),
        *FEATURES,
        [REAL, *errors],
        *posted.beside(len(OTHERS)),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def on_the_web(root):
    """The page's calculator beside public ones: what each says of itself, and where it says it."""
    kept = json.loads((root / "benchmarks" / "web_calculators.json").read_text(encoding="utf-8"))
    theirs = kept["calculators"]
    counts = {"presets": len(PRESETS), "optimizers": len(OPTIMIZERS)}
    rows = [["", "this page", *(f"[{name}]({theirs[name]['address']})" for name in theirs)]]
    rows.append(["---"] * len(rows[0]))
    for number, (what, ours) in enumerate(ON_THE_WEB):
        cells = [each["cells"][number] for each in theirs.values()]
        rows.append([what, ours.format(**counts), *cells])
    said = []
    for each in theirs.values():
        links = [f"[{n}]({address})" for n, address in enumerate(each["sources"], 1)]
        said.append(" ".join(links))
    rows.append(["read from", NOT_ASKED, *said])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _error(line):
    """The median of the errors, the worst, and how many there are; of a tool that says a peak."""
    if not line.get("answers") or not of_peak(line):
        return NOT_ASKED
    worst = f"{line['worst_error']:+.1%}".replace("-", "−")
    both = f"{line['median_error']:.1%}, {worst}" if line["worst_error"] else "0 B"
    return f"{both} ({line['answers']})"
