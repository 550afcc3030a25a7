"""A training_args.bin, which Trainer writes beside every checkpoint: what it holds, nothing run.

It is torch.save's zip around a pickle that names classes and has them called. Here each name stays
a name, each call a record of itself, and the state of an object is the dict that follows it: no
class is looked up, none is made. memlab.files.safe_pickle keeps the limits.
"""

from __future__ import annotations

import zipfile

from .safe_pickle import _operations, _Reader

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 2**20  # of the pickle; one of TrainingArguments has some 5,000
MOST_STEPS = 50_000


class Named:
    """What a pickle names, or made by a call of that name: `arguments`, and `state` after it."""

    def __init__(self, name: str, arguments: Any = ()) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None


class _Inert(_Reader):
    """Follows what names, calls and builds by writing it down."""

    def _follow(self, op: str, argument: Any) -> None:
        stack = self.stack
        if op == "GLOBAL":
            stack.append(Named(str(argument).replace(" ", ".")))
        elif op == "STACK_GLOBAL":
            name, module = stack.pop(), stack.pop()
            stack.append(Named(f"{module}.{name}"))
        elif op in ("REDUCE", "NEWOBJ"):
            given, called = stack.pop(), stack.pop()
            stack.append(Named(_name(called), given))
        elif op == "BUILD":
            state = stack.pop()
            made = stack[-1]
            if not isinstance(made, Named):
                raise TypeError
            made.state = state
        elif op in ("EMPTY_SET", "FROZENSET"):
            stack.append([] if op == "EMPTY_SET" else self._since_mark())
        elif op == "ADDITEMS":
            found = self._since_mark()
            self.stack[-1].extend(found)
        else:
            super()._follow(op, argument)


def _name(called: Any) -> str:
    if not isinstance(called, Named):
        raise TypeError
    return called.name


def arguments_of(path: str) -> tuple[str, dict[str, Any]]:
    """The class of the arguments, and each of them by its name.

    Raises      ValueError for a file that is none, or is beyond the limits
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1 or archive.getinfo(names[0]).file_size > MOST_BYTES:
                raise ValueError(f"{path} is no training_args.bin: one data.pkl is needed")
            with archive.open(names[0]) as file:
                data = file.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, OSError) and error.filename:
            raise
        raise ValueError(f"{path} is no training_args.bin: {error}") from None
    reader = _Inert(path)
    for count, (op, argument, position) in enumerate(_operations(data, path)):
        if count == MOST_STEPS:
            raise ValueError(f"{path} has more than {MOST_STEPS:,} values")
        reader.follow(op.name, argument, position)
    found = reader.result()
    if not isinstance(found, Named) or not isinstance(found.state, dict):
        raise ValueError(f"{path} holds no arguments of a trainer")
    kept = {key: _plain(value) for key, value in found.state.items()}
    public = {key: value for key, value in kept.items() if not key.startswith("_")}
    return found.name, {key: value for key, value in public.items() if key not in MADE}


# What __post_init__ adds, which is no argument.
MADE = ("distributed_state", "deepspeed_plugin", "hf_deepspeed_config", "fsdp_plugin_args")


def _plain(value: Any, left: list[int] | None = None, deep: int = 0) -> Any:
    """A value as JSON has it: an enum's member is its text, another object its state.

    left        how many values may still be looked at: one that holds itself has no end
    """
    left = [MOST_STEPS] if left is None else left
    left[0] -= 1
    if deep > 4 or left[0] < 0:
        return None
    if isinstance(value, Named):
        texts = value.arguments if isinstance(value.arguments, tuple) else ()
        if len(texts) == 1 and isinstance(texts[0], (str, int)):
            return texts[0]
        return _plain(value.state, left, deep + 1)
    if isinstance(value, dict):
        return {key: _plain(each, left, deep + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, left, deep + 1) for each in value[: left[0]]] if left[0] > 0 else None
    return value
