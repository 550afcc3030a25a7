"""llama.cpp: the weights of a GGUF file on a GPU, and the KV cache of its slots.

R rows, C columns of a weight · L layers, K key/value heads, H head width · U slots, T tokens each

llama.cpp takes no share and keeps no pool: it loads the file, allocates the whole cache for all
slots at once, and then the compute buffer of its largest graph.

Source      llama.cpp, src/llama-quant.cpp: llama_tensor_get_type, for the type of each tensor;
            ggml/src/ggml-common.h for the blocks; src/llama-kv-cache.cpp and llama-context.cpp for
            the cache; src/llama-model.cpp: the input layer stays in the memory of the CPU
Checked     start-up logs of Llama 3 8B (tests/test_llama_cpp.py): weights to the hundredth of a MiB
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Listed, Message
from ..devices import Device, card
from ..ledger import Ledger
from ..model import Model
from ..model.tensors import Tensor
from ..step.windows import windows
from ..units import MOST, at_least_one
from .apple import context_of, mac

NAME = "llama.cpp"
# Of each type the values of a block, and its bytes: ggml-common.h.
BLOCKS = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q4_0": (32, 18),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
}
# Of a file the type that most of its matrices have.
FILES = {
    "Q4_0": "Q4_0",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "Q6_K": "Q6_K",
    "Q8_0": "Q8_0",
    "F16": "F16",
    "BF16": "BF16",
}
CACHES = {"f16": "F16", "bf16": "BF16", "q8_0": "Q8_0", "q5_1": "Q5_1", "q5_0": "Q5_0"}
CACHES.update({"q4_0": "Q4_0", "f32": "F32"})
# Whose rows do not fill the blocks of the type that is wanted: llama_tensor_get_type, at its end.
FALLBACK = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
WHOLE = ("F16", "BF16", "F32")
KEPT_WHOLE = ("router", "shared_router", "positions")  # in fp32, as convert_hf_to_gguf.py writes
INPUTS = ("embedding", "positions")  # in the memory of the CPU
ENDS = ("embedding", "positions", "lm_head")  # which no family stores transposed
PAD = 256  # tokens: llama-context.cpp pads what each slot has to a multiple of them
# Of models that llama.cpp quantizes or caches in ways of their own.
OTHERS = {
    "gpt_oss": "its experts stay in MXFP4",
    "llama4_text": "its attention is in chunks",
    "nanochat": "llama.cpp does not know it",
}
WINDOWS_IGNORED = ("mistral",)  # whose files say no window


@dataclass(frozen=True, kw_only=True)
class LlamaCpp:
    """How llama-server is started.

    file        the type of the GGUF file: Q4_K_M, Q8_0 ... as llama-quantize names them
    context     T, tokens of each slot; llama-server's -c is U · T. None: the model's positions
    slots       U, its --parallel
    cache       the type of keys and values, its --cache-type-k and -v
    Raises      ValueError for a type that is not counted
    """

    file: str = "Q4_K_M"
    context: int | None = None
    slots: int = 1
    cache: str = "f16"

    def __post_init__(self) -> None:
        for what, word, known in (("file", self.file, FILES), ("cache", self.cache, CACHES)):
            if word not in known:
                pattern = "{what}={word} is not counted for llama.cpp; known: {known}"
                names = Listed(", ", sorted(known))
                raise ValueError(Message(pattern, what=what, word=repr(word), known=names))
        at_least_one("slots", self.slots, MOST)
        if self.context is not None:
            at_least_one("context", self.context, MOST)


@dataclass(frozen=True)
class Loaded:
    """What llama.cpp takes of a GPU.

    ledger      weights, and the whole KV cache
    available   bytes of the GPU beside the weights, less a CUDA context
    slot        bytes of the cache of one slot
    host        bytes of the file that stay in the memory of the CPU
    """

    engine: LlamaCpp
    model: Model
    device: str
    ledger: Ledger
    available: int
    slot: int
    host: int

    @property
    def starts(self) -> bool:
        """Whether weights and cache fit, before the compute buffer."""
        return self.slot * self.engine.slots <= self.available

    @property
    def most(self) -> int:
        """How many slots fit, before the compute buffer."""
        return max(0, self.available) // self.slot


def loaded(model: Model, engine: LlamaCpp, *, on: str | int | Device) -> Loaded:
    """What llama.cpp takes of a GPU that has all layers.

    Formula     weights on the GPU + U · `slot_cache`
    Leaves out  the compute buffer, which ggml's planner lays out for the largest graph of this
                build, GPU and batch: its log says it; several GPUs, layers on the CPU, adapters
    Unit        bytes
    Shapes      on: a GPU, a size, or one of Apple's ("Apple 64GB")
    Raises      ValueError for a model whose file or cache is not counted, and for more tokens than
                it has positions
    """
    there = mac(on) or card(on)
    context = model.positions if engine.context is None else engine.context
    if context > model.positions:
        pattern = "context={context} is above the model's {positions} positions"
        raise ValueError(Message(pattern, context=context, positions=model.positions))
    weights, host = file_bytes(model, engine.file)
    slot = slot_cache(model, context, engine.cache)
    figures = {"weights": weights, "kv_cache": engine.slots * slot}
    title = Listed(" · ", [model.name, Message("{engine} on {card}", engine=NAME, card=there.name)])
    ledger = Ledger.of("derived", figures, title=title)
    rest = there.limit - context_of(there) - weights
    return Loaded(engine, model, there.name, ledger, rest, slot, host)


def file_bytes(model: Model, file: str) -> tuple[int, int]:
    """Bytes of the tensors of a GGUF file: of those on the GPU, and of those that the CPU keeps.

    Formula     the sum of R · C / n · block over all tensors, each in the type of `type_of`
    Shapes      a head that is tied is a copy of the embedding on the GPU, in the type of a head
    Leaves out  the tokenizer and other metadata; what an importance matrix (imatrix) changes
    Raises      ValueError for a model that is quantized in another way
    """
    if model.family in OTHERS or model.latent is not None:
        reason = OTHERS.get(model.family, "its cache is a latent")
        pattern = "llama.cpp's files of {family} are not counted: {reason}"
        raise ValueError(Message(pattern, family=model.family, reason=reason))
    gpu = host = 0
    for tensor in model.tensors():
        for layer in range(tensor.copies):
            kind = type_of(model, tensor, layer, file)
            size = blocks(tensor.numel, kind)
            if tensor.name.split(".")[0] in INPUTS:
                host += size
                gpu += size if tensor.name == "embedding" and model.tied else 0
            else:
                gpu += size
    return gpu, host


def type_of(model: Model, tensor: Tensor, layer: int, file: str) -> str:
    """The type of one tensor, as llama-quantize chooses it without an importance matrix."""
    words = tensor.name.split(".")
    name = words[-1]
    if len(tensor.shape) < 2 or name == "bias" or name in KEPT_WHOLE:
        return "F32"
    usual = wanted = FILES[file]
    if usual in WHOLE:
        return usual
    layers, eight = tensor.copies, model.experts == 8
    more = _more_bits(layer, layers)
    if name == "lm_head" or (name == "embedding" and model.tied):
        wanted = "Q8_0" if usual == "Q8_0" else "Q6_K"
    elif name == "v":
        if file in ("Q4_K_M", "Q5_K_M") and more:
            wanted = "Q6_K"
        elif file == "Q4_K_S" and layer < 4:
            wanted = "Q5_K"
        if layers == 80 and wanted == "Q4_K" and model.family in ("llama", "qwen2"):
            wanted = "Q5_K"  # the models of 70 billion
        wanted = "Q8_0" if eight else wanted
    elif name == "k" and eight:
        wanted = "Q8_0"
    elif name in ("down", "experts_down", "shared_down"):
        if file in ("Q4_K_M", "Q5_K_M") and more:
            wanted = "Q6_K"
        elif file == "Q4_K_S" and layer < layers // 8:
            wanted = "Q5_K"
    elif name == "out" and eight and file in ("Q4_K_S", "Q4_K_M"):
        wanted = "Q5_K"
    elif name == "qkv":
        wanted = {"Q4_K_M": "Q5_K", "Q5_K_M": "Q6_K"}.get(file, usual)
    columns = tensor.shape[-1]
    if model.conv1d or (len(tensor.shape) == 3 and model.expert_rows):
        columns = tensor.shape[-2]
        columns = tensor.shape[-1] if words[0] in ENDS else columns
    if columns % BLOCKS[wanted][0]:
        wanted = FALLBACK.get(wanted, "F16")
    return wanted if columns % BLOCKS[wanted][0] == 0 else "F16"


def slot_cache(model: Model, context: int, cache: str) -> int:
    """Bytes of the keys and values of one slot.

    Formula     2 · L · ceil(T / 256) · 256 · K · H / n · block
    Unit        bytes
    Raises      ValueError for a model with windows, and for rows that do not fill the type's blocks
    """
    try:
        near = windows(model)[0]
    except ValueError:
        near = 1
    if near is not None and model.family not in WINDOWS_IGNORED:
        pattern = "llama.cpp's cache of a model with windows is not counted; {family} has them"
        raise ValueError(Message(pattern, family=model.family))
    width = model.kv_heads * model.head_dim
    if width % BLOCKS[CACHES[cache]][0]:
        pattern = "cache={cache}: {width} values of a token do not fill its blocks of {block}"
        sizes = {"width": width, "block": BLOCKS[CACHES[cache]][0]}
        raise ValueError(Message(pattern, cache=cache, **sizes))
    rows = -(-context // PAD) * PAD
    return 2 * model.layers * blocks(rows * width, CACHES[cache])


def blocks(count: int, kind: str) -> int:
    """Bytes of so many values, which fill whole blocks."""
    values, size = BLOCKS[kind]
    return count // values * size


def _more_bits(layer: int, layers: int) -> bool:
    """Whether a mixture gives this layer more bits: use_more_bits, both ends and every third."""
    first = layers // 8
    return layer < first or layer >= 7 * layers // 8 or (layer - first) % 3 == 2
