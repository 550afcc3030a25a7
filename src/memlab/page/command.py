"""The command line and the lines of Python that ask the package what the page was asked."""

from __future__ import annotations

from ..base.frozen import not_default
from ..recipe import Recipe
from ..run import Run
from ..sharding import FsdpPolicy
from .controls import OTHER_MODEL, OWN, PRECISIONS
from .loop_controls import LIKE
from .pasted import WHOLE
from .question import recipe_of, run_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .question import State

CONFIG = "config.json"  # where the pasted one is expected
FIELDS: tuple[str, ...] = (
    "batch",
    "tokens",
    "micro_batches",
    "optimizer_impl",
    "attention",
    "checkpoint",
    "loss",
)
FIELDS += ("loop", "completion")
POLICY = ("param_dtype", "gradient_sync")  # of FSDP2, which the page asks about
RANKS = {"tensor": "tensor-parallel", "pipeline": "pipeline-parallel"}


def command(state: State) -> str:
    """`memlab estimate` with every flag that this state needs, and no other."""
    name, changed = formats(state)
    words = ["memlab estimate", model(state)]
    words += ["--recipe", name] if name else []
    if changed:
        words += ["--optimizer", changed]
    for field, value in said(state):
        words += [f"--{field.replace('_', '-')}", str(value)]
    run = run_of(state)
    if run.lora is not None:
        words += ["--lora-rank", str(run.lora.rank), "--lora-targets", ",".join(run.lora.targets)]
        words += ["--lora-base", run.lora.base] if run.lora.base else []
        words += ["--lora-dropout", str(run.lora.dropout)] if run.lora.dropout else []
    teacher = run.teacher
    if teacher is not None:
        words += ["--teacher", model(state) if state["teacher"] == LIKE else state["teacher"]]
        words += ["--teacher-weights", teacher.weights] if teacher.weights else []
    ranks = run.devices
    if ranks.data > 1:
        words += ["--ranks", str(ranks.data)]
    if ranks.zero:
        words += ["--zero", str(ranks.zero)]
    told = ranks.told(FsdpPolicy)
    for field in POLICY:
        if field in told:
            words += [f"--{field.replace('_', '-')}", told[field]]
    for field in ("tensor", "pipeline"):
        if getattr(ranks, field) > 1:
            words += [f"--{RANKS[field]}", str(getattr(ranks, field))]
    if ranks.pipeline > 1:
        words += ["--schedule", ranks.schedule.name]
    return " ".join(words)


def script(state: State) -> str:
    """The same in Python."""
    name, changed = formats(state)
    maker = "from_config" if state["model"] == OTHER_MODEL else "preset"
    recipe = f'Recipe.named("{name}")' if name else "recipe_for(model, None, run)"
    if changed:
        recipe += f'.replace(optimizer="{changed}")'
    fields = [f"{field}={quoted(value)}" for field, value in said(state)]
    run = run_of(state)
    ranks = run.devices
    shared, within = [], []
    changed = not_default(ranks)
    for field in ("data", "zero", "library", "tensor", "pipeline", "schedule"):
        if field not in changed:
            continue
        value = changed[field]
        if field in ("library", "schedule"):
            told = not_default(value)
            inner = [f"{name}={quoted(told[name])}" for name in POLICY + ("name",) if name in told]
            within.append(type(value).__name__)
            shared.append(f"{field}={type(value).__name__}({', '.join(inner)})")
        else:
            shared.append(f"{field}={value}")
    names = "Model, Recipe, Run, estimate"
    if shared:
        fields.append(f"devices=Sharding({', '.join(shared)})")
        names = "Model, Recipe, Run, Sharding, estimate"
    more = f"from memlab.sharding import {', '.join(within)}\n" if within else ""
    more += "" if name else "from memlab.run.recipe_choice import recipe_for\n"
    made = f'Model.{maker}("{model(state)}")'
    if state.get("config", {}).get(WHOLE):
        more += "from memlab.lab.text_part import text_part\n"
        made = f'text_part("{CONFIG}")'
    if run.lora is not None:
        more += "from memlab.adapters.lora import Lora\n"
        base = f", {quoted(run.lora.base)}" if run.lora.base else ""
        base += f", dropout={run.lora.dropout}" if run.lora.dropout else ""
        names_of = [quoted(name) for name in run.lora.targets]
        targets = ", ".join(names_of) + ("," if len(names_of) == 1 else "")
        fields.append(f"lora=Lora({run.lora.rank}, ({targets}){base})")
    teacher = run.teacher
    if teacher is not None:
        more += "from memlab.run.teacher import Teacher\n"
        own = state["teacher"] == LIKE
        given = "model" if own else f'Model.preset("{state["teacher"]}")'
        given += f", {quoted(teacher.weights)}" if teacher.weights else ""
        fields.append(f"teacher=Teacher({given})")
    lines = [f"recipe = {recipe}", f"run = Run({', '.join(fields)})"]
    made_of = "\n".join(lines if name else lines[::-1])  # a program's own recipe asks the run
    return f"""from memlab import {names}
{more}
model = {made}
{made_of}
print(estimate(model, recipe, run))"""


def model(state: State) -> str:
    """What the command line calls the model."""
    return CONFIG if state["model"] == OTHER_MODEL else str(state["model"])


def formats(state: State) -> tuple[str, str]:
    """The name of the recipe, and the optimizer where it is not that recipe's own.

    The name is nothing where it is the program's own, with AdamW
    """
    wanted = recipe_of(state).optimizer
    if state["precision"] == OWN:
        return "", "" if wanted == Recipe.named("fp32").optimizer else wanted
    name = PRECISIONS[state["precision"]][1]
    return name, "" if wanted == Recipe.named(name).optimizer else wanted


def said(state: State) -> list[tuple[str, object]]:
    """The fields of the run that are not what memlab.Run has when nothing is said."""
    run, usual = run_of(state), Run()
    found: list[tuple[str, object]] = []
    for field in FIELDS:
        value = getattr(run, field)
        if value != getattr(usual, field) and not (field == "attention" and value == OWN):
            found.append((field, value))
    return found


def quoted(value: object) -> str:
    """A value as Python reads it."""
    return f'"{value}"' if isinstance(value, str) else str(value)
