"""Real training steps of small models on the CPU, counted to the byte: what estimates must equal.

One step is what a user writes: `loss = model(ids, labels=ids).loss` (the other outputs are dropped
at once), backward, drop the loss, `AdamW.step()`, `zero_grad(set_to_none=True)`. It runs twice: the
first step creates the optimizer's states, the second is the steady state. With n micro-batches the
loss is divided by n, and forward and backward run n times before the optimizer.

    python tests/real/real_steps.py --configs 60 --seed 0 --out real.json
"""

import argparse
import contextlib
import io
import json
import os
import random
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from memlab import Model, Recipe, Run
from memlab.base.gc_paused import no_garbage
from memlab.families import record_of
from memlab.lab.lora import adapt
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.lab.optim import optimizer as made_optimizer
from memlab.lab.qlora import quantize_base
from memlab.lab.subject import DTYPES, loss_of
from memlab.lab.train import one_thread
from memlab.lab.with_peft import four_bits, scales_of, unfused, with_peft
from memlab.measure import Saved, Tracker, resident
from memlab.measure.log import Event
from memlab.measure.trace import LOOPS
from memlab.run.optimizer_loops import loop_of
from memlab.run.recipe_choice import PRECISIONS
from memlab.step import Step, simulate

FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "opt", "gpt_neox")
DRAWN = ("fp32", "bf16", "autocast-bf16")  # precisions that random_configs gives
# Fields of a run that a real step follows; what it does not is refused.
KEPT: list[Any] = []  # the output of a program that keeps it
FOLLOWED = (
    *("batch", "tokens", "micro_batches", "implementation", "backend", "attention", "kernel"),
    *("dropout", "checkpoint", "loss", "loss_chunks", "optimizer_impl", "lora", "frozen"),
    *("phase", "logits", "inference_mode", "loop", "adapter", "texts"),
)


@dataclass(frozen=True)
class Question:
    """What a step takes: of which model, in which precision, executed how.

    config      a config.json as a dict: `model_type`, shape, any other key of the family
    precision   one of memlab.run.recipe_choice.PRECISIONS; an optimizer other than AdamW stands
                behind a plus: "bf16+muon"
    bare        nothing beside the config: what it and its class say of dropout, dtype, attention
                and special tokens
    """

    config: dict[str, Any]
    precision: str
    run: Run
    bare: bool = False

    @property
    def family(self) -> str:
        return self.config["model_type"]

    @property
    def recipe(self) -> Recipe:
        precision, _, optimizer = self.precision.partition("+")
        if precision not in PRECISIONS:
            known = ", ".join(PRECISIONS)
            raise ValueError(f"unknown precision {precision!r}; known: {known}")
        name = {"muon8": "muon", "": "adamw"}.get(optimizer, optimizer)
        states = ("int8/128",) if optimizer == "muon8" else None
        return PRECISIONS[precision].replace(optimizer=name, states=states, name=self.precision)

    @property
    def model(self) -> Model:
        return Model.from_config(self.config)

    def replace(self, **changes: Any) -> "Question":
        """Another config or precision; every other name is a field of the run."""
        own = {name: changes.pop(name) for name in ("config", "precision") if name in changes}
        return replace(self, **own, run=self.run.replace(**changes))

    def to_json(self) -> dict[str, Any]:
        return {"config": self.config, "precision": self.precision, "run": self.run.to_dict()}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Question":
        return cls(said["config"], said["precision"], Run.from_dict(said["run"]))

    def __str__(self) -> str:
        shape = ", ".join(f"{k}={v}" for k, v in self.config.items() if k != "model_type")
        run = ", ".join(f"{k}={v}" for k, v in self.run.said().items() if v)
        return f"{self.family} {self.precision} {run} ({shape})"


@dataclass(frozen=True)
class Peak:
    """The most bytes of one step, the moment they were reached, and what they were.

    phase       forward (up to the output head), loss, backward, optimizer
    index       the event of `RealStep.events` that reached it first
    """

    bytes: int
    phase: str
    op: str
    index: int
    contents: dict[str, int]


@dataclass(frozen=True)
class RealStep:
    """What two real steps held.

    activations     autograd keeps it for backward, born before the output head is applied
    logits          autograd keeps it, born from the output head on: the loss and its inputs
    saved           all that saved-tensor hooks report, parameters excluded: both of the above,
                    the token ids, and any buffer that is saved
    held            all bytes alive in the second step, by moment
    resident        weights, buffers, gradients (before zero_grad), optimizer
    events          the log of both steps; `second` is the first event of the second step
    """

    parameters: int
    activations: int
    logits: int
    saved: int
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    resident: dict[str, int]
    first_peak: Peak
    peak: Peak
    second: int
    seconds: float
    events: tuple[Event, ...] = field(repr=False)
    tracker: Tracker = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        left_out = ("events", "tracker")
        slim = replace(self, events=(), tracker=None)  # type: ignore[arg-type]
        return {key: value for key, value in asdict(slim).items() if key not in left_out}

    def alive(self, at: int) -> list[tuple[Any, int]]:
        """(record, bytes) of every storage right after event `at`, largest first."""
        return self.tracker.alive(at)


class StepTracker(Tracker):
    """A tracker that adds gradients as autograd does without one: in place, where it may.

    Where two gradients meet at one tensor, autograd adds the second to the first in place if it
    alone holds the first. Under any dispatch mode it does not dare to, so the mode does it: the
    figures then equal those of the profiler, which runs without a mode.

    Source      can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        meets = func is torch.ops.aten.add.Tensor and not torch.is_grad_enabled()
        if meets and torch._C._current_graph_task_id() != -1 and _alone(args[0]):
            return args[0].add_(args[1])
        return super().__torch_dispatch__(func, types, args, kwargs)


def _alone(tensor: torch.Tensor) -> bool:
    """Whether only autograd holds it; the mode itself adds three holders, and one of storage."""
    storage = tensor.untyped_storage()._cdata
    dense = tensor.is_contiguous() or tensor.transpose(-1, -2).is_contiguous()
    return dense and tensor._use_count() <= 4 and torch._C._storage_Use_Count(storage) <= 2


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing that an import or a model of transformers says reaches the reader."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def hugging_face() -> Any:
    """transformers, imported without its warnings."""
    with quiet():
        import transformers
    transformers.logging.set_verbosity_error()
    return transformers


def build(step: Question) -> torch.nn.Module:
    """The real module on the CPU, in training mode, from the config itself and not from a Model.

    Raises      ValueError for a field of the run that is not followed
    """
    for name, value in step.run.said().items():
        if name not in FOLLOWED:
            raise ValueError(f"{name}={value!r}: no real step is run so")
    module = (_ours if step.run.implementation == "memlab" else _theirs)(step)
    lora = step.run.lora
    if step.run.adapters is not None and step.run.implementation == "transformers":
        if lora is not None and lora.base is not None:
            module = _prepared(step)
        module = with_peft(module, step.model, step.run)
    elif lora is not None:
        adapt(module, lora.rank, lora.targets)
        if lora.base is not None:
            quantize_base(module, lora.base, keep_wide=lora.keep_wide)
    for name, parameter in module.named_parameters() if step.run.frozen else ():
        parameter.requires_grad_(component(name) not in step.run.frozen)
    return module


def _prepared(step: Question) -> torch.nn.Module:
    """In four bits by bitsandbytes; where the rest is fp32, as peft prepares a model in bf16."""
    if step.recipe.weights != "fp32":
        return four_bits(_theirs(step))
    from peft import prepare_model_for_kbit_training

    again = step.run.checkpointing == "block"
    return prepare_model_for_kbit_training(
        four_bits(_theirs(step.replace(precision="bf16", checkpoint="none"))),
        use_gradient_checkpointing=again,
        gradient_checkpointing_kwargs={"use_reentrant": False} if again else None,
    )


def component(name: str) -> str:
    """The component that a parameter belongs to, by its name in transformers or in memlab.lab."""
    for part, marks in {
        "norm": ["norm", ".ln_"],
        "other": ["project_in", "project_out"],
        "positions": ["wpe", "embed_positions", "positions"],
        "attention": ["attn.", "attention."],
        "feed_forward": ["mlp.", "fc1.", "fc2.", "feed_forward."],
        "lm_head": ["lm_head"],
        "embedding": ["wte", "embed_tokens", "embed_in", "embedding"],
    }.items():
        if any(mark in name for mark in marks):
            return part
    raise AssertionError(f"no component for {name}")


def _ours(step: Question) -> torch.nn.Module:
    torch.manual_seed(0)
    again, chunks = step.run.checkpointing == "block", step.run.chunks
    module: torch.nn.Module
    if step.family == "gpt2":
        p = step.run.dropout or 0.0
        module = TinyGPT(step.model, dropout=p, checkpoint=again, loss_chunks=chunks)
    else:
        module = TinyLlama(step.model, checkpoint=again, loss_chunks=chunks)
    return module.to(DTYPES[step.recipe.weights]).train()


def _theirs(step: Question) -> torch.nn.Module:
    torch.manual_seed(0)
    transformers = hugging_face()
    # A program that keeps outputs has not thought of the cache, which is there by default.
    without: dict[str, Any] = {} if step.run.loop == "keeps-outputs" else {"use_cache": False}
    if step.bare:
        with quiet():
            config = transformers.AutoConfig.for_model(**without | step.config)
            return transformers.AutoModelForCausalLM.from_config(config).train()
    # Without a padding token no row of the embedding is treated apart.
    settings: dict[str, Any] = {"pad_token_id": None, **step.config, **without}
    if step.run.dropout is not None:
        settings |= dict.fromkeys(record_of(step.family).dropouts, step.run.dropout)
    with quiet():
        module = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(**settings),
            dtype=DTYPES[step.recipe.weights],
            attn_implementation=step.run.attention or "sdpa",
        )
    if step.run.checkpointing == "block":
        module.gradient_checkpointing_enable({"use_reentrant": False})
    return module.train()


def real_step(step: Question, *, in_place: bool = True) -> RealStep:
    """Run the step twice under the tracker and report the second, with the first one's peak.

    in_place    False counts gradients that meet as a plain dispatch mode sees them
    Raises      ValueError for a name that is not known, or what the model itself raises
    """
    if step.run.backend != "cpu":
        raise ValueError(f"backend={step.run.backend!r}: real steps run on this machine's CPU")
    if step.run.phase != "train":
        raise ValueError(f"phase={step.run.phase!r}: real_inference.py runs calls")
    if step.run.loop not in ("plain", "keeps-outputs"):
        raise ValueError(f"loop={step.run.loop!r}: tests/test_loops.py runs the program's own")
    KEPT.clear()
    began = time.perf_counter()
    # Garbage collection is off: bytes must not depend on when Python looks for cycles.
    with one_thread(), quiet(), no_garbage():
        module = build(step)
        optimizer = optimizer_of(step, module)
        batch = batch_of(step.run, module_vocab(module))
        with Saved(exclude=module) as saved:
            loss = _forward(step, module, batch)
        del loss
        tracker = StepTracker() if in_place else Tracker()
        with unfused(module):
            return _track(step, tracker, module, optimizer, batch, saved.bytes, began)


def batch_of(run: Run, vocab: int) -> dict[str, torch.Tensor]:
    """What the model is given: ids, and what a collator makes of padded or packed texts."""
    ids = torch.randint(vocab, (run.sequences, run.length))
    if run.loss == "cross_entropy":
        return {"input_ids": ids, "labels": ids.clone()}
    if run.texts == "full":
        return {"input_ids": ids}
    labels = ids.clone()
    if run.texts == "padded":
        mask = torch.ones_like(ids)
        mask[0, run.length - 1 :] = 0
        labels[mask == 0] = -100
        return {"input_ids": ids, "labels": labels, "attention_mask": mask}
    places = torch.arange(run.length)[None]
    places[:, run.length // 3 :] -= run.length // 3
    labels[places == 0] = -100
    return {"input_ids": ids, "labels": labels, "position_ids": places}


def optimizer_of(step: Question, module: torch.nn.Module) -> torch.optim.Optimizer:
    """The recipe's optimizer in the loop of the run."""
    loop = loop_of(step.recipe, step.run)
    recipe, named = step.recipe, dict(module.named_parameters())
    return made_optimizer(recipe.optimizer, named, states=recipe.states, loop=loop)


def _track(
    step: Question,
    tracker: Tracker,
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: dict[str, torch.Tensor],
    saved: int,
    began: float,
) -> RealStep:
    held: dict[str, int] = {}
    moments: dict[str, int] = {}
    peaks = []
    starts = []

    def note(moment: str) -> None:
        held[moment] = tracker.current
        moments[moment] = len(tracker.timeline) - 1

    with tracker:
        tracker.label(module)
        tracker.label(scales_of(module), "weights")
        tracker.label(optimizer)
        tracker.label(batch, "inputs")
        for _ in range(2):
            starts.append(len(tracker.timeline))
            tracker.reset_peak()
            for _ in range(step.run.micro_batches):
                with tracker.phase("forward"):
                    loss = _forward(step, module, batch, tracker)
                note("after_forward")
                with tracker.phase("backward"):
                    loss.backward()
                del loss
                note("after_backward")
            with tracker.phase("optimizer"):
                optimizer.step()
            stay = resident(module, optimizer)
            stay["weights"] += sum(t.untyped_storage().nbytes() for t in scales_of(module))
            with tracker.phase("zero_grad"):
                optimizer.zero_grad(set_to_none=True)
            note("between_steps")
            peaks.append(tracker.peak_event)
    kept = [
        (tracker.timeline[_birth(tracker, record.ident)].phase, size)
        for record, size in tracker.alive(moments["after_forward"])
        if record.category == "activations"
    ]
    logits = sum(size for phase, size in kept if phase == "loss")
    first, second = (_peak(tracker, event) for event in peaks)
    return RealStep(
        parameters=sum(p.numel() for p in module.parameters()),
        activations=sum(size for _, size in kept) - logits,
        logits=logits,
        saved=saved,
        held=held,
        held_contents={moment: tracker.contents(at) for moment, at in moments.items()},
        resident=stay,
        first_peak=first,
        peak=second,
        second=starts[1],
        seconds=time.perf_counter() - began,
        events=tuple(tracker.timeline),
        tracker=tracker,
    )


def _forward(
    step: Question,
    module: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    tracker: Tracker | None = None,
) -> torch.Tensor:
    """The loss alone; with a tracker, what comes from the output head on is phase "loss"."""
    run, autocast = step.run, step.recipe.autocast
    ids = batch["input_ids"]
    cast = DTYPES[autocast] if autocast else None
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.autocast("cpu", cast) if cast else nullcontext())
        if tracker is not None:
            phases = stack.enter_context(contextlib.ExitStack())

            def head(*_: Any) -> None:
                phases.enter_context(tracker.phase("loss"))

            # The head is called in a loss of its own; in chunks, what is before it ends the body.
            if not run.in_chunks:
                handle = module.get_submodule("lm_head").register_forward_pre_hook(head)
            elif run.implementation == "memlab":
                handle = module.get_submodule("final_norm").register_forward_hook(head)
            else:
                body = module.get_submodule(str(module.base_model_prefix))
                handle = body.register_forward_hook(head)
            stack.callback(handle.remove)
        if run.loop == "keeps-outputs":
            KEPT[:] = [
                module(**{"labels": ids} | batch)
            ]  # behind the forward pass: the last one lived till now
            loss = KEPT[0].loss
            if tracker is not None and KEPT[0].get("past_key_values") is not None:
                tracker.label(tensors_of(KEPT[0].past_key_values), "kv_cache")
        elif run.texts == "full":
            loss = loss_of(module, ids, run, batch.get("labels"))
        else:
            loss = module(**batch).loss
        return loss / run.micro_batches if run.micro_batches > 1 else loss


def tensors_of(cache: Any) -> list[torch.Tensor]:
    """Every tensor that a cache holds: of each layer its keys, values, and its window if any."""
    return [tensor for layer in cache for tensor in layer if tensor is not None]


def module_vocab(module: torch.nn.Module) -> int:
    return module.get_submodule("lm_head").weight.shape[0]


def _birth(tracker: Tracker, ident: int) -> int:
    return next(event.index for event in tracker.timeline if event.ident == ident)


def _peak(tracker: Tracker, event: Event) -> Peak:
    contents = {name: size for name, size in tracker.contents(event.index).items() if size}
    return Peak(event.total, event.phase, event.op, event.index, contents)


def simulated(step: Question, **more: Any) -> Step:
    """The same step without running it; `more` goes to memlab.step.simulate as it is."""
    return simulate(step.model, step.recipe, step.run, **more)


def allocations(step: Question) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Each allocation of the second step and the bytes held then: as simulated, and for real."""
    real = real_step(step, in_place=False)
    log = simulated(step, in_place=False, every_layer=True).log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    return [(size, total) for _, size, total in events if size > 0], [
        (e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes
    ]


def deep(n: int) -> int:
    """So many random steps, or MEMLAB_DEPTH times as many: CONTRIBUTING.md says when."""
    return n * int(os.environ.get("MEMLAB_DEPTH", "1"))


def random_configs(
    n: int,
    seed: int = 0,
    *,
    families: tuple[str, ...] = FAMILIES,
    implementations: tuple[str, ...] = ("transformers",),
    checkpoints: tuple[str, ...] = ("none",),
    dropouts: tuple[float, ...] = (0.0, 0.1),
    windows: bool = False,
) -> list[Question]:
    """`n` configs, the same for the same arguments; families take turns.

    windows     whether some have sliding windows and scaled rotary bases
    """
    rng = random.Random(f"memlab {seed}")
    drawn = [
        _random_config(
            rng,
            families[i % len(families)],
            rng.choice(implementations),
            rng.choice(checkpoints),
            rng.choice(dropouts),
        )
        for i in range(n)
    ]
    return [_windowed(rng, step) for step in drawn] if windows else drawn


def _windowed(rng: random.Random, step: Question) -> Question:
    """The same with a sliding window or a scaled rotary base, where the family has such a thing."""
    more: dict[str, Any] = {}
    if step.family in ("mistral", "qwen2", "qwen3") and rng.random() < 0.7:
        more["sliding_window"] = rng.randint(2, step.run.tokens + 5)
        if step.family != "mistral":
            layers = step.config["num_hidden_layers"]
            more |= {"use_sliding_window": True, "max_window_layers": rng.randint(0, layers)}
    if step.family in ("llama", "gemma", "mistral") and rng.random() < 0.7:
        head_dim = step.config["head_dim"]
        more["rope_parameters"] = {
            "rope_type": rng.choice(["linear", "yarn", "longrope", "proportional"]),
            "rope_theta": 10000.0,
            "factor": 2.0,
            "original_max_position_embeddings": rng.randint(2, 2 * step.run.tokens),
            "short_factor": [1.0] * (head_dim // 2),
            "long_factor": [2.0] * (head_dim // 2),
        }
    return step.replace(config=step.config | more)


def _random_config(
    rng: random.Random, family: str, implementation: str, checkpoint: str, dropout: float
) -> Question:
    # The peak is somewhere else when weights, sequence or vocabulary are large, so draw each.
    large = rng.choice(["weights", "tokens", "vocab", "nothing"])
    heads, head_dim = rng.choice([1, 2, 3, 4, 6, 8]), rng.choice([8, 16, 24, 32])
    width = heads * head_dim
    layers = rng.randint(1, 5)
    tokens = rng.randint(100, 200) if large == "tokens" else rng.randint(5, 60)
    vocab = rng.randint(1500, 4000) if large == "vocab" else rng.randint(50, 400)
    wide = rng.choice([4 * width, 3 * width, rng.randint(10, 5 * width)])
    batch = 1 if large == "weights" else rng.randint(1, 5)
    config: dict[str, Any] = {"model_type": family}
    if family == "gpt2":
        config |= {"n_layer": layers, "n_embd": width, "n_head": heads, "vocab_size": vocab}
        config |= {"n_inner": rng.choice([None, wide]), "n_positions": tokens + rng.randint(0, 50)}
    else:
        config |= {"num_hidden_layers": layers, "hidden_size": width, "vocab_size": vocab}
        config |= {"num_attention_heads": heads}
        config["ffn_dim" if family == "opt" else "intermediate_size"] = wide
        config["max_position_embeddings"] = tokens + rng.randint(0, 50)
    if family in ("llama", "mistral", "qwen2", "qwen3", "gemma"):
        shared = rng.choice([k for k in range(1, heads + 1) if heads % k == 0])
        config["num_key_value_heads"] = shared
        config["head_dim"] = head_dim
        if implementation == "transformers":
            config["head_dim"] = rng.choice([head_dim, 8, 16, 40])
            if rng.random() < 0.4:
                config["hidden_size"] = 2 * heads * rng.randint(8 // heads + 1, 130 // heads)
    if family == "opt" and rng.random() < 0.3:
        config["word_embed_proj_dim"] = rng.choice([width // 2, width + 8])
    # Each optional key is there or not, and then either value.
    optional: dict[str, list[Any]] = {"tie_word_embeddings": [True, False]}
    if family in ("llama", "qwen3", "gemma", "gpt_neox"):
        optional["attention_bias"] = [True, False]
    if implementation == "transformers":
        optional |= {
            "llama": {"mlp_bias": [True, False]},
            "opt": {
                "enable_bias": [True, False],
                "layer_norm_elementwise_affine": [True, False],
                "do_layer_norm_before": [True, False],
            },
            "gpt_neox": {
                "use_parallel_residual": [True, False],
                "rope_parameters": [
                    {"rope_type": "default", "rope_theta": 10000, "partial_rotary_factor": share}
                    for share in (0.25, 0.5, 1.0)
                ],
            },
        }.get(family, {})
    config |= {key: rng.choice(those) for key, those in optional.items() if rng.random() < 0.5}
    eager = implementation == "transformers" and rng.random() < 0.5
    return Question(
        config,
        rng.choice(DRAWN),
        Run.cpu(
            implementation=implementation,
            attention="eager" if eager else "sdpa",
            optimizer_impl=rng.choice(list(LOOPS)),
            checkpoint=checkpoint,
            batch=batch,
            tokens=tokens,
            dropout=dropout,
        ),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Count real training steps of random configs.")
    parser.add_argument("--configs", type=int, default=60, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", default=",".join(FAMILIES), help="separated by commas")
    parser.add_argument("--out", help="a JSON file; standard output if left out")
    chosen = parser.parse_args(arguments)
    rows = []
    for step in random_configs(
        chosen.configs, chosen.seed, families=tuple(chosen.families.split(","))
    ):
        found = real_step(step)
        rows.append({"step": step.to_json(), "real": found.to_json()})
        peak = found.peak
        print(f"{peak.bytes:>13,} B  {peak.phase:9} {peak.op:38} {step}", file=sys.stderr)
    text = json.dumps({"torch": torch.__version__, "seed": chosen.seed, "rows": rows}, indent=1)
    if chosen.out is None:
        print(text)
    else:
        with open(chosen.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
