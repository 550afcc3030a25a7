"""Quantized: how a checkpoint stores the matrices of its layers, and which of them it leaves."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..formats import storage
from ..model import Model
from ..model.tensors import Tensor
from ..terms.packed import FLAT, LAYOUTS, packed, parts

PARTS = ("attention", "feed_forward", "experts")
# Small matrices that every checkpoint leaves in 16 bits: they choose, and do not transform.
CHOOSERS = ("router", "shared_router", "value_gate")
# What the repositories of these models hold, and so what an engine loads where nothing else is
# said: config.json of openai/gpt-oss-*, deepseek-ai/DeepSeek-V3.
PUBLISHED = {"gpt-oss-20b": "mxfp4", "gpt-oss-120b": "mxfp4", "deepseek-v3": "fp8-block"}
# To what multiple an engine's kernel for experts in mxfp4 pads their width M and the model's D, and
# whether it pads the scales too: vLLM, mxfp4.py. Triton's layout on Hopper is not written there;
# that it pads the codes alone is read from two start-up logs (tests/test_packed.py).
KERNELS = {"marlin": (128, 256, True), "triton": (64, 256, False), "trtllm": (256, 256, True)}
ONLY_EXPERTS = ("attention", "feed_forward")  # what openai's mxfp4 leaves


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """How a checkpoint stores the matrices of its layers.

    format      memlab.terms.packed.FORMATS: gptq, awq, fp8-block, mxfp4 ...
    group       inputs that share a scale; None: as the format's checkpoints usually have it
    keeps       parts of a layer that stay as they were: attention, feed_forward (the dense layers
                and shared experts), experts. Embedding, head, norms, biases and routers always do
    symmetric, act_order    of gptq: sym and desc_act in its config
    Raises      ValueError for another format, a group that the format has not, or another part
    """

    format: str
    group: int | None = None
    keeps: tuple[str, ...] = ()
    symmetric: bool = True
    act_order: bool = False

    def __post_init__(self) -> None:
        packed(0, inputs=0, format=self.format, group=self.group)
        for part in self.keeps:
            if part not in PARTS:
                raise ValueError(f"keeps={part!r} is no part; known: {', '.join(PARTS)}")

    def packs(self, tensor: Tensor) -> bool:
        """Whether a tensor is packed: the matrix of a layer in a part that is not kept."""
        if tensor.component not in PARTS or len(tensor.shape) < 2:
            return False
        name = tensor.name.split(".")[-1]
        part = "experts" if name.startswith("experts_") else tensor.component
        return name != "bias" and name not in CHOOSERS and part not in self.keeps

    def bytes(self, outputs: int, inputs: int) -> int:
        """Bytes of one packed matrix in the checkpoint's files."""
        return packed(outputs, inputs=inputs, format=self.format, group=self.group)

    def kept(self, outputs: int, inputs: int) -> tuple[int, ...]:
        """Bytes of the tensors that an engine keeps of one packed matrix.

        Source      vLLM, gptq_marlin.py: of symmetric codes the zero points go when they are
                    packed anew, and without act_order the index too; the rest as in the files
        Leaves out  cards before compute capability 8.9, where Marlin writes the scales of FP8
                    blocks out in 16 bits, one for 128 inputs of each output
        """
        made = parts(outputs, inputs=inputs, format=self.format, group=self.group)
        if self.format.startswith("gptq") and self.symmetric:
            return made[:2] + (made[3:] if self.act_order else ())
        return made

    def padded(self, outputs: int, inputs: int, name: str, kernel: str) -> tuple[int, ...]:
        """The same of one matrix of experts in mxfp4, as the engine's kernel wants it."""
        width, stream, scales = KERNELS[kernel]
        tall, wide = (stream, width) if name == "experts_down" else (width, stream)
        size = -(-outputs // tall) * tall, -(-inputs // wide) * wide
        made = self.kept(*size)
        return made if scales else (made[0], self.kept(outputs, inputs)[1])

    def groups(self) -> tuple[int, int]:
        """Outputs and inputs that share a scale; 1 where a cut anywhere leaves whole groups."""
        if self.format in FLAT:
            return 1, 1
        tall, wide = LAYOUTS[self.format][1], LAYOUTS[self.format][2]
        wide = wide if self.group is None else self.group
        return tall or 1, 1 if wide in (0, -1) else wide

    def told(self) -> str:
        """The format, and the groups where they are not the usual ones."""
        return self.format if self.group is None else f"{self.format}, groups of {self.group}"


def matrices(model: Model, tensor: Tensor) -> tuple[int, int, int]:
    """How many matrices lie in a tensor, and the outputs and inputs of each.

    Gate and up of an expert lie side by side in one tensor, and each is packed by itself.
    """
    if len(tensor.shape) == 2:
        outputs, inputs = tensor.shape
        return (1, inputs, outputs) if model.conv1d else (1, outputs, inputs)
    count, outputs, inputs = tensor.shape
    if model.expert_rows:
        outputs, inputs = inputs, outputs
    if tensor.name.endswith("experts_up"):
        return 2 * count, outputs // 2, inputs
    return count, outputs, inputs


def kernel_on(device: str) -> str:
    """vLLM's kernel for experts in mxfp4 on a card of this name.

    Source      vLLM, mxfp4.py, get_mxfp4_backend: Triton on Hopper, TRTLLM on Blackwell's data
                centre cards, else Marlin
    """
    if any([card in device for card in ("H100", "H200", "H20", "GH200")]):
        return "triton"
    return "trtllm" if any([card in device for card in ("B200", "B300")]) else "marlin"


def published(model: Model) -> Quantized | None:
    """What the repository of a preset holds instead of 16 bits; None: it holds those."""
    format = PUBLISHED.get(model.name)
    if format is None or model.config:  # a config says itself how its weights are stored
        return None
    return named(format)


def named(format: str) -> Quantized:
    """What checkpoints of this format usually pack: those in mxfp4 their experts alone.

    Raises      as `Quantized`
    """
    return Quantized(format=format, keeps=ONLY_EXPERTS if format == "mxfp4" else ())


def checkpoint(model: Model, how: Quantized | None = None, format: str = "bf16") -> int:
    """Bytes of all tensors of a checkpoint's files: the total_size of its index.

    how         None: as the model is published, and in `format` where that is not quantized
    format      of everything that is not packed
    Unit        bytes, a whole number
    Source      openai/gpt-oss-20b, model.safetensors.index.json: 13,761,264,768
    Leaves out  buffers, and weights that files hold beside the model (a draft layer)
    """
    packs = published(model) if how is None else how
    total = 0
    for tensor in model.tensors():
        if packs is not None and packs.packs(tensor):
            many, outputs, inputs = matrices(model, tensor)
            total += many * packs.bytes(outputs, inputs) * tensor.copies
        else:
            total += storage(tensor.count, format)
    return total
