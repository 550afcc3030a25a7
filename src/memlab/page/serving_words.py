"""The command line and the lines of Python that ask the package what *Serve* was asked."""

from __future__ import annotations

from ..units import GiB
from .command import model, quoted
from .request import OTHER_CARD, OTHER_MODEL
from .serving_controls import NF4, NO_ENGINE, START

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .asked import State

NAMES = {"vllm": "vLLM", "sglang": "SGLang", NO_ENGINE: "transformers"}


def named(engine: str) -> str:
    """An engine as its makers write it."""
    return NAMES[engine]


def command(state: State) -> str:
    """`memlab estimate` with every flag that this state needs; nothing where it has no flag."""
    words = ["memlab estimate", model(state)]
    if state["engine"] == NO_ENGINE:
        if state["dtype"] == NF4:
            return ""
        sizes = f"--batch {state['users']} --tokens {state['context']}"
        return " ".join(words + [f"--precision {state['dtype']} --phase decode", sizes])
    share = "mem-fraction-static" if state["engine"] == "sglang" else "gpu-memory-utilization"
    words.append(f"--engine {state['engine']} --on {card(state)} --{share} {state['share'] / 100}")
    words.append(f"--max-model-len {state['context']}")
    if state["dtype"] in ("fp16", "fp32"):
        words.append(f"--precision {state['dtype']}")
    if state["kv"] != START["kv"]:
        words.append(f"--kv-dtype {state['kv']}")
    if state["cards"] > 1:
        words.append(f"--tensor-parallel {state['cards']}")
    if state["loaded"]:
        words.append(f'--loaded "{state["loaded"]} MiB"')
    return " ".join(words)


def script(state: State) -> str:
    """The same in Python."""
    maker = "from_config" if state["model"] == OTHER_MODEL else "preset"
    asked = f'Model.{maker}("{model(state)}")'
    if state["engine"] == NO_ENGINE and state["dtype"] == NF4:
        return f"""from memlab import Model, Recipe, estimate

recipe = Recipe(weights="nf4", other="bf16", head="bf16", gradients=None)
print(estimate({asked}, recipe)["weights"])"""
    if state["engine"] == NO_ENGINE:
        return f"""from memlab import Model, Recipe, Run, estimate

run = Run(phase="decode", batch={state["users"]}, tokens={state["context"]})
print(estimate({asked}, Recipe(weights="{state["dtype"]}"), run))"""
    fields = [f'name="{state["engine"]}"', f"utilization={state['share'] / 100}"]
    fields.append(f"max_model_len={state['context']}")
    if state["dtype"] in ("fp16", "fp32"):
        fields.append(f'dtype="{state["dtype"]}"')
    if state["kv"] != START["kv"]:
        fields.append(f'kv_dtype="{state["kv"]}"')
    if state["cards"] > 1:
        fields.append(f"tensor={state['cards']}")
    if state["loaded"]:
        fields.append(f"weights={state['loaded']} * 2**20")
    on = str(state["gib"] * GiB) if state["card"] == OTHER_CARD else quoted(state["card"])
    return f"""from memlab import Model
from memlab.engines import Engine, pool

engine = Engine({", ".join(fields)})
found = pool({asked}, engine, on={on})
print(found.ledger, found.sequences)"""


def card(state: State) -> str:
    """What the command line calls the card."""
    return f'"{state["gib"]} GiB"' if state["card"] == OTHER_CARD else f'"{state["card"]}"'
