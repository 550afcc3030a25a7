"""What people give on the command line, as values: a model, a recipe, a run.

No flag has a default here. What is not said is left to `Recipe` and `Run`, whose defaults are those
of every other door. Flags of adapters are in given_adapters.
"""

from __future__ import annotations

import argparse
import os

from ..model import Model, presets
from ..recipe import Recipe
from ..recipe.chosen import PRECISIONS, recipe_for
from ..recipe.parallelism import DTYPES, SCHEDULES, SYNCS, Sharding
from ..run import HOLDS, KNOWN, OFFLOAD, Run
from .given_adapters import adapters_of, add_adapters

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ..recipe.chosen import Configured

    Found = TypeVar("Found")

OF_LORA = (
    "targets",
    "base",
    "dtype",
    "dropout",
    "saved",
    "dora",
)  # --lora-NAME, beside --lora-rank
SPLITS = {"tensor": "matrices", "pipeline": "layers", "context": "tokens"}
# Flag, a field of Run that takes one of the words that KNOWN has for it, and what it is.
WORDS = (
    ("attention", "default: what the config says, else sdpa"),
    ("kernel", "of SDPA on CUDA (default: torch's choice)"),
    ("backend", "whose kernels run it (default cuda)"),
    ("implementation", "whose code runs the model (default transformers)"),
    ("optimizer-impl", "the optimizer's loop (default: torch's foreach on cuda, forloop on cpu)"),
    ("loop", "whose program runs the steps, and what it holds beside them (default plain)"),
    ("reference", "of dpo and grpo: a second model, or its numbers alone (default the trainer's)"),
    ("checkpoint", "compute each layer's activations again in backward (default none)"),
    ("loss", "all logits at once, in chunks of rows, or TRL's fused head (default plain)"),
)
NUMBERS = (
    ("batch", int, "N", "sequences in one micro-batch (default 1)"),
    ("tokens", int, "N", "in each sequence; without it, no step"),
    ("completion", int, "N", "tokens of each sequence that TRL's loops learn (default all)"),
    ("micro-batches", int, "N", "before one step of the optimizer (default 1)"),
    ("loss-chunks", int, "N", "chunks of rows in a chunked loss (default 8)"),
    ("dropout", float, "P", "of every dropout (default: what the config or its class says)"),
    ("window", int, "N", "mistral's sliding window, 0 for none (default: the config's)"),
)
LISTS = (
    ("frozen", "components whose weights are not trained: embedding, attention, ..."),
    ("offload", f"what waits on a host: {', '.join(OFFLOAD)}"),
    ("holds", f"what the loop keeps beside the step: {', '.join(HOLDS)}"),
)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that every command about a model takes."""
    words = "a preset (`memlab models`), a config.json, or its folder"
    parser.add_argument("model", metavar="CONFIG", help=words)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """Formats and optimizer."""
    group = parser.add_argument_group("formats", "default: the config's dtype, else fp32")
    group.add_argument("--recipe", help="see `memlab recipes`")
    group.add_argument("--precision", choices=sorted(PRECISIONS))
    group.add_argument("--optimizer", help="default: the recipe's")


def add_run(parser: argparse.ArgumentParser) -> None:
    """The fields of memlab.Run, one flag each."""
    group = parser.add_argument_group("the run", "what is not said is what a GPU user gets")
    for flag, kind, metavar, words in NUMBERS:
        group.add_argument(f"--{flag}", type=kind, metavar=metavar, help=words)
    for flag, words in WORDS:
        group.add_argument(f"--{flag}", choices=KNOWN[flag.replace("-", "_")], help=words)
    words = "torch.compile's backend, for `memlab trace` (without one: inductor)"
    known = KNOWN["compile"]
    group.add_argument("--compile", choices=known, nargs="?", const=known[0], help=words)
    for flag, words in LISTS:
        group.add_argument(f"--{flag}", metavar="A,B", help=words)
    words = "update each weight as soon as its gradient is complete"
    group.add_argument("--step-in-backward", action="store_true", default=None, help=words)
    words = "clip the gradients' norm before the optimizer's step (default: as the loop does)"
    group.add_argument("--clip", action=argparse.BooleanOptionalAction, default=None, help=words)
    add_adapters(group)


def add_call(parser: argparse.ArgumentParser) -> None:
    """Flags of a call in inference."""
    group = parser.add_argument_group("inference")
    group.add_argument("--phase", choices=KNOWN["phase"], help="default train")
    words = "prefill: of all tokens, or of the last one as generate() asks (default all)"
    group.add_argument("--logits", choices=KNOWN["logits"], help=words)
    words = "under torch.inference_mode() instead of torch.no_grad()"
    group.add_argument("--inference-mode", action="store_true", default=None, help=words)


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Flags that say what is divided among several devices."""
    words = "what stays on one of them, and with --tokens the peak of --fsdp or of --pipeline"
    group = parser.add_argument_group("several devices", words)
    words = "FSDP2 over N ranks: --ranks N --zero 3, the batch of one rank"
    group.add_argument("--fsdp", type=int, metavar="N", help=words)
    for flag in ("param", "reduce"):
        words = "of MixedPrecisionPolicy (default: as weights are stored)"
        group.add_argument(f"--{flag}-dtype", choices=DTYPES, help=words)
    words = "keep gathered layers until backward: reshard_after_forward=False"
    group.add_argument("--no-reshard", action="store_true", default=None, help=words)
    words = "reduce gradients after every micro-batch, or after the last alone (default every)"
    group.add_argument("--gradient-sync", choices=SYNCS, help=words)
    group.add_argument("--ranks", type=int, metavar="N", help="devices, all together (default 1)")
    group.add_argument("--zero", type=int, help="0 to 3: what data-parallel ranks divide")
    for name, what in SPLITS.items():
        words = f"ranks that divide {what} (default 1)"
        short = ["--pipeline"] * (name == "pipeline")
        group.add_argument(f"--{name}-parallel", *short, type=int, metavar="N", help=words)
    words = "of torch.distributed.pipelining (default 1f1b)"
    group.add_argument("--schedule", choices=SCHEDULES, help=words)
    words = "stages on each rank of interleaved1f1b (default 2 there)"
    group.add_argument("--stages-per-rank", type=int, metavar="N", help=words)
    words = "schedule.step(return_outputs=False): the last stage keeps no logits of a whole step"
    group.add_argument("--no-outputs", action="store_true", default=None, help=words)


def model_of(name: str) -> Model:
    """A preset, whatever its capitals, or the model of a config file.

    Raises      ValueError for something that is neither; what `Model.from_config` raises
    """
    return named_or(name, Model.from_config)


def named_or(name: str, read: Callable[[str], Found]) -> Model | Found:
    """A preset, or what is read of a config file.

    Raises      ValueError for something that is neither; what `read` raises
    """
    if name.lower() in presets():
        return Model.preset(name.lower())
    if "://" in name or (not os.path.exists(name) and name.count("/") == 1 and name[0] != "."):
        raise ValueError(
            f"{name!r} is no file, and memlab reads no hub: download the model's config.json"
        )
    if not os.path.exists(name):
        raise ValueError(f"{name!r} is neither a file nor a preset; known: {', '.join(presets())}")
    return read(name)


def recipe_of(options: argparse.Namespace, model: Configured) -> Recipe:
    """The recipe that --recipe, --precision and --optimizer say together, else the config's.

    Raises      ValueError for --recipe beside --precision, which would say the same thing twice
    """
    if options.recipe and options.precision:
        raise ValueError("--recipe and --precision both set the formats; give one of them")
    if options.precision:
        recipe = PRECISIONS[options.precision]
    else:
        recipe = recipe_for(model, options.recipe)
    if options.optimizer and options.optimizer != recipe.optimizer:
        name = f"{recipe.name}, {options.optimizer}"
        recipe = recipe.replace(name=name, optimizer=options.optimizer, states=None)
    return recipe


def run_of(options: argparse.Namespace, model: Configured | None = None) -> Run:
    """The run that the flags say together; what they do not say stands at its default.

    Raises      ValueError for flags that mean nothing without another one; what Run raises
    """
    told = vars(options)
    names = [flag.replace("-", "_") for flag, *_ in (*NUMBERS, *WORDS)]
    names += ["compile", "step_in_backward", "clip", "phase", "logits", "inference_mode"]
    said: dict[str, Any] = {n: told[n] for n in names if told.get(n) is not None}
    for name in ("frozen", "offload", "holds"):
        if told.get(name) is not None:
            said[name] = _names(told[name])
    said |= adapters_of(options, model)
    if isinstance(model, Model) and "ranks" in told:
        said["devices"] = _devices(options, model)
    return Run(**said)


def _devices(options: argparse.Namespace, model: Model) -> Sharding:
    """What the flags of `add_devices` say together; data-parallel ranks are the rest.

    Raises      ValueError where the network cannot be cut so, or the ranks do not come out even,
                and for --fsdp beside a flag that says the same
    """
    policy = {name: getattr(options, name) for name in ("param_dtype", "reduce_dtype")}
    policy["gradient_sync"] = options.gradient_sync
    policy = {name: value for name, value in policy.items() if value is not None}
    if options.no_reshard:
        policy["reshard_after_forward"] = False
    if options.fsdp is not None:
        of_pipeline = ("schedule", "stages_per_rank", "no_outputs")
        for flag in ("ranks", "zero", *(f"{name}_parallel" for name in SPLITS), *of_pipeline):
            if (value := getattr(options, flag)) is not None:
                raise ValueError(f"--{flag.replace('_', '-')} {value} beside --fsdp; give one")
        if options.fsdp < 2:
            raise ValueError(f"--fsdp {options.fsdp}; at least 2 ranks divide weights")
        return Sharding(data=options.fsdp, zero=3, **policy)
    told = {name: getattr(options, f"{name}_parallel") for name in SPLITS}
    sizes: dict[str, Any] = {name: size for name, size in told.items() if size is not None}
    sizes |= _schedule(options)
    one = Sharding(zero=options.zero or 0, **sizes)
    one.check(model)
    ranks = one.ranks if options.ranks is None else options.ranks
    if ranks < 1 or ranks % one.ranks:
        product = " x ".join(f"{name} {getattr(one, name)}" for name in SPLITS)
        raise ValueError(f"--ranks {ranks} is not a multiple of {product} = {one.ranks}")
    return Sharding(data=ranks // one.ranks, zero=one.zero, **sizes, **policy)


def _schedule(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of a pipeline say beside its ranks."""
    said: dict[str, Any] = {}
    if options.schedule is not None:
        said["schedule"] = options.schedule
    if options.stages_per_rank is not None:
        said["stages_per_rank"] = options.stages_per_rank
    elif options.schedule == "interleaved1f1b":
        said["stages_per_rank"] = 2
    if options.no_outputs:
        said["return_outputs"] = False
    return said


def _names(words: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in words.split(","))
