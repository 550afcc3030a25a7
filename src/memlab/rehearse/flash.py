"""The package flash-attn where it is not installed: its functions, with what they make and keep.

Source      transformers 5.23: modeling_flash_attention_utils, utils.import_utils
"""

import sys
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from ..measure import flash_attn as standing_in
from ..measure.fake_cuda.assumed import Assumed
from ..measure.fake_cuda.undo import Changes

NAME, VERSION = "flash_attn", "2.7.4"  # whose tensors these are
# What transformers keeps of the package once it has looked for it.
KEPT = (
    *("_flash_fn", "_flash_varlen_fn", "_flash_with_kvcache_fn", "_pad_fn", "_unpad_fn"),
    *("_process_flash_kwargs_fn", "_process_with_kvcache_kwargs_fn", "_loaded_implementation"),
)


def flash(changes: Changes, assumed: Assumed) -> None:
    """Let a program and transformers find it, and say where it was used."""
    if NAME in sys.modules or PathFinder.find_spec(NAME) is not None:
        return

    def said(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            assumed.skip(
                "flash_attn, not installed here: its kernels, with the tensors of {version}",
                version=VERSION,
            )
            return function(*args, **kwargs)

        return call

    package = _module(changes, NAME)
    package.__version__ = VERSION  # type: ignore[attr-defined]
    for name in ("flash_attn_func", "flash_attn_varlen_func"):
        setattr(package, name, said(getattr(standing_in, name)))
    interface = _module(changes, f"{NAME}.flash_attn_interface")
    vars(interface).update({name: vars(package)[name] for name in vars(package) if "func" in name})
    package.flash_attn_with_kvcache = None  # type: ignore[attr-defined]
    theirs = sys.modules.get("transformers.modeling_flash_attention_utils")
    if theirs is None:
        return
    padding = _module(changes, f"{NAME}.bert_padding")
    padding.pad_input, padding.unpad_input = theirs._pad_input, theirs._unpad_input  # type: ignore
    helpers = sys.modules["transformers.utils.import_utils"]
    for name in ("is_flash_attn_2_available", "is_flash_attn_greater_or_equal"):
        changes.everywhere(
            getattr(helpers, name), lambda *_, **__: True
        )  # one each, to be put back
    known = getattr(theirs, "FLASH_ATTENTION_COMPATIBILITY_MATRIX", {}).get(2, {})
    before = dict(known)
    changes.callback(known.update, before)
    known["general_availability_check"] = lambda *_, **__: True
    for name in KEPT:
        if hasattr(theirs, name):
            changes.replace(theirs, name, None)


def _module(changes: Changes, name: str) -> ModuleType:
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None, is_package=name == NAME)
    sys.modules[name] = made
    changes.callback(sys.modules.pop, name, None)
    return made
