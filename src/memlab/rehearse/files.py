"""Nothing is saved, nothing is compiled, nobody is told.

Source      PyTorch 2.13: torch.save, torch.compile
"""

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

import torch

from ..measure.fake_cuda.assumed import Assumed
from ..measure.fake_cuda.undo import Changes

# Trackers of runs, told to stay quiet in the words of each; and the hub, which is only read here.
QUIET = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "SWANLAB_MODE": "disabled",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def environment(changes: Changes, more: dict[str, str]) -> None:
    """Set variables of the environment, and put all of them back."""
    before = dict(os.environ)

    def back() -> None:
        os.environ.clear()
        os.environ.update(before)

    changes.callback(back)
    os.environ.update(more | QUIET)


def nothing_saved(changes: Changes, assumed: Assumed) -> None:
    """Write no checkpoint."""
    for path, name in SAVES:
        owner = _found(path)
        if owner is not None and hasattr(owner, name):
            changes.replace(owner, name, _skipped(assumed, f"{path}.{name}"))


# Where weights are written, by the library that writes them.
SAVES = (
    ("torch", "save"),
    ("safetensors.torch", "save_file"),
    ("safetensors.torch", "save_model"),
    ("transformers.modeling_utils.PreTrainedModel", "save_pretrained"),  # transformers 5.23
    ("transformers.trainer.Trainer", "_save_checkpoint"),
    ("peft.peft_model.PeftModel", "save_pretrained"),  # peft 0.21
)


def _found(path: str) -> Any:
    """A module, or a class of one, that has been imported."""
    import sys

    if path in sys.modules:
        return sys.modules[path]
    home, _, name = path.rpartition(".")
    return getattr(sys.modules.get(home), name, None)


def _skipped(assumed: Assumed, name: str) -> Any:
    def skipped(*_: Any, **__: Any) -> None:
        assumed.skip("{name}: nothing is written", name=name)

    return skipped


def nothing_compiled(changes: Changes, assumed: Assumed) -> None:
    """Run a compiled function as it is written: mostly an upper bound."""
    said = "torch.compile: the step as it is written, mostly an upper bound"

    def compiled(model: Any = None, *_: Any, **__: Any) -> Any:
        assumed.skip(said)
        return model if model is not None else lambda function: function

    changes.replace(torch, "compile", compiled)
    changes.replace(torch.nn.Module, "compile", lambda *_, **__: assumed.skip(said))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What a program prints is what it printed before."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield
