"""Changes that only the simulation knows, and those that stand last: another place, another result.

More cards stand before the host and what makes another result, for a reader who has them pays with
transfers alone.
"""

from __future__ import annotations

from ..adapters import Lora
from ..recipe import Recipe
from ..run import Run
from .changes import CHANGES, Change
from .device_changes import line, ours, over
from .flags import flag
from .other_flags import other_line

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .changes import Turn

ATTENTION = ("q", "k", "v", "out")
EVERY_LINEAR = (*ATTENTION, "gate", "up", "down")
FEWEST = 256  # tokens: of shorter sequences a reader would no longer speak as of the same training
EIGHT, ON_HOST, BOTH_ON_HOST = (
    "8-bit states",
    "states on the host",
    "states and gradients on the host",
)
OTHER_STATES = ("fused AdamW", EIGHT, ON_HOST, BOTH_ON_HOST)
INSIDE = "a step inside backward"


def _sft(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
    """Its head alone: whether layers are computed again stays as it was, whatever TRL's default."""
    if run.loop != "trainer":
        return recipe, run
    return recipe, run.replace(loop="sft", checkpoint=run.checkpointing)


def _on_host(*parts: str) -> Turn:
    def turn(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
        if run.phase != "train" or recipe.optimizer != "adamw":
            return recipe, run
        return recipe, run.replace(offload=parts, optimizer_impl=None, step_in_backward=False)

    return turn


def _adafactor(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
    """torch's in a loop of one's own, its update one tensor at a time; transformers' in Trainer."""
    if recipe.optimizer != "adamw":
        return recipe, run
    own = run.loop in ("plain", "keeps-outputs")
    name = "adafactor" if own else "hf_adafactor"
    made = recipe.replace(name=f"{recipe.name}, Adafactor", optimizer=name, states=None)
    return made, run.replace(optimizer_impl="forloop" if own else None)


def _adapters(base: str | None, targets: tuple[str, ...] = EVERY_LINEAR) -> Turn:
    """Beside a step that is otherwise as it was: the advice calls no preparation of peft's."""
    lora = Lora(16, targets, base)
    return lambda recipe, run: (recipe, run.replace(lora=lora, checkpoint=run.checkpointing))


def _loss(name: str) -> Turn:
    return lambda recipe, run: (recipe, run.replace(loss=name))


def _inside(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
    return recipe, run.replace(step_in_backward=True)


TORCHS = CHANGES[2]
LIGERS = Change(
    "Liger Kernel's loss in chunks",
    _loss("liger"),
    "next to no time, but a package more, whose kernels are Triton's",
    (TORCHS.name,),
)
SFT = Change(
    "TRL's trainer and its fused head",
    _sft,
    "no time: another trainer, whose head makes the logits in tiles",
)
ADAPTERS = Change(
    "LoRA of rank 16 on every linear layer",
    _adapters(None),
    "no time, but another result: the weights stay as they are",
    (*OTHER_STATES, "Adafactor"),
)
STEPPED_INSIDE = Change(
    INSIDE,
    _inside,
    "no time, but no clipping by the norm of all gradients and no micro-batches",
)
OURS = Change("a loss in chunks", _loss("chunked"), "next to no time: a loop over rows")
# From what costs nothing to what costs most, as memlab.fit tries them: of models of transformers,
# and of memlab's own, which have a loss of their own.
EVERY = (*CHANGES[:3], SFT, STEPPED_INSIDE, *CHANGES[3:])
OF_MEMLAB = (*CHANGES[:2], OURS, STEPPED_INSIDE, *CHANGES[3:])
AWAY = (
    Change(
        ON_HOST,
        _on_host("optimizer"),
        "the host computes each step, and gradients cannot be clipped",
        (*OTHER_STATES, INSIDE),
    ),
    Change(
        BOTH_ON_HOST,
        _on_host("optimizer", "gradients"),
        "the host computes each step, without clipping and without micro-batches",
        (*OTHER_STATES, INSIDE),
    ),
)
OTHERWISE = (
    Change(
        "Adafactor",
        _adafactor,
        "another optimizer: no mean of the gradients, learning rates of its own",
        OTHER_STATES,
    ),
    ADAPTERS,
    Change(
        "the same LoRA on a base in nf4",
        _adapters("nf4"),
        "another result, and weights are widened again wherever they are used",
        (*OTHER_STATES, "Adafactor", ADAPTERS.name),
    ),
)
LAST = (*AWAY, *OTHERWISE)  # of one card
# Of a mixture, whose experts are no linear layers: peft would write the sum of each tensor of
# experts and its adapters out, in every layer.
BESIDE_EXPERTS = {
    ADAPTERS.name: (None, "LoRA of rank 16 on the linear layers of attention"),
    OTHERWISE[2].name: ("nf4", "the same LoRA, and linear layers in nf4: experts stay as they are"),
}


def every(run: Run) -> tuple[Change, ...]:
    """What is tried first, for a reader of whose code this run is."""
    return EVERY if run.implementation == "transformers" else OF_MEMLAB


def installed(every: tuple[Change, ...]) -> tuple[Change, ...]:
    """The same with what needs a package more, for those whom the others do not help."""
    return (*every, LIGERS) if TORCHS in every else every


def last_of(cards: int, of: str | None = None) -> tuple[Change, ...]:
    """What stands last for a reader who has so many cards, all alike.

    of      whose the division is: memlab.explain.device_changes.over
    """
    among = over(cards, of)
    names = tuple(change.name for change in among)
    # What is described on one card alone takes the place of several.
    return (*among, *(change.beside(names) for change in LAST))


def beside_experts(change: Change) -> Change:
    """The same for a mixture: adapters beside attention alone, under a name that says so."""
    names = tuple(BESIDE_EXPERTS[each][1] for each in change.replaces if each in BESIDE_EXPERTS)
    if change.name not in BESIDE_EXPERTS:
        return change.beside(names)
    base, name = BESIDE_EXPERTS[change.name]
    return Change(name, _adapters(base, ATTENTION), change.cost, (*change.replaces, *names))


def line_of(name: str, recipe: Recipe, run: Run) -> str | None:
    """The line of the reader's library that makes any of these changes; None: it has none."""
    for every, (_, attention) in BESIDE_EXPERTS.items():
        if name == attention:
            told = line_of(every, recipe, run)
            modules = '["q_proj", "k_proj", "v_proj", "o_proj"]'
            return told and told.replace('"all-linear"', modules)
    if ours(name):
        return line(name, recipe, run)
    found = other_line(name, recipe, run)
    return flag(name, recipe, run) if found == "" else found


def fewer_tokens(run: Run) -> tuple[Change, ...]:
    """Half of the tokens, a quarter, and so on: the last of all, for it is another task."""
    found: list[Change] = []
    names: list[str] = []
    tokens = run.tokens or 0
    while run.phase == "train" and tokens // 2 >= FEWEST:
        tokens //= 2
        name = f"sequences of {tokens:,} tokens"
        found.append(Change(name, _of(tokens), "what is longer is cut off", tuple(names)))
        names.append(name)
    return tuple(found)


def _of(tokens: int) -> Turn:
    return lambda recipe, run: (recipe, run.replace(tokens=tokens))
