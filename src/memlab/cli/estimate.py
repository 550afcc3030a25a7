"""`memlab estimate`: what a model's config alone says about its memory, for people and programs."""

from __future__ import annotations

import argparse
import os

from ..config import load
from ..estimate import estimate, fullest_stage
from ..frozen import replace
from ..ledger import Ledger
from ..model import Model, presets
from ..recipe import Recipe
from ..sharding import Sharding
from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

PRECISIONS = {"fp32": "fp32", "bf16": "bf16", "autocast-bf16": "autocast"}
FP16 = {  # the bytes of bf16; what a gradient scaler adds is left out
    "fp16": Recipe(name="fp16", weights="fp16", gradients="fp16"),
    "autocast-fp16": Recipe(name="autocast fp16", autocast="fp16"),
}
TERMS = ("weights", "gradients", "optimizer", "activations", "logits", "kv_cache", "other")

SPLITS = {"tensor": "matrices", "pipeline": "layers", "context": "tokens"}

RESIDENT_ONLY = "activations, logits and the peak: say --batch and --tokens"
SHARDED_ONLY = "activations, logits, gathered weights: memlab.lab.shard traces the peak"
AROUND = "what generate() adds: the tokens so far, masks, scores, positions of each sequence"
KERNELS, CONTEXT = "scratch memory inside one kernel", "the CUDA context of a process"
ALWAYS = (KERNELS, "what the CUDA allocator adds (say --backend cuda)", CONTEXT)


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "Derive memory from a config: what stays, and with --tokens the peak of a step."
    parser = commands.add_parser("estimate", help=words, description=words)
    parser.set_defaults(run=run)
    add_model(parser)
    parser.add_argument("--against", metavar="RECIPE", help="a second recipe, side by side")
    parser.add_argument("--batch", type=int, default=1, help="sequences at a time (default 1)")
    parser.add_argument("--tokens", type=int, help="tokens in each; without it, no peak")
    parser.add_argument("--phase", choices=["train", "prefill", "decode"], default="train")
    parser.add_argument(
        "--logits",
        choices=["all", "last"],
        default="all",
        help="prefill: of all tokens, or of the last one as generate() asks (default all)",
    )
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the ledger as a bar")
    add_sharding(parser)
    add_step(parser)


def add_sharding(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what is divided among several devices."""
    group = parser.add_argument_group("several devices", "what stays on one of them")
    group.add_argument("--ranks", type=int, metavar="N", help="devices, all together (default 1)")
    group.add_argument(
        "--zero", type=int, default=0, help="0 to 3: what data-parallel ranks divide"
    )
    for name, what in SPLITS.items():
        words = f"ranks that divide {what} (default 1)"
        group.add_argument(f"--{name}-parallel", type=int, default=1, metavar="N", help=words)


def add_step(parser: argparse.ArgumentParser) -> None:
    """The arguments that say how a training step is run."""
    parser.add_argument("--recipe", help="see `memlab recipes` (default: what --precision says)")
    parser.add_argument("--precision", choices=[*PRECISIONS, *FP16], help="default fp32")
    parser.add_argument("--optimizer", help="default: the recipe's")
    parser.add_argument(
        "--optimizer-impl", choices=["forloop", "foreach", "fused"], default="forloop"
    )
    parser.add_argument("--attention", choices=["eager", "sdpa", "flash"], default="sdpa")
    parser.add_argument("--checkpoint", choices=["none", "block"], default="none")
    parser.add_argument(
        "--accumulate",
        type=int,
        default=1,
        metavar="N",
        help="micro-batches of --batch each before one optimizer step (default 1)",
    )
    parser.add_argument("--loss", choices=["plain", "chunked"], default="plain")
    parser.add_argument(
        "--loss-chunks",
        type=int,
        default=8,
        metavar="N",
        help="chunks of rows in a chunked loss (default 8)",
    )
    parser.add_argument("--lora-rank", type=int, metavar="R", help="train adapters alone")
    parser.add_argument(
        "--lora-targets",
        default="q,v",
        metavar="NAMES",
        help="layers that have an adapter (default q,v; of q k v out gate up down, gpt2: qkv)",
    )
    parser.add_argument(
        "--lora-base", metavar="FORMAT", help="store the frozen linear layers in nf4: QLoRA"
    )
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="P")
    parser.add_argument(
        "--implementation",
        choices=["transformers", "memlab"],
        default="transformers",
        help="whose code runs the model (default transformers)",
    )


def choices_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_step` asked, and what a config.json says, as arguments of memlab.step.simulate."""
    names = "implementation attention backend optimizer_impl checkpoint dropout".split()
    names += ["loss", "loss_chunks"]
    said = None if options.model.lower() in presets() else load(options.model)[0]
    told = {name: getattr(options, name) for name in names}
    told |= {"extra": said, "micro_batches": options.accumulate}
    if options.lora_rank is not None:
        from ..step import Lora

        targets = tuple(options.lora_targets.split(","))
        told["lora"] = Lora(options.lora_rank, targets, options.lora_base)
    elif options.lora_base is not None:
        raise ValueError(
            f"--lora-base {options.lora_base} stores the base of adapters: --lora-rank"
        )
    return told


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that every command about a model takes."""
    words = "a preset (`memlab models`), a config.json, or its folder"
    parser.add_argument("model", metavar="CONFIG", help=words)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def model_of(name: str) -> Model:
    """A preset, whatever its capitals, or the model of a config file.

    Raises      ValueError for something that is neither; what `Model.from_config` raises
    """
    if name.lower() in presets():
        return Model.preset(name.lower())
    if not os.path.exists(name):
        raise ValueError(f"{name!r} is neither a file nor a preset; known: {', '.join(presets())}")
    return Model.from_config(name)


def recipe_of(options: argparse.Namespace) -> Recipe:
    """The recipe that --recipe, --precision and --optimizer say together.

    Raises      ValueError for --recipe beside --precision, which would say the same thing twice
    """
    if options.recipe and options.precision:
        raise ValueError("--recipe and --precision both set the formats; give one of them")
    if options.precision in FP16:
        recipe = FP16[options.precision]
    else:
        recipe = Recipe.named(options.recipe or PRECISIONS[options.precision or "fp32"])
    if options.optimizer and options.optimizer != recipe.optimizer:
        name = f"{recipe.name}, {options.optimizer}"
        recipe = recipe.replace(name=name, optimizer=options.optimizer, states=None)
    return recipe


def sharding_of(options: argparse.Namespace, model: Model) -> Sharding | None:
    """What the arguments of `add_sharding` say together; data-parallel ranks are the rest.

    Raises      ValueError where the network cannot be cut so, or the ranks do not come out even
    """
    sizes = {name: getattr(options, f"{name}_parallel") for name in SPLITS}
    one = Sharding(zero=options.zero, **sizes)
    one.check(model)
    ranks = one.ranks if options.ranks is None else options.ranks
    if ranks < 1 or ranks % one.ranks:
        product = " x ".join(f"{name} {size}" for name, size in sizes.items())
        raise ValueError(f"--ranks {ranks} is not a multiple of {product} = {one.ranks}")
    made = replace(one, data=ranks // one.ranks)
    if made == Sharding():
        return None
    if options.tokens is not None:
        raise ValueError("--tokens asks for the peak of one device; leave it out with --ranks")
    return made


def run(options: argparse.Namespace) -> str:
    """What the command prints."""
    model, recipe = model_of(options.model), recipe_of(options)
    if sharding := sharding_of(options, model):
        recipe = recipe.replace(name=recipe.name, sharding=sharding)
    if options.against:
        other = Recipe.named(options.against)
        other = other.replace(name=other.name, sharding=sharding)
        comparison = estimate(model, recipe).compare(estimate(model, other))
        return comparison.to_json() if options.json else str(comparison)
    if options.tokens is None:
        if options.phase != "train":
            raise ValueError(f"--phase {options.phase} needs --tokens")
        if options.lora_rank is not None:
            raise ValueError("--lora-rank changes a training step: it needs --tokens")
        return _resident(model, recipe, options)
    if options.phase != "train":
        return _inference(model, recipe, options)
    return _step(model, recipe, options)


def _resident(model: Model, recipe: Recipe, options: argparse.Namespace) -> str:
    stage = fullest_stage(model, recipe)
    ledger = estimate(model, recipe, stage=stage)
    _plot(ledger, options.plot)
    if not options.json:
        return str(ledger)
    rows = {row.term: row.derived for row in ledger.rows}
    left = [SHARDED_ONLY if recipe.sharding else RESIDENT_ONLY, *ALWAYS]
    return _json(model, recipe, rows, leaves_out=left, stage=stage)


def _step(model: Model, recipe: Recipe, options: argparse.Namespace) -> str:
    from ..step import simulate  # only a peak needs it

    sizes = {"batch": options.batch, "tokens": options.tokens}
    step = simulate(model, recipe, **sizes, **choices_of(options))
    ledger = _at_the_peak(model, recipe, step, options)
    _plot(ledger, options.plot)
    if options.json:
        rows = {name: step.rows.get(name, 0) for name in TERMS}
        rows["other"] = sum(size for name, size in step.rows.items() if name not in TERMS)
        peak = {
            "bytes": step.peak.bytes,
            "moment": step.peak.moment,
            "contents": step.peak.contents,
            "first_step_bytes": step.peak.first_step_bytes,
        }
        if options.backend == "cpu":
            return _json(model, recipe, rows, dict(step.held), peak, list(ALWAYS))
        whole = simulate(model, recipe, **sizes, **choices_of(options), every_layer=True).replay()
        allocator = {"allocated": whole.peak_allocated, "reserved": whole.peak_reserved}
        left = [KERNELS, CONTEXT]
        return _json(model, recipe, rows, dict(step.held), peak, left, allocator)
    moments = {**step.held, "peak of the first step": step.peak.first_step_bytes}
    lines = [f"{name.replace('_', ' '):22} {text(size)}" for name, size in moments.items()]
    return "\n".join([str(ledger), *lines])


def _at_the_peak(model: Model, recipe: Recipe, step: Any, options: argparse.Namespace) -> Ledger:
    what = f"{options.batch} x {options.tokens} tokens, {options.implementation}"
    if options.accumulate > 1:
        what = f"{options.accumulate} micro-batches of {what}"
    if options.lora_rank is not None:
        what += f", LoRA r={options.lora_rank} on {options.lora_targets}"
        what += f" over {options.lora_base}" if options.lora_base else ""
    return _ledger(model, recipe, step.peak, what)


def _ledger(model: Model, recipe: Recipe, peak: Any, what: str) -> Ledger:
    title = f"{model.name} · {recipe.name} · {what}: the peak, in {peak.moment}"
    order = [name for name in TERMS[:-1] if name in peak.contents]
    order += [name for name in peak.contents if name not in order]
    return Ledger.of("derived", {name: peak.contents[name] for name in order}, title=title)


def _plot(ledger: Ledger, path: str | None) -> None:
    if path:
        from ..plot import ledger_bar

        ledger_bar(ledger).save(path)


def _inference(model: Model, recipe: Recipe, options: argparse.Namespace) -> str:
    if options.implementation == "memlab":
        return _own_inference(model, recipe, options)
    from ..step.inference import decode, prefill  # only who asks for it needs it

    told = {name: getattr(options, name) for name in ("batch", "tokens", "attention", "backend")}
    told["extra"] = choices_of(options)["extra"]
    phase: Any = prefill
    if options.phase == "prefill":
        words = f"{options.tokens} tokens"
        told["last"] = options.logits == "last"
    else:
        phase, words = decode, f"1 token after {options.tokens}"
    found = phase(model, recipe, **told)
    what = f"{options.phase}, {options.batch} x {words}, transformers"
    ledger = _ledger(model, recipe, found.peak, what)
    _plot(ledger, options.plot)
    if not options.json:
        moments = {**found.held, "each new token adds": found.per_token}
        lines = [f"{name.replace('_', ' '):22} {text(size)}" for name, size in moments.items()]
        return "\n".join([str(ledger), *lines])
    rows = {name: found.rows.get(name, 0) for name in TERMS}
    rows["other"] += sum(size for name, size in found.rows.items() if name not in TERMS)
    at = found.peak
    peak = {"bytes": at.bytes, "moment": at.moment, "contents": at.contents}
    peak["first_step_bytes"] = None  # no call is the first of its kind
    left, allocator = [AROUND, *ALWAYS], None
    if options.backend == "cuda":
        whole = phase(model, recipe, **told, every_layer=True).replay()
        allocator = {"allocated": whole.peak_allocated, "reserved": whole.peak_reserved}
        left = [AROUND, KERNELS, CONTEXT]
    if recipe.autocast:
        left.append("torch.inference_mode(), where autocast keeps no copies of the weights")
    growth = {"per_token": found.per_token}
    return _json(model, recipe, rows, dict(found.held), peak, left, allocator, growth)


def _own_inference(model: Model, recipe: Recipe, options: argparse.Namespace) -> str:
    """memlab's own blocks, from their closed formulas."""
    from ..inference import decode, prefill

    phase = prefill if options.phase == "prefill" else decode
    sizes = {"batch": options.batch, "tokens": options.tokens, "format": recipe.weights}
    ledger = phase(model, cache="growing", **sizes)
    _plot(ledger, options.plot)
    if not options.json:
        return str(ledger)
    found = {row.term: row.derived or 0 for row in ledger.rows}
    rows = {name: found.get(name, found.get(name.replace("_", " "), 0)) for name in TERMS}
    rows["other"] = ledger.total() - sum(rows.values()) + rows["other"]
    moment = ledger.title.split(" · ")[-1]
    peak = {"bytes": ledger.total(), "moment": moment, "contents": found}
    return _json(model, recipe, rows, peak=peak, leaves_out=list(ALWAYS))


def _json(
    model: Model,
    recipe: Recipe,
    rows: dict[str, Any],
    held: dict[str, int] | None = None,
    peak: dict[str, Any] | None = None,
    leaves_out: list[str] | None = None,
    allocator: dict[str, int] | None = None,
    growth: dict[str, int] | None = None,
    stage: int = 0,
) -> str:
    """The document that programs read; a figure that was not derived is null."""
    import json

    document = {
        "model": model.name,
        "parameters": model.parameter_count,
        "unit": "bytes",
        "rows": {name: rows.get(name) for name in TERMS} | rows,
        "held": held,
        "peak": peak,
        "allocator": allocator,
        "recipe": {
            "name": recipe.name,
            "weights": recipe.weights,
            "gradients": recipe.gradients,
            "master": recipe.master,
            "optimizer": recipe.optimizer,
            "autocast": recipe.autocast,
        },
        "leaves_out": leaves_out,
    }
    if recipe.sharding:  # the rows are those of one rank: the fullest
        sizes = {name: getattr(recipe.sharding, name) for name in ("data", "zero", *SPLITS)}
        document["sharding"] = {"ranks": recipe.sharding.ranks, **sizes, "stage": stage}
    if growth is not None:  # of the cache, by all sequences of the batch together
        document["growth"] = growth
    return json.dumps(document, ensure_ascii=False, indent=1)
