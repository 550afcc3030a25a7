"""Programs of many kinds, rehearsed and really run on this CPU; and rehearsed beside descriptions.

    python tools/rehearsed.py            what has changed against book/rehearsed/found.json
    python tools/rehearsed.py --write    store it, for the page book/rehearsed.md

A run stops after its second optimizer step, as a rehearsal does. Each is a process of its own.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "book" / "rehearsed"
STORED = PROGRAMS / "found.json"
STEPS = 2
VERSIONS = ("torch", "transformers", "peft", "accelerate", "bitsandbytes")
# How book/rehearsed/llama.py trains: the same, asked of memlab estimate.
TRAINED = {
    "loop": "--precision bf16",
    "AdamW8bit": "--precision bf16 --optimizer bnb_adamw8bit",
    "PagedAdamW32bit": "--precision bf16 --optimizer bnb_paged_adamw",
    "trainer": "--precision bf16 --loop trainer",
    "autocast": "--precision autocast-bf16 --loop trainer",
    "adapters": "--precision bf16 --loop trainer --lora-rank 16 --lora-targets q,v "
    "--checkpoint block",
    "nf4": "--precision bf16 --loop trainer --lora-rank 16 --lora-targets q,v --lora-base nf4 "
    "--checkpoint block",
}
# How book/rehearsed/ranks.py divides the same, over how many ranks.
RANKED = {
    "copies": (8, "--ranks 8 --zero 0"),
    "shards": (8, "--fsdp 8"),
    "matrices": (8, "--tensor 8 --optimizer-impl forloop"),
    "sequence": (8, "--tensor 8 --sequence"),
    "their plan": (8, "--tensor 8 --plan transformers --optimizer-impl forloop"),
    "ring": (8, "--context-parallel 8 --zero 3"),
    "layers": (4, "--pipeline 4 --micro-batches 4"),
}
ON_A_CARD = ("llama.py", "ranks.py")


def names():
    """The programs that run on a CPU, too."""
    return sorted(path.name for path in PROGRAMS.glob("*.py") if path.name not in ON_A_CARD)


def asked(*words):
    """What a command prints, as JSON."""
    command = [sys.executable, *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=PROGRAMS)
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stderr}")
    # A program may print before; the document of a command is on lines of its own.
    last = done.stdout.rstrip().rpartition("\n")[2]
    return json.loads(last if last[0] == "{" else done.stdout[done.stdout.index("{\n") :])


def rehearsal(*words, backend="cpu", more=()):
    command = ["-m", "memlab", "rehearse", "--json", "--backend", backend, "--steps", STEPS, *more]
    return asked(*command, "--", "python", *words)


def of_program(name):
    """A program rehearsed, and run: bytes of its tensors, and what was assumed."""
    told = rehearsal(name)
    return {
        "rehearsed": told["peak"]["bytes"],
        "run": asked(__file__, "--really", name)["peak"],
        "assumed": sum(each["times"] for each in told["assumed"]),
    }


def of_training(how):
    """Llama-3-8B's sizes trained: rehearsed on a card, and described."""
    told = rehearsal("llama.py", how, backend="cuda")
    words = ["estimate", "llama-3-8b", "--tokens", "2048", *TRAINED[how].split(), "--json"]
    return {
        "rehearsed": told["peak"]["bytes"],
        "described": asked("-m", "memlab", *words)["peak"]["bytes"],
    }


def of_ranks(how):
    """The same over several ranks: the fullest one rehearsed, and described."""
    gpus, said = RANKED[how]
    every = ("--rank", "all") if how == "layers" else ()  # else the first and the last: all alike
    told = rehearsal("ranks.py", how, backend="cuda", more=("--gpus", gpus, *every))
    words = ["estimate", "llama-3-8b", "--precision", "bf16", "--tokens", "2048", *said.split()]
    return {
        "rank": told["rank"],
        "rehearsed": told["peak"]["bytes"],
        "described": asked("-m", "memlab", *words, "--json")["peak"]["bytes"],
    }


def really(name):
    """Run a program in this process, and say what its tensors took at most in two steps."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from memlab.measure.step_tracker import StepTracker

    class Done(BaseException):
        pass

    steps: list = []

    def stepped(*_):
        steps.append(None)
        if len(steps) == STEPS:
            raise Done

    register_optimizer_step_post_hook(stepped)
    with contextlib.suppress(ImportError):  # else their own tables are made in a program's run
        import bitsandbytes  # noqa: F401
        import transformers.trainer  # noqa: F401
    sys.argv = [name]
    code = compile((PROGRAMS / name).read_text(encoding="utf-8"), name, "exec")
    tracker = StepTracker("cpu")
    with tracker, contextlib.suppress(Done):
        exec(code, {"__name__": "__main__"})
    return tracker.peak


def everything():
    return {
        "programs": {name: of_program(name) for name in names()},
        "trained": {how: of_training(how) for how in TRAINED},
        "ranked": {how: of_ranks(how) for how in RANKED},
        "versions": {name: metadata.version(name).partition("+")[0] for name in VERSIONS},
    }


def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


def title(name):
    """What a program says of itself."""
    return (PROGRAMS / name).read_text(encoding="utf-8").split('"""')[1].rstrip(".")


def programs(root):
    """The table of what was really run."""
    rows = [
        "| program | what it does | rehearsed | run on a CPU | difference |",
        "|---|---|--:|--:|--:|",
    ]
    for name, found in stored()["programs"].items():
        apart = found["rehearsed"] - found["run"]
        sizes = f"{found['rehearsed']:,} | {found['run']:,} | {apart:+,}"
        rows.append(f"| `{name.removesuffix('.py')}` | {title(name)} | {sizes} |")
    return "\n".join(rows)


def trained(root):
    """The table of what is also described."""
    rows = ["| `llama.py` | `memlab estimate llama-3-8b --tokens 2048` … |"]
    rows[0] += " rehearsed | described | difference |"
    rows.append("|---|---|--:|--:|--:|")
    for how, found in stored()["trained"].items():
        apart = found["rehearsed"] - found["described"]
        sizes = f"{found['rehearsed']:,} | {found['described']:,} | {apart:+,}"
        rows.append(f"| `{how}` | `{TRAINED[how]}` | {sizes} |")
    return "\n".join(rows)


def ranked(root):
    """The table of what is divided among ranks."""
    rows = ["| `ranks.py` | `memlab estimate llama-3-8b --precision bf16 --tokens 2048` … |"]
    rows[0] += " fullest rank | rehearsed | described | difference |"
    rows.append("|---|---|--:|--:|--:|--:|")
    for how, found in stored()["ranked"].items():
        apart = found["rehearsed"] - found["described"]
        sizes = f"{found['rehearsed']:,} | {found['described']:,} | {apart:+,}"
        gpus, words = RANKED[how]
        rows.append(f"| `{how}` | `{words}` | {found['rank']} of {gpus} | {sizes} |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store what was found")
    parser.add_argument("--really", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.really:
        print(json.dumps({"peak": really(options.really)}))
        return
    found = everything()
    if options.write:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    elif found != stored():
        sys.exit("what was found differs from book/rehearsed/found.json: --write stores it")


if __name__ == "__main__":
    main()
