"""A refusal in the words of a shell, and what of the question would be answered.

Rules are written once, for every door: eval_batch=4 is for loop='trainer'. Whoever typed flags
reads --eval-batch 4 is for --loop trainer.
"""

from __future__ import annotations

import re

from .asked import Asked, given, words

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Fields that have a flag of another name.
FLAGS = {"base": "lora_base", "saved": "lora_saved", "dora": "lora_dora", "library": "deepspeed"}
FLAGS |= {"tensor": "tensor_parallel", "context": "context_parallel"}
FLAGS |= {"pipeline": "pipeline_parallel", "reshard_after_forward": "no_reshard"}
FLAGS |= {"contiguous_gradients": "no_contiguous_gradients", "return_outputs": "no_outputs"}
FLAGS |= {"memory_efficient_linear": "no_memory_efficient_linear"}
# What a message calls adapters and devices, which several flags make.
ADAPTERS = re.compile(
    r"\b(?:lora=(?:Do|Lo)RA r=\S+ on \S+(?: in \S+)?(?: and \S+)?(?: over \w+)?"
    r"|adapter=(?:VeRA r=\S+ on \S+|IA³ on \S+|a prompt of \S+ trained tokens)(?: in \S+)?)"
)
MAKE = ("adapter", "lora_", "ia3", "vera_", "prompt_")
NAMED = re.compile(r"(?<![\w.\-])([a-z]\w*)=('[^']*'|\([^()]*\)|\[[^\[\]]*\]|[\w.,+-]*\w)")
# What is no part of a question that may be asked without it.
KEPT = ("model", "json", "plot", "on", "seen", "tokens", "batch", "engine", "posted")
# Of a message that says already what to type.
ENOUGH = ("`memlab", "; say ", ": say --", "did you mean", "needs tokens")


def as_typed(message: str, options: Any) -> str:
    """A message whose fields are named by the flags of this command."""
    actions = options.of_command._actions
    known = {action.dest: action for action in actions}
    choices = {str(each) for action in actions for each in action.choices or ()}

    def flag(found: re.Match[str]) -> str:
        action = known.get(FLAGS.get(found[1], found[1]))
        if action is None or not action.option_strings:
            return found[0]
        if action.nargs == 0:
            off = found[2] == "False" and len(action.option_strings) > 1
            return str(action.option_strings[-1 if off else 0])
        value = ",".join(re.findall(r"[^\s,'\[\]()]+", found[2]))
        return f"{action.option_strings[0]} {value}"

    made = [" ".join(words(*each)) for each in given(options) if each[0].dest.startswith(MAKE)]
    message = ADAPTERS.sub(lambda _: " ".join(made) or "--lora-rank", message)
    message = NAMED.sub(flag, message.replace("devices=", "")).replace(" True", "")
    message = re.sub(r"^(\w+)(?= is missing)", lambda found: f"--{found[1]}", message)
    return re.sub(r"'([\w-]+)'", lambda found: found[1 if found[1] in choices else 0], message)


def hint(message: str, options: Any, before: dict[str, Any]) -> str:
    """What of a question that was refused is answered: "; without --eval-batch 4 it is answered".

    message     the refusal, as_typed
    before      the options as they were parsed
    Leaves out  commands that trace or run something: none is tried here
    """
    command = options.of_command.prog.split()[-1]
    if command not in ("estimate", "fit", "explain", "serve") or before["model"] is None:
        return ""
    if [each for each in ENOUGH if each in message] or not _answered(command, before, options):
        return ""
    return next((f"; {how} it is answered" for how in _near(command, message, before, options)), "")


def _near(command: str, message: str, before: dict[str, Any], options: Any) -> Iterator[str]:
    """Ways to ask that are answered: without one option, or those that begin alike; or changed."""
    said = [each for each in given(Asked.of(before, options)) if each[0].dest not in KEPT]
    said.sort(key=lambda each: f"{message} {words(*each)[0]}".index(words(*each)[0]))
    alike = dict.fromkeys(each[0].dest.split("_")[0] for each in said)
    groups = [[each for each in said if each[0].dest.split("_")[0] == word] for word in alike]
    for group in [*([each] for each in said), *(each for each in groups if len(each) > 1)]:
        changed = before | {action.dest: action.default for action, _ in group}
        if _answered(command, changed, options, whole=True):
            yield "without " + " ".join(" ".join(words(*each)) for each in group)
    for action, value in said:
        for other in action.choices or ():
            if other != value and action.option_strings[0] in message:
                if _answered(command, before | {action.dest: other}, options, whole=True):
                    yield f"with {action.option_strings[0]} {other}"


def _answered(command: str, asked: dict[str, Any], options: Any, whole: bool = False) -> bool:
    """Whether a question has an answer; not `whole`: whether its model has.

    A step of it is checked as it is for `memlab estimate`: nothing is searched and nothing shown.
    """
    from . import arguments

    mine = Asked.of(asked, options)
    try:
        model = arguments.model_of(mine.model)
        if command == "serve":
            return not whole or bool(options.run(mine))
        if whole:
            from ..estimate import estimate

            if command == "fit" and mine.tokens is None:
                mine.tokens = 2
            how = arguments.run_of(mine, model)
            estimate(model, arguments.recipe_of(mine, model, how), how)
    except (ValueError, TypeError, OSError, ImportError):
        return False
    return True
