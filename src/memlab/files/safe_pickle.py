"""Read a pickle that holds plain values only, without executing anything that it says.

A pickle is a little program: it can name any function of any module and have it called, and
`pickle.load` obeys. What PyTorch writes into a memory snapshot needs none of that: dicts, lists,
tuples, text and numbers. So nothing of `pickle` runs here. `pickletools.genops` takes the file
apart into instructions without following any, and the loop below follows those that make plain
values. Every other instruction is refused before the next one is read.

What a plain value can still do is grow, and the limits are against that: a list that is named a
million times costs a few bytes each time. Nothing here walks through a value, so that a value of
a million million members, all of them the same, costs no more than its file. Who reads it further
has to count (memlab.files.snapshots does).
"""

from __future__ import annotations

import io

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_BYTES = 2**30  # of a file
MOST_VALUES = 20_000_000  # instructions: a value needs one at least
MOST_OPEN = 100  # containers begun and not ended
MOST_WAITING = 200_000  # values that wait for their container; pickle itself writes 1,000 at a time
MOST_DIGITS = 16  # bytes of a whole number: the largest address has 8

# Whoever wants code run needs one of these. The first four name it, the others call it.
FORBIDDEN = {
    "GLOBAL": "names",
    "STACK_GLOBAL": "names",
    "INST": "names",
    "EXT1": "names an extension",
    "EXT2": "names an extension",
    "EXT4": "names an extension",
    "PERSID": "asks the reader for an object",
    "BINPERSID": "asks the reader for an object",
    "REDUCE": "calls a function",
    "OBJ": "makes an object",
    "NEWOBJ": "makes an object",
    "NEWOBJ_EX": "makes an object",
    "BUILD": "sets the state of an object",
    "NEXT_BUFFER": "asks the reader for a buffer",
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
NUMBERS = {"INT", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"}
WORDS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
NOTHING = {"PROTO", "FRAME"}  # how the file is cut, and by which protocol it was written


def load(data: bytes, name: str = "this file") -> Any:
    """The plain value of a pickle: dict, list, tuple, str, int, float, bool and None.

    Source      pickletools, the comments in which define the format
    Leaves out  bytes, sets and whatever else a pickle may hold: refused
    Raises      ValueError for an instruction that would run or make anything else (by what it
                names, as "os.system"), for a file that is truncated, damaged or no pickle, and
                beyond the limits above
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"{name} has {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    reader = _Reader(name)
    for count, (op, argument, position) in enumerate(_operations(data, name)):
        if count == MOST_VALUES:
            raise ValueError(f"{name} has more than {MOST_VALUES:,} values")
        reader.follow(op.name, argument, position)
    return reader.result()


def _operations(data: bytes, name: str) -> Any:
    """Each instruction of the pickle with its argument and its position."""
    import pickletools  # when a file is read: the command line seldom does

    stream = io.BytesIO(data)
    try:
        yield from pickletools.genops(stream)
    except (ValueError, OverflowError, MemoryError) as error:
        at = stream.tell()
        if at >= len(data):
            raise ValueError(f"{name} is truncated: it ends after {len(data):,} bytes") from None
        words = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        what = "is not a pickle" if at < 8 else f"is damaged at byte {at:,}"
        raise ValueError(f"{name} {what}: {words}") from None


class _Reader:
    """The stack of a pickle's values, for the instructions that make plain ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each mark
        self.memo: dict[int, Any] = {}
        self.done = False

    def follow(self, op: str, argument: Any, position: int) -> None:
        try:
            self._follow(op, argument)
        except _Refused as refused:
            raise ValueError(f"{self.name} is refused at byte {position:,}: {refused}") from None
        except (IndexError, KeyError, AttributeError, TypeError):
            wrong = f"{op} finds nothing to work on"
            raise ValueError(f"{self.name} is damaged at byte {position:,}: {wrong}") from None
        if len(self.stack) > MOST_WAITING:
            raise ValueError(f"{self.name}: more than {MOST_WAITING:,} values wait for a container")

    def result(self) -> Any:
        if not self.done or self.below or len(self.stack) != 1:
            raise ValueError(f"{self.name} is damaged: it does not end with one value")
        return self.stack[0]

    def _follow(self, op: str, argument: Any) -> None:
        if op in FORBIDDEN:
            raise _Refused(self._what(op, argument))
        if op in CONSTANTS:
            self.stack.append(CONSTANTS[op])
        elif op in NUMBERS:
            self.stack.append(_number(argument))
        elif op in WORDS:
            self.stack.append(argument)
        elif op in TUPLES:
            size = TUPLES[op]
            if len(self.stack) < size:
                raise IndexError
            self.stack[-size:] = [tuple(self.stack[-size:])]
        elif op in _METHODS:
            _METHODS[op](self, argument)
        elif op == "STOP":
            self.done = True
        elif op not in NOTHING:
            raise _Refused(f"it holds something that is not plain ({op})")

    def _what(self, op: str, argument: Any) -> str:
        """What a refused instruction is after, by name where it has one."""
        named = ""
        if op in ("GLOBAL", "INST"):
            named = str(argument).replace(" ", ".")
        elif op == "STACK_GLOBAL" and len(self.stack) > 1:
            named = ".".join(str(word) for word in self.stack[-2:] if isinstance(word, str))
        elif op.startswith("EXT") or op == "PERSID":
            named = str(argument)
        named = "".join(c if c.isprintable() else "?" for c in named)[:80]
        return f"it {FORBIDDEN[op]}{' ' + named if named else ''} ({op}); plain values are read"

    def _mark(self, _: Any) -> None:
        if len(self.below) == MOST_OPEN:
            raise _Refused(f"more than {MOST_OPEN} containers are open at once")
        self.below.append(self.stack)
        self.stack = []

    def _since_mark(self) -> list[Any]:
        found, self.stack = self.stack, self.below.pop()
        return found

    def _list(self, _: Any) -> None:
        self.stack.append([])

    def _dict(self, _: Any) -> None:
        self.stack.append({})

    def _empty_tuple(self, _: Any) -> None:
        self.stack.append(())

    def _tuple(self, _: Any) -> None:
        found = self._since_mark()
        self.stack.append(tuple(found))

    def _append(self, _: Any) -> None:
        value = self.stack.pop()
        _of(list, self.stack[-1]).append(value)

    def _appends(self, _: Any) -> None:
        found = self._since_mark()
        _of(list, self.stack[-1]).extend(found)

    def _set_item(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._put([key, value])

    def _set_items(self, _: Any) -> None:
        self._put(self._since_mark())

    def _put(self, pairs: list[Any]) -> None:
        """Keys are text: to look up a tuple of tuples, Python would walk through all of it."""
        target = _of(dict, self.stack[-1])
        if len(pairs) % 2:
            raise IndexError
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str):
                raise _Refused(f"a key is a {type(key).__name__}; text is needed")
            target[key] = value

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _remember(self, number: Any) -> None:
        self.memo[number] = self.stack[-1]

    def _recall(self, number: Any) -> None:
        self.stack.append(self.memo[number])


_METHODS: dict[str, Callable[[_Reader, Any], None]] = {
    "MARK": _Reader._mark,
    "EMPTY_LIST": _Reader._list,
    "EMPTY_DICT": _Reader._dict,
    "EMPTY_TUPLE": _Reader._empty_tuple,
    "TUPLE": _Reader._tuple,
    "APPEND": _Reader._append,
    "APPENDS": _Reader._appends,
    "SETITEM": _Reader._set_item,
    "SETITEMS": _Reader._set_items,
    "MEMOIZE": _Reader._memoize,
    "BINPUT": _Reader._remember,
    "LONG_BINPUT": _Reader._remember,
    "BINGET": _Reader._recall,
    "LONG_BINGET": _Reader._recall,
}


class _Refused(Exception):
    """Why an instruction is not followed."""


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _number(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > 8 * MOST_DIGITS:
        raise _Refused(f"a whole number of {value.bit_length():,} bits")
    return value
