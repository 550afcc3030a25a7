"""What a state of the controls asks for, in values of the core: model, recipe, run, card."""

from __future__ import annotations

from ..adapters import Lora
from ..base.message import Message
from ..base.quoted import visible
from ..devices import Device, devices
from ..engines.apple import mac, macs, no_cuda
from ..families import has_config
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.loops import TAUGHT
from ..run.optimizer_loops import LOOPS
from ..run.recipe_choice import recipe_for
from ..sharding import Sharding
from ..units import GiB, text
from . import words as say
from .adapter_controls import BASE, WHOLE
from .adapter_tables import targets_of
from .controls import (
    BY_THEMSELVES,
    OF_DEVICES,
    OF_RUN,
    OPTIMIZERS,
    OTHER_CARD,
    OTHER_MODEL,
    OWN,
    PRECISIONS,
    START,
)
from .fsdp_tables import synced
from .loop_controls import ALL, LEARNS, LIKE
from .loop_tables import PLAIN
from .pasted import WHOLE as OF_WHOLE
from .serve_controls import LLAMA_CPP, SERVE

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..run.teacher import Teacher

    State = dict[str, Any]

HALF = "fp16 weights and states"  # of published configs
FORMATS = ("weights", "other", "head", "master", "gradients", "accumulator", "autocast")


def model_of(state: State) -> Model:
    """The preset, or the model of the config."""
    if state["model"] != OTHER_MODEL:
        return Model.preset(state["model"])
    config = state["config"]
    model = Model.from_config(config)
    own = called(config)
    family = config.get(OF_WHOLE, model.family)
    return model.replace(name=visible(own) if own else say.YOURS.format(family=family))


def called(config: State) -> str:
    """The name that a config gives its model, if it does."""
    name = config.get("_name_or_path")
    return name.strip() if isinstance(name, str) else ""


def name_of(state: State, model: Model) -> str:
    """What to call it in a sentence."""
    if state["model"] != OTHER_MODEL or called(state["config"]):
        return model.name
    return Message(say.YOURS, family=state["config"].get(OF_WHOLE, model.family))


def recipe_of(state: State) -> Recipe:
    """The recipe that precision and optimizer say together, or what the program takes by itself.

    Raises      ValueError for a dtype in the config that no recipe has
    """
    recipe = _formats(state)
    name = f"{label_of(recipe)}, {OPTIMIZERS[state['optimizer']]}"
    return recipe.replace(name=name, optimizer=state["optimizer"])


def recipe_name(state: State) -> str:
    """What to call it in a sentence."""
    optimizer = OPTIMIZERS[state["optimizer"]]
    return Message(label_of(_formats(state)) + ", {optimizer}", optimizer=optimizer)


def _formats(state: State) -> Recipe:
    """The formats alone, of which the page's optimizer is another."""
    if state["precision"] != OWN:
        return Recipe.named(PRECISIONS[state["precision"]][1])
    whole = state["model"] != OTHER_MODEL
    return recipe_for(model_of(state) if whole else Config(state["config"]), None, run_of(state))


def label_of(recipe: Recipe) -> str:
    """What the form calls the formats of a recipe."""
    name = precision_of(recipe)
    return PRECISIONS[name][0] if name else HALF


class Config:
    """A config that was pasted, also of a type that memlab does not describe."""

    def __init__(self, config: State) -> None:
        self.config = config


def run_of(state: State) -> Run:
    """The run: of what the state does not say, it has memlab.Run's own defaults.

    Raises      ValueError for what no run can be
    """
    said = {name: state[name] for name in OF_RUN if state.get(name, OWN) != OWN}
    if said.get("optimizer_impl") not in LOOPS[state.get("optimizer", "adamw")][0]:
        said.pop("optimizer_impl", None)  # AdamW's loop, which this optimizer does not have
    if state.get("use") == SERVE:
        said.pop("loop", None)
    loop = said.get("loop", PLAIN)
    if loop in LEARNS and state.get("completion", ALL) != ALL:
        said["completion"] = state["completion"]
    if loop != PLAIN and said.get("loss", "plain") != "plain":
        raise ValueError(say.NO_LOOP_LOSS)
    shared = {name: state[name] for name in OF_DEVICES if name in state}
    if loop in TAUGHT:
        said["teacher"] = teacher_of(state)
        if Sharding.of(**shared).ranks > 1:
            raise ValueError(say.TEACHER_ALONE)
    if shared.get("pipeline", 1) > state.get("micro_batches", 1):  # torch's 1F1B refuses so few
        shared["schedule"] = "gpipe"
    if state.get("use") != SERVE and state.get("trained", WHOLE) != WHOLE:
        said["lora"] = lora_of(state)
    if shared.get("data", 1) == 1:
        shared.pop("zero", None)  # which would divide nothing
    if shared.get("zero") == 3:
        shared |= synced(loop, said.get("micro_batches", 1))
        if state.get("param_dtype", OWN) != OWN:
            shared["param_dtype"] = state["param_dtype"]
    return Run(devices=Sharding.of(**shared), **said)


def teacher_of(state: State) -> Teacher | None:
    """The model that judges; nothing: one like the student, in its format.

    Raises      ValueError for one that knows other words than the student
    """
    told: State = START | state
    name, weights = told["teacher"], told["teacher_weights"]
    if name == weights == LIKE:
        return None
    from ..run.teacher import Teacher  # few have one

    model = student = model_of(state)
    if name != LIKE:
        model = Model.preset(name)
    if model.vocab != student.vocab:
        sizes = {"theirs": f"{model.vocab:,}", "own": f"{student.vocab:,}"}
        names = {"teacher": name, "model": name_of(state, student)}
        raise ValueError(Message(say.OTHER_WORDS, **names, **sizes))
    return Teacher(model, None if weights == LIKE else weights)


def lora_of(state: State) -> Lora:
    """The adapters that are trained beside this model.

    Raises      ValueError for a model of a type that memlab does not describe
    """
    config = state.get("config", {})
    if state["model"] == OTHER_MODEL and not has_config(config["model_type"]):
        raise ValueError(Message(say.NO_ADAPTERS, family=config["model_type"]))
    told: State = START | state
    model = model_of(state)
    # The names come out of a dict, and those of MicroPython keep no order.
    order = [tensor.name.split(".")[-1] for tensor in model.tensors()]
    targets = sorted(targets_of(model, told["targets"]), key=order.index)
    dropped = told["lora_dropout"] / 100
    return Lora(told["rank"], tuple(targets), BASE[told["trained"]], dropout=dropped)


def card_of(state: State) -> Device:
    """The card of that name, or one of the size that is told.

    Raises      ValueError for one of Apple's beside what runs on CUDA
    """
    if state["card"] == OTHER_CARD:
        size = state["gib"] * GiB
        return Device(Message(say.YOUR_CARD, size=text(size)), 0, None, size)
    found = [each for each in devices() + macs() if each.name == state["card"]][0]
    if mac(found) and (state.get("use") != SERVE or state["engine"] != LLAMA_CPP):
        raise ValueError(no_cuda(found))
    return found


def controls_of(recipe: Recipe, run: Run) -> State:
    """What the controls show for a recipe and a run: the way back from recipe_of and run_of."""
    made: State = {name: getattr(run, name) for name in OF_RUN}
    for name in BY_THEMSELVES:
        made[name] = getattr(run, name) or OWN
    made["completion"] = run.completion or ALL
    made["optimizer"] = recipe.optimizer
    made["precision"] = precision_of(recipe) or OWN
    return made


def precision_of(recipe: Recipe) -> str:
    """The control's value that has these formats; "" for those of fp16, which it does not offer."""
    for name in PRECISIONS:
        usual = Recipe.named(PRECISIONS[name][1])
        if all([getattr(recipe, each) == getattr(usual, each) for each in FORMATS]):
            return name
    return ""
