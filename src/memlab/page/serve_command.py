"""The command line and the lines of Python that ask the package what *Serve* was asked."""

from __future__ import annotations

from ..engines.engine import UNQUANTIZED
from ..engines.quantized import PUBLISHED as IN_FEWER_BITS
from ..units import GiB
from .command import model, quoted
from .controls import OTHER_CARD, OTHER_MODEL
from .serve_controls import LLAMA_CPP, NO_ENGINE, PLAIN, PUBLISHED, START

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .question import State

NAMES = {"vllm": "vLLM", "sglang": "SGLang", LLAMA_CPP: "llama.cpp", NO_ENGINE: "transformers"}


def named(engine: str) -> str:
    """An engine as its makers write it."""
    return NAMES[engine]


def computing(state: State) -> str:
    """The format of what is computed, and so of the cache of which nothing else is said."""
    return str(state["dtype"]) if state["dtype"] in PLAIN else "bf16"


def packs(state: State) -> bool:
    """Whether matrices are packed in what is loaded."""
    if state["dtype"] == PUBLISHED:
        return state["model"] in IN_FEWER_BITS
    return state["dtype"] not in PLAIN


def format_of(state: State) -> str:
    """The format of the weights, as people write it."""
    if state["engine"] == LLAMA_CPP:
        return str(state["gguf"])
    if not packs(state):
        return computing(state)
    known = IN_FEWER_BITS[state["model"]] if state["dtype"] == PUBLISHED else state["dtype"]
    return capitals(known)


def capitals(format: str) -> str:
    """A packed format without its layout: FP8, AWQ."""
    return format.split("-")[0].upper()


def quantization(state: State) -> str | None:
    """What `Engine.quantization` is told; None: nothing, as the model is published."""
    if state["dtype"] == PUBLISHED:
        return None
    if state["dtype"] in PLAIN:
        return UNQUANTIZED if state["model"] in IN_FEWER_BITS else None
    return str(state["dtype"])


def command(state: State) -> str:
    """The command with every flag that this state needs; nothing where it has no flag."""
    if state["engine"] == NO_ENGINE:
        if packs(state):
            return ""
        words = ["memlab estimate", model(state)]
        sizes = f"--batch {state['users']} --tokens {state['context']}"
        return " ".join(words + [f"--precision {computing(state)} --phase decode", sizes])
    if state["engine"] == LLAMA_CPP:
        words = ["memlab serve", model(state), f"--engine llama.cpp --on {card(state)}"]
        words.append(f"--max-model-len {state['context']} --parallel {state['users']}")
        words.append(f"--quantization {state['gguf']} --kv-dtype {state['gguf_kv']}")
        return " ".join(words)
    share = "mem-fraction-static" if state["engine"] == "sglang" else "gpu-memory-utilization"
    words = ["memlab serve", model(state)]
    words.append(f"--engine {state['engine']} --on {card(state)} --{share} {state['share'] / 100}")
    words.append(f"--max-model-len {state['context']}")
    if state["dtype"] in ("fp16", "fp32"):
        words.append(f"--precision {state['dtype']}")
    if quantization(state) is not None:
        words.append(f"--quantization {quantization(state)}")
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
    if state["engine"] == NO_ENGINE and packs(state):
        how = "" if state["dtype"] == PUBLISHED else f', Quantized(format="{state["dtype"]}")'
        return f"""from memlab import Model
from memlab.engines import Quantized, checkpoint

print(checkpoint({asked}{how}))"""
    if state["engine"] == NO_ENGINE:
        return f"""from memlab import Model, Recipe, Run, estimate

run = Run(phase="decode", batch={state["users"]}, tokens={state["context"]})
print(estimate({asked}, Recipe(weights="{computing(state)}"), run))"""
    on = str(state["gib"] * GiB) if state["card"] == OTHER_CARD else quoted(state["card"])
    if state["engine"] == LLAMA_CPP:
        kinds = f'file="{state["gguf"]}", cache="{state["gguf_kv"]}"'
        return f"""from memlab import Model
from memlab.engines.llama_cpp import LlamaCpp, loaded

engine = LlamaCpp({kinds}, context={state["context"]}, slots={state["users"]})
found = loaded({asked}, engine, on={on})
print(found.ledger, found.most)"""
    fields = [f'name="{state["engine"]}"', f"utilization={state['share'] / 100}"]
    fields.append(f"max_model_len={state['context']}")
    if state["dtype"] in ("fp16", "fp32"):
        fields.append(f'dtype="{state["dtype"]}"')
    if quantization(state) is not None:
        fields.append(f'quantization="{quantization(state)}"')
    if state["kv"] != START["kv"]:
        fields.append(f'kv_dtype="{state["kv"]}"')
    if state["cards"] > 1:
        fields.append(f"tensor={state['cards']}")
    if state["loaded"]:
        fields.append(f"weights={state['loaded']} * 2**20")
    return f"""from memlab import Model
from memlab.engines import Engine, pool

engine = Engine({", ".join(fields)})
found = pool({asked}, engine, on={on})
print(found.ledger, found.sequences)"""


def card(state: State) -> str:
    """What the command line calls the card."""
    return f'"{state["gib"]} GiB"' if state["card"] == OTHER_CARD else f'"{state["card"]}"'
