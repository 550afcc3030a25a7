"""Engine: how a serving engine is started, as one value."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..model import Model
from ..units import MOST, at_least_one, whole
from .quantized import Quantized, named, published

ENGINES = ("vllm", "sglang")
KV_DTYPES = ("auto", "bf16", "fp16", "fp8", "fp8_e5m2", "fp8_per_token_head", "int8_per_token_head")
SAMPLERS = ("fused", "sort")
DTYPES = ("bf16", "fp16", "fp32")
KNOWN = {"name": ENGINES, "kv_dtype": KV_DTYPES, "sampler": SAMPLERS, "dtype": DTYPES}
AT_LEAST_ONE = ("max_model_len", "block_size", "batched", "seqs", "tensor")
COUNTS = ("prefix", "weights", "activations", "non_torch", "cuda_graphs")
UNQUANTIZED = "none"  # the checkpoint in 16 bits, of a model that is published in fewer
ONLY_VLLM = ("block_size", "batched", "seqs", "activations", "cuda_graphs")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How an engine is started: its own flags, under their own names where they are numbers.

    utilization     vllm: gpu_memory_utilization, None: 0.92 as since 0.21; sglang:
                    mem_fraction_static, which must be said
    max_model_len   tokens of the longest request; None: the model's positions
    batched, seqs   vLLM's max_num_batched_tokens and max_num_seqs; None: its server's defaults
    tensor          ranks of tensor parallelism; what is said below is of one of them
    dtype           of weights and activations: bf16, fp16 or fp32
    quantization    how the checkpoint stores its matrices: a Quantized, or the name of its format;
                    "none": all in `dtype`. None: as the model is published
    sampler         fused, or sort: torch.sort, as vLLM had it before its own kernel for top-k
    prefix          tokens that all sequences have in common, for the last line
    weights, activations, non_torch, cuda_graphs    bytes as your own log says them; None: derived,
                    for non_torch a reading that others posted, for CUDA graphs 0
    """

    name: str = "vllm"
    utilization: float | None = None
    max_model_len: int | None = None
    block_size: int | None = None
    kv_dtype: str = "auto"
    batched: int | None = None
    seqs: int | None = None
    tensor: int = 1
    dtype: str = "bf16"
    quantization: Quantized | str | None = None
    sampler: str = "fused"
    prefix: int = 0
    weights: int | None = None
    activations: int | None = None
    non_torch: int | None = None
    cuda_graphs: int | None = None

    def __post_init__(self) -> None:
        for field, words in KNOWN.items():
            if getattr(self, field) not in words:
                raise ValueError(
                    f"{field}={getattr(self, field)!r} is not described; known: {', '.join(words)}"
                )
        if isinstance(self.quantization, str) and self.quantization != UNQUANTIZED:
            made = named(self.quantization)
            object.__setattr__(self, "quantization", made)
        for field in AT_LEAST_ONE:
            if getattr(self, field) is not None:
                at_least_one(field, getattr(self, field), MOST)
        for field in COUNTS:
            if getattr(self, field) is not None:
                whole(field, getattr(self, field))
        if self.name == "sglang":
            if self.utilization is None:
                raise ValueError(
                    "sglang: say mem_fraction_static, which its log prints; its default is "
                    "worked out anew by each version"
                )
            for field in ONLY_VLLM:
                if getattr(self, field) is not None:
                    raise ValueError(f"{field}={getattr(self, field)} is vllm's; sglang has none")

    def loads(self, model: Model) -> Quantized | None:
        """How the matrices of the weights that it loads are packed; None: not at all.

        Raises      ValueError where the model has nothing that the format packs
        """
        if self.quantization is None:
            return published(model)
        if not isinstance(self.quantization, Quantized):
            return None
        if not any([self.quantization.packs(tensor) for tensor in model.tensors()]):
            raise ValueError(
                f"{self.quantization.format} would pack nothing of {model.name}, which has no "
                "experts; --quantization none, or another format"
            )
        return self.quantization
