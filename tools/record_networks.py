"""Record the graph of a family's own code again, into src/memlab/data/networks/TYPE.json.

    python tools/record_networks.py llama                   every kind that FAMILIES names
    python tools/record_networks.py llama "cpu fp32"        those in whose names this stands

It takes seconds a kind; nothing is computed. Kinds that were not asked for stay as they are.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memlab.lab.network_kinds import recorded
from memlab.measure.network_packed import packed
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
    "nemotron": {"heads": ("shared",), "attentions": ("sdpa",)},
}


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


def save(path: Path, made: dict[str, Any]) -> None:
    """Write them down with the versions of the code that was watched."""
    versions = {name: version(name) for name in ("torch", "transformers")}
    parts = [f"{json.dumps(key)}:{_text(value)}" for key, value in packed(made).items()]
    path.parent.mkdir(exist_ok=True)
    text = ",\n".join([f'"versions":{json.dumps(versions)}', *parts])
    path.write_text("{" + text + "}\n", encoding="utf-8")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:])
