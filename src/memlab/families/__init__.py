"""Families of models: a file each, whose record says what is special about it.

A family is a `model_type` of Hugging Face transformers, plus nanochat. Its record is data alone:
what its config.json may say, the shape that follows, which network of memlab.step describes its
step, and what of that is proven. A family that is a twist of another says only the twist (`like`).
Adding one is a file here, and a row of tests/more_families.py or tests/mixtures.py. Long, because
every field of a record is explained in one place.

Source      transformers: models/*/configuration_*.py and modeling_*.py
"""

from __future__ import annotations

import os

from ..base.frozen import dataclass, replace

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

REQUIRED = object()  # a key without a default: a forgotten width must not become somebody else's
# What a key of a config.json changes: a field of Model; a step or a call, which is described; no
# byte of either, whatever it says; described for some values alone, any other is refused by name
# (memlab.model.fields); no key of the class: transformers keeps it, and nothing reads it.
SHAPE, STEP, NOTHING, ONLY, OTHER = "shape", "step", "nothing", "only", "other"

# Defaults of Model's flags: those of the llama block, the most common one today.
FLAGS: dict[str, Any] = {
    "tied": False,  # the output head reuses the embedding
    "gated": True,  # the feed-forward layer has a gate matrix
    "norm": "rmsnorm",  # or "layernorm", which has a bias too
    "norm_affine": True,  # the norms have parameters
    "norm_bias": True,  # of layernorm: False leaves it a weight alone
    "block_norms": 2,  # in a layer, those on queries and keys aside: 1 to 4
    "final_norm": True,  # one more norm before the output head
    "qk_norm": False,  # norms on queries and keys, of width H, shared by the heads
    "wide_qk_norm": False,  # ... of all heads at once: N·H and K·H
    "qkv_bias": False,
    "out_bias": False,
    "ff_bias": False,
    "fused_qkv": False,  # one matrix for q, k and v
    "fused_gate": False,  # one matrix for gate and up
    "conv1d": False,  # weights stored [inputs, outputs], the transpose of nn.Linear
    "learned_positions": False,  # otherwise rotary: no parameters
    "position_offset": 0,  # rows of the position table beyond `positions`
    "value_embeddings": False,  # one more table on every second layer, the last included
    "residual_scalars": False,  # learned scalars that mix the residual stream
    "expert_bias": False,  # experts and their router have biases
    "expert_rows": False,  # experts are stored [inputs, outputs]
    "sinks": False,  # a learned score for each head beside those of its tokens
    "shared_gated": False,  # what the shared experts give is weighed by a gate of its own
}
# Of gpt2 and its contemporaries.
CLASSIC = FLAGS | {"norm": "layernorm", "gated": False}
CLASSIC |= {"qkv_bias": True, "out_bias": True, "ff_bias": True}


def effects(
    *, shape: str = "", step: str = "", nothing: str = "", only: str = "", gone: str = ""
) -> dict[str, Any]:
    """Keys of a config.json, and what each of them changes.

    Shapes      names with spaces between them; `gone`: keys of another family that this one lacks
    """
    made: dict[str, Any] = {}
    kinds = ((SHAPE, shape), (STEP, step), (NOTHING, nothing), (ONLY, only), (None, gone))
    for kind, names in kinds:
        for name in names.split():
            made[name] = kind
    return made


# Keys of every family. The step is without a cache, as Trainer runs it, and a call is with one;
# use_cache=False is asked by loops that keep outputs alone: memlab.step.kv_cache.keeps_keys.
EVERY = effects(
    shape="model_type",
    step="dtype torch_dtype attn_implementation _attn_implementation gradient_checkpointing",
    nothing="use_cache transformers_version architectures chunk_size_feed_forward id2label "
    "label2id num_labels problem_type initializer_range bos_token_id eos_token_id pad_token_id "
    "_name_or_path is_decoder pretraining_tp",
    only="quantization_config is_encoder_decoder add_cross_attention return_dict use_return_dict "
    "output_hidden_states output_attentions per_layer_config sliding_window layer_types",
)
ROTARY = effects(
    step="rope_parameters rope_scaling original_max_position_embeddings",
    nothing="rope_theta",
    only="partial_rotary_factor",
)

# Linear layers of an expert before transformers 5, and the parameters of all experts of today.
EXPERTS_OF_LAYERS = {"gate": "gate.weight", "gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
EXPERTS_OF_LAYERS["down_proj"] = "down_proj"

# What `layer_types` calls layers by what they see; llama4_text has chunks in place of windows.
KINDS = ("full_attention", "sliding_attention")
CHUNKED = ("full_attention", "chunked_attention")

# Fields of Model that every config.json says, most by these keys.
SIZES = {
    "layers": ("num_hidden_layers", REQUIRED),
    "d_model": ("hidden_size", REQUIRED),
    "heads": ("num_attention_heads", REQUIRED),
    "vocab": ("vocab_size", REQUIRED),
    "d_ff": ("intermediate_size", REQUIRED),
}

# What may be proven of a family beside its plain step on one device, each against real steps.
PROOFS = {
    "texts": "masks of padded and of packed texts",
    "adapters": "LoRA and its like beside its linear layers",
    "prompt": "a trained prompt before its embeddings",
    "zero3": "the order of its modules under DeepSpeed's stage 3",
    "fsdp_trainer": "Trainer's own FSDP2: accelerate finds its last norm, its head is plain",
    "expert_parallel": "its experts on several ranks",
    "tensor_parallel": "its matrices on several ranks",
    "context_parallel": "its texts on several ranks",
    "pipeline": "its layers on several ranks",
}
HERE = __file__[: -len("__init__.py")]
NAMES = tuple(sorted([n[:-3] for n in os.listdir(HERE) if n.endswith(".py") and n[0].isalpha()]))
# Types without a record here, whose own code was recorded: memlab.families.recorded
RECORDED = tuple(sorted({n[:-5] for n in os.listdir(f"{HERE}../data/networks")} - {*NAMES}))


@dataclass(frozen=True, kw_only=True)
class Family:
    """What is special about a family; what is left out is as in a llama block.

    Its config.json
    shape           field of Model -> (key, default); a default of None leaves the field to Model
    effects         every key that its class knows, and what it changes
    other_names     the other name that its class takes for a key, and which counts first
    nullable        keys that may be null though they have a default: as many key/value heads as
                    query heads then
    dropouts        key -> (what it drops values of, the class's own probability)
    padding         the class's own padding token, where a config says nothing
    padding_row     whether the embedding treats it apart: then it must be one of its rows
    divides_width   its class asks for D to be a multiple of N, though heads may have another width
    null_head_dim   a null for the width of a head is taken for none
    groups          its experts stand in so many groups, of which a token may choose from so many
    first_dense     so many first layers without experts

    Its models
    flags           fields of Model with a default of the family
    layers_path     where the list of layers stands in its module
    modules         name of a matrix -> its module's path inside a layer, where a llama's is another
    feed_forward_path
                    the path of the feed-forward layer inside a layer
    embedding_path  the path of the embedding

    Its step
    network         module and class of memlab.step.networks; None: its step is not described
    attentions      the attention kernels that the network describes
    own_network     the same of memlab's own model of the family
    recorded        keys that its recorded network follows, with the values of its class; None: its
                    network is written in memlab.step.networks
    activation      its key, and its values that are described: the class's own first; none where
                    the network reads it by itself
    caps            keys of numbers that scores or logits are kept below, with the class's own
    scales_logits   the logits are the head's times a number
    names_body      its class names its body, from which losses in chunks of rows are made
    grouped_experts its experts are multiplied in groups, not the rows of all as one batch
    linear_router   its router is a linear layer
    turned          the share of a head that positions turn
    windows         which layers have a sliding window: "all" that a config gives one; "asked", all
                    where use_sliding_window asks for it; "run", all, and a run may say another;
                    "some", named or from one on; "both", by turns or named, and both masks are made
                    whatever they are; "chunks", which are windows of their own kind
    window          the class's own
    window_every    every so many-th layer has none; 0: all have it

    What is proven
    proven          words of PROOFS, with spaces between them
    tables          None: the page has no moments of its steps; else what it has of them where that
                    is not the usual of tools/peaks.py: attentions, losses, heads, ties, dropouts,
                    layers (the kinds of the first and the last: memlab.page.layer_forms), values
                    of the config. "beside": what else it has moments with: adapters, loops, fsdp.
                    "trainer": False where those with Trainer were not held against its sum

    In peft, and in transformers' plans
    lora_targets    peft's own targets where none are said
    ia3_targets     the same of (IA)³
    expert_names    names of before transformers 5, and the parameters of experts that they are now
    shared_targets  layers of a shared expert whose names peft takes for what they say
    shared_whole    a plan for tensor parallelism leaves the shared expert whole
    """

    shape: Mapping[str, tuple[str, Any]] = {}
    effects: Mapping[str, str] = EVERY
    other_names: Mapping[str, str] = {}
    nullable: tuple[str, ...] = ()
    dropouts: Mapping[str, tuple[str, float]] = {}
    padding: int | None = None
    padding_row: bool = True
    divides_width: bool = False
    null_head_dim: bool = True
    groups: tuple[int, int] | None = None
    first_dense: int = 0
    flags: Mapping[str, Any] = FLAGS
    layers_path: str = "model.layers"
    modules: Mapping[str, str] = {}
    feed_forward_path: str = "mlp"
    embedding_path: str = "model.embed_tokens"
    network: tuple[str, str] | None = None
    attentions: tuple[str, ...] = ("sdpa", "eager")
    own_network: tuple[str, str] | None = None
    recorded: Mapping[str, Any] | None = None
    activation: tuple[str, tuple[str, ...]] = ("hidden_act", ("silu", "swish"))
    caps: Mapping[str, float | None] = {}
    scales_logits: bool = False
    names_body: bool = True
    grouped_experts: bool = True
    linear_router: bool = False
    turned: float = 1.0
    windows: str = ""
    window: int | None = 4096
    window_every: int = 0
    proven: str = ""
    tables: Mapping[str, Any] | None = None
    lora_targets: tuple[str, ...] = ()
    ia3_targets: tuple[str, ...] = ()
    expert_names: Mapping[str, str] = {}
    shared_targets: tuple[str, ...] = ()
    shared_whole: bool = False

    def config(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a config.json that say these fields of Model, of those that it has."""
        return {self.shape[field][0]: size for field, size in sizes.items() if field in self.shape}

    @property
    def mixture(self) -> bool:
        """Whether its feed-forward layers are mixtures of experts."""
        return "experts" in self.shape

    @property
    def latent(self) -> bool:
        """Whether keys and values are made from a latent."""
        return "kv_lora_rank" in self.effects

    def proves(self, what: str) -> bool:
        """Whether a word of PROOFS is proven."""
        return what in self.proven.split()

    @property
    def eager_alone(self) -> bool:
        """Whether no kernel of SDPA is described: its attention is written out."""
        return "sdpa" not in self.attentions

    def counted(self, axis: str, usual: Any = ()) -> Any:
        """What the page has moments of along an axis of its tables, if it has any of the family."""
        return () if self.tables is None else self.tables.get(axis, usual)

    def reads(self, key: str) -> bool:
        """Whether a step or a call follows this key, whatever it says."""
        return self.effects.get(key) == STEP


MERGED = ("shape", "effects", "dropouts", "flags", "modules")
# What another family's record says of that one alone.
OWN: tuple[str, ...] = ("divides_width", "network", "attentions", "own_network", "proven")
OWN += ("tables", "lora_targets", "ia3_targets", "expert_names", "shared_targets", "shared_whole")


def like(name: str, *, defaults: Mapping[str, Any] | None = None, **twist: Any) -> Family:
    """The record of another family with a twist; what is proven of that one is not of this.

    defaults    field of Model -> another default of the key that says it
    twist       fields of Family; a mapping adds to the other's, and a key with None is gone
    """
    base, made = record_of(name), {field: getattr(Family, field) for field in OWN}
    for field, value in twist.items():
        made[field] = value
        if field in MERGED:
            whole = getattr(base, field) | value
            made[field] = {key: whole[key] for key in whole if whole[key] is not None}
    for field, value in (defaults or {}).items():
        shape = made.get("shape", base.shape)
        made["shape"] = shape | {field: (shape[field][0], value)}
    return replace(base, **made)


def record_of(name: str) -> Family:
    """The record of a family, read when it is asked for.

    Raises      ValueError for an unknown one
    """
    if name in RECORDED:
        recorded: Any = __import__(f"{__name__}.recorded", None, None, ["record"])
        made: Family = recorded.record(name)
        return made
    if name not in NAMES:
        raise ValueError(f"unknown family {name!r}; known: {', '.join(NAMES)}")
    found: Family = __import__(f"{__name__}.{name}", None, None, ["FAMILY"]).FAMILY
    return found


def config_types() -> list[str]:
    """The values of model_type whose config.json is described."""
    return [name for name in NAMES if record_of(name).shape]


def has_config(name: Any) -> bool:
    """Whether this is one of `config_types`."""
    return name in NAMES and bool(record_of(name).shape)


def tabled(beside: str = "") -> list[str]:
    """The families of whose steps the page has moments, beside adapters, loops or fsdp."""
    known = [name for name in NAMES if record_of(name).tables is not None]
    return [name for name in known if not beside or beside in record_of(name).counted("beside")]


def proven(what: str) -> list[str]:
    """The families of which a word of PROOFS is proven."""
    return [name for name in NAMES if record_of(name).proves(what)]
