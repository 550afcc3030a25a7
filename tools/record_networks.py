"""Record the graph of a family's own code again, into src/memlab/data/networks/TYPE.json.

    python tools/record_networks.py llama                   every kind that FAMILIES names
    python tools/record_networks.py llama "cpu fp32"        those in whose names this stands
    python tools/record_networks.py --types [phi ...]       types without a record of their own,
                                                            all that have no file
    python tools/record_networks.py --check [phi ...]       plays them at other sizes, beside traces
                                                            and a real step

It takes two seconds a kind; nothing is computed. Kinds that were not asked for stay as they are. A
type needs no line here: its keys, sizes and weights are read from its own class. Its file is kept
where the check finds 0 B between it and its own code.
"""

import json
import logging
import random
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import causal_types

from memlab import Model, Run
from memlab.families import NAMES, RECORDED
from memlab.families.recorded import NUMBER
from memlab.lab.causal import Causal
from memlab.lab.network_check import apart, drawn, sizes
from memlab.lab.network_kinds import recorded
from memlab.lab.network_type import attention_of, keys_of, usual_of
from memlab.lab.network_typed import any_number, own_sizes, recorded_type
from memlab.measure.network_packed import packed
from memlab.step import simulate
from memlab.step.networks.recording import unpacked

HERE = Path(__file__).parents[1] / "src" / "memlab" / "data" / "networks"
USUAL = ("bf16", "fp32", "autocast")
SIZES = ("many", "one")
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"heads": ("shared", "own"), "attentions": ("sdpa", "eager")},
    "qwen3_moe": {
        "heads": ("shared",),
        "attentions": ("sdpa", "eager"),
        "more": ("", " normed"),
        "types": ["experts", "dense"] * 2,
    },
    "gemma3_text": {
        "heads": ("shared", "single"),
        "attentions": ("sdpa", "eager"),
        "more": (" near", " near ragged", " far"),
        "types": ["sliding_attention", "full_attention"] * 2,
    },
}
# Kinds of a type in which a config is asked for beside that of its class.
VARIANTS: dict[str, tuple[str, ...]] = {}


def kinds(family: str) -> list[str]:
    """What is recorded of a family, each kind by its name."""
    told = FAMILIES[family]
    names = [
        f"{backend}{precision} {attention} {batch} {heads}{more}"
        for backend in ("", "cpu ")
        for precision in USUAL
        for attention in told["attentions"]
        for batch in SIZES
        for heads in told["heads"]
        for more in told.get("more", ("",))
    ]
    # SDPA alone pads a mask, and CUDA's alone.
    return [n for n in names if "ragged" not in n or not ("eager" in n or "cpu" in n)]


def main(family: str, *asked: str) -> None:
    """Record these kinds, or all of a family."""
    path = HERE / f"{family}.json"
    made = {}
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        made = {kind: unpacked(stored, kind) for kind in stored["kinds"]}
    told = FAMILIES[family]
    every = kinds(family)
    for kind in [k for k in every if not asked or any(a in k for a in asked)]:
        begun = time.process_time()
        made[kind], problems = recorded(family, kind, types=told.get("types"))
        print(f"{kind}: {time.process_time() - begun:.1f} s", *problems, sep="\n  ")
        save(path, made)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def save(path: Path, made: dict[str, Any], told: dict[str, Any] | None = None) -> None:
    """Write them down, with the versions of the watched code and what is told of a type."""
    versions = {name: version(name) for name in ("torch", "transformers")}
    parts = [f"{json.dumps(key)}:{_text(value)}" for key, value in packed(made).items()]
    path.parent.mkdir(exist_ok=True)
    type_told = [f'"family":{_text(told)}'] if told else []
    text = ",\n".join([f'"versions":{json.dumps(versions)}', *type_told, *parts])
    path.write_text("{" + text + "}\n", encoding="utf-8")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def of_type(family: str) -> None:
    """Record a type: what is asked of it most, and of a CPU's kernels what a test runs."""
    begun, path = time.process_time(), HERE / f"{family}.json"
    if usual_of(family).get("sliding_window"):
        raise ValueError("layers with a sliding window are not recorded")
    heads = ("shared", "own") if "kv_heads" in keys_of(family) else ("own",)
    attention, made = attention_of(family), {}
    first = f"bf16 {attention} many {heads[0]}"
    own = own_sizes(family, first)
    free = any_number(family, first, own)
    told: dict[str, Any] = {}
    for more in ("", *VARIANTS.get(family, ())):
        for precision in (*USUAL, "cpu fp32"):
            for batch in SIZES:
                for kept in heads:
                    if precision not in USUAL and batch == "one":
                        continue
                    kind = f"{precision} {attention} {batch} {kept} {more}".strip()
                    made[kind], said, problems = recorded_type(family, kind, own)
                    if problems:
                        raise ValueError(f"{kind}: {problems[0]}")
                    told = told or {**said, "attentions": [attention], "weights": {}}
                    told["weights"] = said["weights"] | told["weights"]
    told["pinned"] |= dict.fromkeys(free, NUMBER)
    save(path, made, told)
    size, took = path.stat().st_size, time.process_time() - begun
    print(f"{family}: {len(made)} kinds, {size:,} bytes, {took:.0f} s", flush=True)


def check(family: str) -> str:
    """Play a type beside its own code: nothing, or where they are not the same."""
    for config, recipe, run in drawn(
        family, 6, 0
    ):  # as many as there are ways, adapters among them
        if found := apart(config, recipe, run):
            return f"{recipe}, {run.said()}, {config}: {found}"
    config = sizes(random.Random(1), family)
    run = Run.cpu(batch=causal_types.BATCH, tokens=causal_types.TOKENS)
    played, real = (
        simulate(Model.from_config(config), "fp32", run),
        causal_types.real(Causal(config)),
    )
    return "" if played.peak.bytes == real else f"a real step: {played.peak.bytes - real:+,} B"


def candidates() -> list[str]:
    """Types of causal language models without a record and without a file."""
    known = {*NAMES, *(path.stem for path in HERE.glob("*.json"))}
    return [name for name in causal_types.names() if name not in known]


def types(names: list[str]) -> None:
    """Record each type, and keep what is as its own code: a line each, with the reason if not."""
    for family in names or candidates():
        path = HERE / f"{family}.json"
        try:
            of_type(family)
            again = [sys.executable, __file__, "--check", family]  # which reads the folder anew
            if subprocess.run(again, check=False).returncode:
                path.unlink()
        except Exception as error:  # the type's own code: what it raises is the finding
            print(f"{family}: {_line(error)}", flush=True)


def checks(names: list[str]) -> int:
    """Check each type that was recorded: how many are not as their own code."""
    apart = 0
    for family in names or RECORDED:
        try:
            found = check(family)
        except Exception as error:
            found = _line(error)
        apart += bool(found)
        print(f"{family}: {found[:600] or 'as its own code'}", flush=True)
    return apart


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    match sys.argv[1:]:
        case ["--types", *names]:
            types(names)
        case ["--check", *names]:
            sys.exit(checks(names) > 0)
        case names:
            main(*names)
