"""LoRA: thin matrices beside frozen ones, which are trained in their place.

r rank of an adapter · [F, D] a linear layer's weight: an adapter is a [r, D] and b [F, r]
X experts · [X, F, D] the weight of all experts of a layer: an adapter is a [X·r, D] and b [F, X·r]
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Message
from ..formats import storage
from ..terms.optimizer import numel
from ..units import MANY, at_least_one

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Model
    from ..model.tensors import Tensor

BLOCK = 64  # values under one scale of nf4: Dettmers et al. 2023, section 3
LEVELS = 16  # of nf4: bitsandbytes keeps a table of them with each matrix
DTYPES = ("fp32", "bf16", "fp16")
TABLES = ("embedding", "lm_head")
# Of which a step in nf4 is described; those of the others are rehearsed.
BASES = ("nf4", "nf4-dq", "int8")
# Parameters of a mixture that are no linear layers: peft's target_parameters.
WRAPPED = ("experts_up", "experts_down", "router")


@dataclass(frozen=True)
class Lora:
    """Adapters of rank r beside every layer's linear layers of these names.

    targets     names of Model.tensors(): q, k, v, out (gpt2: qkv), gate, up, down; of a mixture
                experts_up, experts_down and router, which peft calls target_parameters and adds to
                what it writes out anew of the whole parameter in each forward pass
    base        the format of the frozen linear weights of the layers, if it is not the recipe's:
                QLoRA. nf4 is described, written out where it is used: on transformers by
                bitsandbytes (bnb_4bit_compute_dtype=torch.bfloat16), else by memlab.lab.qlora. All
                else is in the recipe's weights; in fp32 prepare_model_for_kbit_training leaves it.
                Experts are no linear layers: they are of all else
    keep_wide   memlab.lab: autograd keeps the weight that is written out until backward
    dtype       the format of the adapters. None: that of whose code runs them: peft makes them in
                fp32 beside weights of 16 bits and casts their input (autocast_adapter_dtype=True),
                memlab.lab.lora in the weights' own. Said, it is fp32 or that of the weights
    dropout     the probability with which values of an adapter's input are dropped
    ranks       (target, its rank) of those that have another one: peft's rank_pattern
    saved       tables that are trained in full, each a copy beside the frozen one, in the weights'
                own format: embedding, lm_head. peft's modules_to_save
    dora        a length of its own for each row of an adapted weight, trained beside its direction:
                a vector [F] with each adapter, peft's use_dora
    Source      Hu et al. 2021, arXiv:2106.09685, Dettmers et al. 2023, arXiv:2305.14314, and Liu et
                al. 2024, arXiv:2402.09353; run as peft 0.21, or as memlab.lab.lora and
                memlab.lab.qlora do
    Leaves out  scales of scales (bnb_4bit_use_double_quant); memlab.lab's base in nf4 under
                autocast and on CUDA
    Raises      ValueError for rank 0, no targets, a base or a format that is not described
    """

    rank: int
    targets: tuple[str, ...] = ("q", "v")
    base: str | None = None
    keep_wide: bool = False
    dtype: str | None = None
    dropout: float = 0.0
    ranks: tuple[tuple[str, int], ...] = ()
    saved: tuple[str, ...] = ()
    dora: bool = False

    def __post_init__(self) -> None:
        at_least_one("rank", self.rank, MANY)
        if isinstance(self.targets, str):
            raise TypeError(f"targets={self.targets!r} is text; a tuple such as ('q', 'v')")
        object.__setattr__(self, "targets", tuple(self.targets))
        if not self.targets:
            raise ValueError("targets=(): adapters need at least one layer to stand beside")
        if self.base is not None and self.base not in BASES:
            raise ValueError(f"base={self.base!r} is not described for adapters; known: nf4")
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} of adapters; known: {', '.join(DTYPES)}")
        object.__setattr__(self, "ranks", tuple([tuple(pair) for pair in self.ranks]))
        for name, rank in self.ranks:
            if name not in self.targets:
                raise ValueError(f"ranks name {name!r}, which is none of the targets")
            at_least_one(f"rank of {name}", rank, MANY)
        if isinstance(self.saved, str):
            raise TypeError(f"saved={self.saved!r} is text; a tuple such as ('lm_head',)")
        object.__setattr__(self, "saved", tuple(self.saved))
        for name in self.saved:
            if name not in TABLES:
                raise ValueError(f"saved={name!r} is not described; known: {', '.join(TABLES)}")
        if not isinstance(self.dora, bool):
            raise TypeError(f"dora={self.dora!r}; True or False is needed")
        p = self.dropout
        if isinstance(p, bool) or not isinstance(p, (int, float)):
            raise TypeError(f"dropout={p!r} is a {type(p).__name__}; a number is needed")
        if not 0 <= p < 1:
            raise ValueError(f"dropout={p} is not a probability from 0 to below 1")

    def told(self) -> str:
        """What a title says of it."""
        words = f"{'DoRA' if self.dora else 'LoRA'} r={self.rank} on {','.join(self.targets)}"
        words += f" in {self.dtype}" if self.dtype else ""
        words += f" and {','.join(self.saved)}" if self.saved else ""
        return words + (f" over {self.base}" if self.base else "")

    def rank_of(self, target: str) -> int:
        """The rank beside this target: its own, or the one of all."""
        for name, rank in self.ranks:
            if name == target:
                return rank
        return self.rank

    def format(self, weights: str, *, peft: bool, own: str | None = None) -> str:
        """The format of the adapters beside weights of this one.

        peft        whether peft makes them, or memlab.lab.lora
        own         what a program makes of them afterwards, if it does: Run.adapters_in
        Source      peft, tuners/tuners_utils.py: cast_adapter_dtype
        Raises      ValueError for a format that such code does not make beside these weights
        """
        usual = own or ("fp32" if peft and weights in ("bf16", "fp16") else weights)
        if self.dtype not in (None, weights, usual):
            who = "peft" if peft else "memlab.lab.lora"
            raise ValueError(
                f"adapters in {self.dtype} beside weights in {weights}: {who} makes them in {usual}"
            )
        return self.dtype or usual

    def check(self, model: Model) -> None:
        """Refuse what this model has no place for.

        Raises      ValueError for an unknown target and for rows that blocks of 64 do not fill
        """
        known, coded = beside(model), coded_layers(model)
        for name in self.targets:
            if name not in known:
                raise ValueError(
                    f"target {name!r} is not described; known: {', '.join(sorted(known))}"
                )
        for name in sorted(coded) if self.base else ():
            inputs = coded[name].shape[-1]
            if inputs % BLOCK:
                pattern = "{name}: {inputs} inputs do not fill blocks of {block}"
                raise ValueError(Message(pattern, name=name, inputs=inputs, block=BLOCK))

    def base_bytes(self, model: Model, dtype: str) -> int:
        """Bytes of all weights of the model but the adapters.

        Formula     nf4: half a byte for each value of a layer's linear weights, and a scale of 4
                    bytes for 64 of them; all else, and without `base` everything, in `dtype`
        """
        if self.base is None:
            return storage(model.parameter_count, dtype)
        linear = sum(tensor.count for tensor in coded_layers(model).values())
        return storage(model.parameter_count - linear, dtype) + storage(linear, self.base)

    def bias_count(self, model: Model) -> int:
        """Values of the biases of all layers of codes, which compute in bf16 beside fp32.

        Source      bitsandbytes, nn/modules.py: Linear4bit.forward, which makes its bias
                    narrow for good when it is first called
        """
        names = {f"{tensor.name}.bias" for tensor in coded_layers(model).values()}
        return sum([tensor.count for tensor in model.tensors() if tensor.name in names])

    def codes_beside(self, model: Model, dtype: str) -> int:
        """What bitsandbytes has more than codes and scales: its levels, less what biases lose.

        dtype       of all that is no codes; fp32 is what prepare_model_for_kbit_training leaves
        Formula     `level_bytes`, beside fp32 less 2 bytes for each bias of a layer of codes
        """
        return self.level_bytes(model) - 2 * self.bias_count(model) * (dtype == "fp32")

    def level_bytes(self, model: Model) -> int:
        """Bytes of the tables of levels that bitsandbytes keeps, one with each matrix of codes.

        Formula     16 levels · 4 bytes for each linear layer of a block
        Source      bitsandbytes, functional.py: quantize_4bit
        """
        return 4 * LEVELS * sum([tensor.copies for tensor in coded_layers(model).values()])

    def parameter_count(self, model: Model) -> int:
        """Parameters of all adapters.

        Formula     sum over the adapted matrices [F, D] of r · (D + F), with DoRA of F more; of all
                    experts [X, F, D] in one parameter X · r · (D + F)
        """
        known = beside(model)
        adapted = [(known[name], self.rank_of(name)) for name in self.targets]
        out = -1 if model.conv1d else 0  # where a matrix says its outputs
        lengths = sum([t.shape[out] * t.copies for t, _ in adapted]) if self.dora else 0
        matrices = [(rank * t.numel // numel(t.shape[-2:]), t) for t, rank in adapted]
        return lengths + sum([rank * sum(t.shape[-2:]) * t.copies for rank, t in matrices])

    def saved_count(self, model: Model) -> int:
        """Parameters of the copies that are trained in full beside the frozen originals.

        Formula     V · D for each table, of tied ones too: no two copies are tied
        Source      peft, utils/other.py: ModulesToSaveWrapper, ensure_weight_tying=False
        """
        (table,) = [t for t in model.tensors() if t.component == "embedding"]
        return table.count * len(set(self.saved))


def beside(model: Model) -> dict[str, Tensor]:
    """What can have an adapter in a model's blocks: its linear layers, and of a mixture the rest.

    Formula     an adapter beside all experts [X, F, D] of a layer has X · r · (D + F) parameters
    Source      peft, tuners/lora/config.py: target_modules and target_parameters
    """
    return _inside(model, lambda name, linear: linear or name in WRAPPED)


def coded_layers(model: Model) -> dict[str, Tensor]:
    """The layers that bitsandbytes makes codes of: those of torch.nn.Linear itself.

    Formula     a layer [F, D] of nf4 takes F · D · (1/2 + 4/64) bytes, its scales included
    Source      transformers, integrations/bitsandbytes.py: replace_with_bnb_linear, which
                passes over experts, parameters of three dimensions, and over a router that is a
                parameter or a class of its own
    """
    return _inside(model, lambda name, linear: linear and name not in WRAPPED)


def linear_layers(model: Model) -> dict[str, Tensor]:
    """The linear layers inside a model's blocks, by the last part of their names.

    Formula     an adapter of rank r beside a layer [F, D] has r · (D + F) parameters
    Source      Hu et al. 2021, arXiv:2106.09685, section 4.1
    """
    return _inside(model, lambda name, linear: linear)


def _inside(model: Model, wanted: Callable[[str, bool], bool]) -> dict[str, Tensor]:
    found = {}
    for tensor in model.tensors():
        name = tensor.name.split(".")[-1]
        if tensor.component in ("attention", "feed_forward") and wanted(name, tensor.linear):
            found[name] = tensor
    return found
