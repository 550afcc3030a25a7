"""memlab: where every byte of memory goes when a language model is trained or served.

Importing memlab imports no torch, numpy or matplotlib; `memlab.measure` and `memlab.lab` do.
"""

import sys
from types import ModuleType

from .base import versions

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .face import *  # noqa: F403

__version__ = versions.VERSION
__all__ = (
    *("GB", "GiB", "KiB", "Ledger", "MB", "MiB", "Model", "Recipe", "Row", "Run", "Sharding"),
    *("TiB", "bytes_per_value", "check", "estimate", "exact", "explain", "format_of", "parse"),
    *("presets", "recipes", "rehearse", "storage", "text", "trace"),
)

if "IPython" in sys.modules:  # a notebook's own sentences in its reader's language
    from .base.translated_output import listen

    listen()


class _Face(ModuleType):
    """Names of memlab.face, imported with the first of them that somebody asks for.

    `estimate`, `explain` and `rehearse` are modules as well, which Python would bind here in the
    place of the functions as soon as anything is imported from them.
    """

    def __getattr__(self, name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from . import face

        vars(self).update({each: getattr(face, each) for each in __all__})
        return vars(self)[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *__all__})


sys.modules[__name__].__class__ = _Face
