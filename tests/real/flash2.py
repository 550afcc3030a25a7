"""The attention flash_attention_2 of transformers on a CPU, around a stand-in for its package."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from torch import nn

from memlab.lab.quiet import quiet
from memlab.measure.flash_attn import flash_attn_func, flash_attn_varlen_func


@contextmanager
def standing_in(module: nn.Module) -> Iterator[None]:
    """A model of transformers in training mode whose attention is flash_attention_2."""
    with quiet():
        from transformers import modeling_flash_attention_utils as theirs

    process: Any = theirs._lazy_define_process_function(flash_attn_varlen_func)
    functions = (flash_attn_func, flash_attn_varlen_func, None, None, None)
    config: Any = module.config
    before = config._attn_implementation
    with patch.object(
        theirs, "lazy_import_flash_attention", lambda *_, **__: (functions, (process, process))
    ):
        config._attn_implementation = "flash_attention_2"
        try:
            yield
        finally:
            config._attn_implementation = before
