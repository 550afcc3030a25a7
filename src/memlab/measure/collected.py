"""Which objects Python's garbage collector lists, by their kind.

A process with torch has a million of them, so nothing here looks at each in Python.
"""

import gc
from collections.abc import Callable
from itertools import compress
from typing import Any


def collected(wanted: Callable[[type], bool]) -> list[Any]:
    """Those whose type is wanted; it is asked once a type, and of no object, as some are odd."""
    objects = gc.get_objects()
    kinds = list(map(type, objects))
    named = dict(zip(map(id, kinds), kinds, strict=True))  # some types have no hash
    found = {number for number, kind in named.items() if wanted(kind)}
    return list(compress(objects, map(found.__contains__, map(id, kinds))))
