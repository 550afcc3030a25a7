"""memlab and its peers on readings that other people posted: the same rows, the same recipe.

    pip install -r benchmarks/requirements.txt     the peers; memlab itself needs none of them
    python benchmarks/peers_posted.py              writes benchmarks/posted.json

The rows are those of book/posted that memlab's page counts, and memlab's figures those that it
stores. A peer is asked with the option that fits a row best; where it has none, that is no answer
and no error. Each tool's errors stand beside memlab's on the very rows that the tool answers.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
import peers  # noqa: E402
import predictions  # noqa: E402
from posted import litgpt_peak, litgpt_tables, megatron, qwen3, stored  # noqa: E402
from posted.answers import MAPPINGS  # noqa: E402

from memlab.recipe.least import least  # noqa: E402

OUT = HERE / "posted.json"
BITS = {None: 16, "fp8": 8, "gptq8": 8, "awq4": 4}


@dataclass(frozen=True)
class Asked:
    """What a rule or a calculator can be told of a reading.

    parameters  of the model
    bits        of a weight
    trains      values that are trained: all, those of adapters, or none in a call
    master      whether an optimizer updates a fp32 copy, with fp32 gradients
    split       ranks that divide the model; shards: those that divide master and states
    kept        bytes of weights, gradients and states, where the optimizer keeps some elsewhere
    largest     values of the largest layer, where all of a model is divided and gathered by layers
    """

    parameters: int
    bits: int
    trains: int
    master: bool = False
    split: int = 1
    shards: int = 1
    kept: int = 0
    largest: int = 0


def asked(reading: Any) -> Asked:
    """The reading in these words, by its source's mapping."""
    said, what = MAPPINGS[reading.source].describe(reading), reading.what
    P, devices = said.model.parameter_count, said.run.devices
    if reading.group == "inference":
        bits = 4 if "gptq" in str(what.get("experiment")) else 16
        if reading.source == "qwen3":
            bits = BITS[qwen3.KINDS[what["precision"]]]
        if reading.source == "litgpt-tables":
            bits = 4 if what["quantize"] else {"32-true": 32, "bf16-true": 16}[what["precision"]]
        return Asked(P, bits, 0, split=devices.tensor)
    if reading.source == "megatron":
        split = devices.tensor * devices.pipeline
        P = megatron.model(what, layers=what["layers"]).parameter_count
        return Asked(P, 16, P, True, split, devices.data if devices.zero else 1)
    if devices.zero == 3:
        mixed = "fp32" in (said.recipe.weights, said.recipe.master)  # 16 bytes in all, either way
        bits = 32 if mixed else 16
        largest = max(t.numel for t in said.model.tensors())  # as its live estimator
        return Asked(P, bits, P, split=devices.data, largest=largest)
    if said.figure == "weights":  # torchtune's, as soon as a model with adapters is made
        return Asked(P + dict(said.more)["adapters"] // 2, 16, 0)
    adapters = _adapters(reading, said)
    coded = what.get("quantize") or reading.id.endswith("qlora")
    if reading.source == "torchtune" and adapters is None:  # paged states, a step in backward
        return Asked(P, 16, P, kept=sum(least(said.model, said.recipe, said.run).values()))
    return Asked(P, 4 if coded else 16, P if adapters is None else adapters)


def _adapters(reading: Any, said: Any) -> int | None:
    """Values of adapters; None where the whole model is trained."""
    if reading.source == "peft":
        full = reading.what["method"].startswith("full-finetuning")
        return None if full else reading.what["trainable"]
    if reading.source == "litgpt":
        lora = litgpt_peak.on(reading.what)
        return litgpt_peak.adapters(said.model, lora) if lora else None
    if reading.source == "litgpt-tables":
        return litgpt_peak.adapters(said.model, litgpt_peak.on({"lora": litgpt_tables.LORA}))
    return None if said.run.lora is None else said.run.lora.parameter_count(said.model)


def rule(row: Asked) -> float:
    """Weights, and of what is trained gradients and two states, each as wide as its weight.

    That is 16 or 8 bytes in all, 18 with a master, and 16 of an adapter beside its frozen model.
    """
    weights = row.parameters * row.bits / 8
    if row.kept:
        return row.kept
    if row.master:
        return (6 * row.parameters + 12 * row.parameters / row.shards) / row.split
    if row.trains in (0, row.parameters):
        return (weights + 3 * row.bits / 8 * row.trains) / row.split
    return weights + 16 * row.trains


def accelerate(row: Asked) -> float:
    """`accelerate estimate-memory`: its table for weights, and its training with Adam."""
    from accelerate.commands.estimate import estimate_training_usage

    if row.split > 1 or row.master:
        raise ValueError("one device alone")
    if row.trains == 0:
        return 4 * row.parameters * row.bits / 32
    if row.trains != row.parameters:
        raise ValueError("no option for adapters")
    return max(estimate_training_usage(4 * row.parameters, "bfloat16").values())


def deepspeed(row: Asked) -> float:
    """Its ZeRO 3 for what FSDP divides, in mixed precision: 18 bytes, and the largest layer."""
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs

    if not row.largest or row.bits != 32:
        raise ValueError("its estimators are of ZeRO 2 and 3 in mixed precision alone")
    ranks = {"num_gpus_per_node": min(row.split, 8), "num_nodes": max(row.split // 8, 1)}
    away = {"cpu_offload": False, "cpu_offload_params": False}
    found = estimate_zero3_model_states_mem_needs(row.parameters, row.largest, **ranks, **away)
    return found[1]


def refused(why: str) -> Callable[[Asked], float]:
    def predict(row: Asked) -> float:
        raise ValueError(why)

    return predict


TOOLS: dict[str, tuple[str | None, Callable[[Asked], float], str]] = {
    "bytes per parameter": (None, rule, "weights; gradients and states of what is trained"),
    "accelerate": (
        "accelerate",
        accelerate,
        "`--dtypes float16`, `int8` or `int4`: total size of a call, training with Adam",
    ),
    "DeepSpeed": (
        "deepspeed",
        deepspeed,
        "`estimate_zero3_model_states_mem_needs` for its ZeRO 3 and fp32 under FSDP2, no offload",
    ),
    "torchinfo": (
        "torchinfo",
        refused("it runs a module for real, and these models are too large for that"),
        "summary(model, input_data=...)",
    ),
}


def errors(rows: dict[str, dict[str, int]], real: dict[str, int], name: str) -> list[float]:
    return [said[name] / real[each] - 1 for each, said in rows.items() if name in said]


def summed(found: list[float]) -> dict[str, Any]:
    if not found:
        return {"answers": 0}
    middle = statistics.median(map(abs, found))
    worst = max(found, key=abs)
    return {"answers": len(found), "median_error": round(middle, 6), "worst_error": round(worst, 6)}


def benchmark() -> dict[str, Any]:
    counted = [a for a in stored.stored() if a.counted]
    real = {a.reading.id: a.reading.bytes for a in counted}
    groups = {a.reading.id: a.reading.group for a in counted}
    rows: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, int]] = {name: {} for name in TOOLS}
    for a in counted:
        rows[a.reading.id] = {"memlab": a.bytes}
        for name, (_, predict, _) in TOOLS.items():
            try:
                rows[a.reading.id][name] = int(predict(asked(a.reading)))
            except (ValueError, ImportError) as error:
                count = reasons[name]
                count[str(error)] = count.get(str(error), 0) + 1
    table: dict[str, Any] = {}
    for name, (package, _, options) in TOOLS.items():
        tool = predictions.Tool(name, package, lambda _: 0, options, "")
        found = {"version": peers.installed(tool) if package else "", "options": options}
        table[name] = found | {"no_answer": reasons[name], "groups": {}}
        for group in dict.fromkeys(groups.values()):
            own = {key: said for key, said in rows.items() if groups[key] == group and name in said}
            line = summed(errors(own, real, name))
            table[name]["groups"][group] = line | {"memlab": summed(errors(own, real, "memlab"))}
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    )
    return {
        "command": "python benchmarks/peers_posted.py",
        "date": date.today().isoformat(),
        "commit": head.stdout.strip(),
        "readings": len(counted),
        "tools": table,
        "rows": rows,
    }


def main() -> int:
    found = benchmark()
    rows = found.pop("rows")
    text = json.dumps(found, indent=1)[:-2]
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(said)}" for key, said in rows.items())
    OUT.write_text(f'{text},\n "rows": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
    for name, tool in found["tools"].items():
        for group, line in tool["groups"].items():
            print(f"{name:20} {group:18} {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
