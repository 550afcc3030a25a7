"""What a network needs to know to describe one training step: shapes, dtype, attention, dropout."""

from __future__ import annotations

from collections.abc import Mapping

from ...adapters import Ia3, Lora, Prompt, Vera
from ...adapters.lora import coded_layers
from ...base.frozen import dataclass
from ...model import Model
from ..adapters.lora import ADAPTERS, DTYPES, other_shapes
from ..adapters.lora import shapes as adapted_shapes
from .storage_log import Dim

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Setting:
    """A model, a batch, and the choices of its implementation; sizes know their letters."""

    model: Model
    dtype: str
    batch: int
    tokens: int
    attention: str = "sdpa"
    attention_dropout: float = 0.0
    residual_dropout: float = 0.0  # of what attention and feed-forward layers add to the stream
    embedding_dropout: float = 0.0
    extra: Mapping[str, Any] | None = None  # keys of a config.json that change no parameter
    window: int | None = None  # positions that a token sees, itself included
    checkpoint: bool = False  # of each layer
    past: int | None = None  # tokens in the cache before the call, where there is one
    loss_chunks: int = 0  # of rows in the loss; 0: all logits at once
    library_loss: str = ""  # a library's, from the head's input; "": another
    own_loss: bool = False  # cross-entropy of the logits as they are: memlab.Run's `cross_entropy`
    fused_head: tuple[str, ...] = ()  # what TRL's head gives for each token; (): another head
    completion: int | None = None  # tokens of each sequence that are learned; None: all
    texts: str = "full"  # how rows are filled: memlab.Run's `texts`
    keeps_output: bool = False  # the caller keeps the model's output
    counted: bool = False  # the loss is a sum, divided by the labels of all micro-batches
    lora: Lora | None = None  # adapters beside linear layers
    adapter: Ia3 | Vera | Prompt | None = None  # of another kind
    peft: bool = False  # which peft makes, not memlab.lab
    looked_for: int = 0  # texts in a row whose starts each layer finds; 0: they came with the batch
    shared: bool = False  # among ranks whose positions jump: memlab.step.parallel.context_parallel
    adapter_dtype: str | None = None  # in which they compute; None: as such code makes them
    sliding: tuple[bool, ...] | None = None  # layers that have the window; None: every layer

    def __getattr__(self, letter: str) -> Dim:
        model = self.__dict__["model"]
        sizes = {
            "B": self.__dict__["batch"],
            "T": self.__dict__["tokens"],
            "L": model.layers,
            "D": model.d_model,
            "E": model.embed_dim,
            "F": model.d_ff,
            "N": model.heads,
            "K": model.kv_heads,
            "H": model.head_dim,
            "V": model.vocab,
            "X": model.experts,
            "k": model.experts_per_token,
            "M": model.expert_ff,
            "P": model.positions,
            "G": model.heads // model.kv_heads,
        }
        if letter not in sizes:
            raise AttributeError(letter)
        return Dim(letter, sizes[letter])

    @property
    def seen(self) -> Dim:
        """Tokens that the last one sees, those in the cache and itself included: S, or T."""
        return Dim("S", self.past + self.tokens) if self.past else self.T

    def within(self, window: int | None) -> Dim:
        """The same where a window leaves W - 1 tokens of a cache: as many, and the new ones.

        A mask for layers of which there are none is as wide as one for the others.
        """
        if self.sliding is not None and all(self.sliding):
            window = self.window
        elif self.sliding is not None and not any(self.sliding):
            window = None
        if not self.past or not window or self.past < window:
            return self.seen
        return Dim("W", window - 1 + self.tokens)

    @property
    def cached(self) -> bool:
        """Whether keys and values come from a cache, where they lie head by head."""
        return self.past is not None

    @property
    def masked_texts(self) -> str:
        """How rows are filled as masks know it: beside a cache nobody looks for several texts.

        Source      transformers, masking_utils.py: _preprocess_mask_arguments
        """
        return "full" if self.cached and self.texts == "packed" else self.texts

    def linear(
        self, name: str, outputs: int, inputs: int, bias: bool
    ) -> dict[str, tuple[int, ...]]:
        """Shapes of a linear layer's weight, bias and adapter, in the order of registration."""
        if self.lora is not None:
            return adapted_shapes(self.lora, name, outputs, inputs, bias, peft=self.peft)
        if self.adapter is not None:
            return other_shapes(self.adapter, name, outputs, inputs, bias)
        shapes: dict[str, tuple[int, ...]] = {name: (outputs, inputs)}
        return shapes | {f"{name}.bias": (outputs,)} if bias else shapes

    def dtype_of(self, name: str) -> str:
        """The format of one of these: codes and their scales have their own."""
        end = name.split(".")[-1]
        beside = self.lora or self.adapter
        if beside is not None and end in ADAPTERS:
            return self.adapter_dtype or beside.format(self.dtype, peft=self.peft)
        if end == "bias" and self.peft and self.lora is not None and self.lora.base:
            coded = name.removesuffix(".bias") in coded_layers(self.model)
            return "bf16" if coded and self.dtype == "fp32" else self.dtype  # see Lora.bias_count
        return DTYPES.get(end, self.dtype)

    @property
    def rows(self) -> Dim:
        """All tokens of the batch: B·T."""
        return Dim("B·T", self.batch * self.tokens)

    @property
    def learned(self) -> Dim:
        """Tokens of each sequence that have a label before them: those of the completion."""
        return Dim("(T-1)", self.T - 1) if self.completion is None else Dim("C", self.completion)

    @property
    def queries(self) -> Dim:
        """The width of all query heads: N·H."""
        return Dim("N·H", self.model.heads * self.model.head_dim)

    @property
    def attended(self) -> Dim:
        """The width of what attention gives: N·H, or of the values of latent attention N·U."""
        return Dim(f"N·{self.values.letters}", self.model.heads * self.values)

    @property
    def values(self) -> Dim:
        """The width of a head's values: H, or U of latent attention."""
        latent = self.model.latent
        return self.H if latent is None else Dim("U", latent.value)

    @property
    def keys(self) -> Dim:
        """The width of all key heads, and of all value heads: K·H."""
        return Dim("K·H", self.model.kv_heads * self.model.head_dim)
