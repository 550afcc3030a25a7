"""Record one kind of a type without a record of its own, and find out what may vary in it.

Nothing is known of the type but its config class and its code: which of its numbers are sizes, and
which change no byte, is tried.
"""

import json
from collections.abc import Mapping
from typing import Any

from ..families.recorded import SHARE
from ..measure.network_letters import Letters
from ..run import Run
from .network_kinds import watched, write
from .network_type import LETTERS, NO_TOKENS, frozen_passes, keys_of, pinned_of, told_of, usual_of

# Those of a type have no factors that its constants have; then the letters of its own sizes.
TYPE_PRIMES = {"T": 107, "D": 131, "F": 137, "V": 139, "H": 17, "P": 149}
OWN = "abcdefghij"
OWN_PRIMES = (151, 157, 163, 167, 173, 179, 181, 191, 193, 197)


Typed = tuple[dict[str, Any], dict[str, Any], list[str]]


def recorded_type(family: str, kind: str, own: Mapping[str, str], **said: Any) -> Typed:
    """The same of a type without a record of its own; and what the file says of the type.

    kind        may end in what its config says otherwise than its class, mlp_bias=true
    own         letters of sizes that other types do not have, and their keys
    said        other keys of its config
    Raises      what the type's own code raises
    """
    if "head_dim" in keys_of(family):
        try:
            return _recorded_type(family, kind, own, said, square=False)
        except RuntimeError:  # its code does not ask head_dim everywhere
            pass
    return _recorded_type(family, kind, own, said, square=True)


def own_sizes(family: str, kind: str) -> dict[str, str]:
    """Whole numbers of its config that stand in the sizes of tensors: their letters and keys."""
    usual = usual_of(family)
    numbers = [k for k, v in pinned_of(family).items() if type(v) is int and v > 1]
    own: dict[str, str] = {}
    for keys in [numbers] if len(numbers) < 2 else [numbers, *([key] for key in numbers)]:
        tried = dict(zip(OWN, sorted([*own.values(), *keys], key=usual.__getitem__), strict=False))
        try:
            made, told, problems = recorded_type(family, kind, tried)
        except Exception:  # the type's own code does not take such a number
            continue
        if not problems:
            words = [word for kind in made["kinds"] for word in kind.split()[1:]]
            used = set("".join(words))
            own = {letter: key for letter, key in tried.items() if letter in used}
        if len(keys) > 1 and not problems:
            break
    return dict(zip(OWN, own.values(), strict=False))


def any_number(family: str, kind: str, own: Mapping[str, str]) -> list[str]:
    """Keys whose number is multiplied by or added, and changes nothing of what is recorded."""
    usual = recorded_type(family, kind, own)[0]

    def same(keys: list[str]) -> bool:
        try:
            return recorded_type(family, kind, own, **dict.fromkeys(keys, 0.37))[0] == usual
        except Exception:  # the type's own code does not take such a number
            return False

    keys = [k for k, v in pinned_of(family).items() if type(v) is float and v and "drop" not in k]
    keys = [key for key in keys if key != SHARE]
    return keys if same(keys) else [key for key in keys if same([key])]


def _recorded_type(
    family: str, kind: str, own: Mapping[str, str], said: Mapping[str, Any], *, square: bool
) -> Typed:
    """square: its heads are together as wide as its model."""
    backend, keys = "cpu" if kind.startswith("cpu ") else "cuda", keys_of(family)
    precision, attention, texts, heads, *more = kind.removeprefix("cpu ").split()
    sizes, pinned = {letter: 8 * prime for letter, prime in TYPE_PRIMES.items()}, pinned_of(family)
    sizes |= {"B": 23 if texts == "many" else 1, "K": 4 * 29}
    sizes["N"] = sizes["K"] * {"own": 1, "shared": 31}[heads]
    sizes["D"] *= sizes["N"]
    if square:
        sizes["D"] = sizes["N"] * sizes["H"]
    config: dict[str, Any] = {
        key: sizes[LETTERS[field]] for field, key in keys.items() if field in LETTERS
    }
    config |= {key: json.loads(value) for key, _, value in (word.partition("=") for word in more)}
    config |= {"model_type": family, keys["layers"]: 2, keys["tied"]: False}
    config |= NO_TOKENS
    sizes |= dict(zip(own, (8 * prime for prime in OWN_PRIMES), strict=False))
    config |= {key: sizes[letter] for letter, key in own.items()} | dict(said)
    run = Run(batch=sizes["B"], tokens=sizes["T"], attention=attention, backend=backend)
    first = watched(config, precision, run, lambda path: False)
    passes = [first]
    passes += [watched(config, precision, run, each) for each in frozen_passes(first.module)]
    constants = [v for k, v in pinned.items() if type(v) is int and k not in own.values()]
    letters = Letters(sizes, _sums(sizes, pinned), constants)
    done, problems = write(passes, letters, ["all"] * 2)
    told = {**told_of(family, first.module, letters, config, own), "square": square}
    return done, told, problems


def _sums(sizes: dict[str, int], pinned: dict[str, Any]) -> dict[int, str]:
    """Sizes that are sums of letters: a text and a token, a fused matrix, what is not turned."""
    T, N, K, H = (sizes[letter] for letter in "TNKH")
    found = {T + 1: "T+1", T - 1: "T-1"} | {-(-T // n) * n: f"⌈T⌉{n}" for n in (8, 32) if T % n}
    found |= {sizes["P"] + n: f"P+{n}" for n in (1, 2)}
    if K < N:
        found |= {(N + 2 * K) * H: "N·H+2·K·H", N + 2 * K: "N+2·K", N // K + 2: "G+2"}
    found |= {(N + 2) * H: "N·H+2·H", N + 2: "N+2"}  # one head of keys and values for all
    turned = pinned.get("rotary_dim")
    return found | ({H - turned: f"H-{turned}"} if turned else {})
