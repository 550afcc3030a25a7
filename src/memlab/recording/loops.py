"""Whole loops of libraries: transformers' Trainer and TRL's SFTTrainer on the same texts."""

import tempfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import torch

from ..lab.quiet import quiet
from ..lab.third_step import third_step
from ..lab.trainers import CONFIG as SMALL
from ..model import Model
from ..run import Run
from ..step import simulate
from .case import Case, Predicted
from .meter import Meter

# Many words and few rows, so that how the loss treats the logits decides the peak.
CONFIG = SMALL | {"num_hidden_layers": 2, "vocab_size": 32768}
CLASSES = {"trainer": ("transformers", "Trainer"), "sft": ("trl", "SFTTrainer")}
PRECISION = "fp32"


def run_of(loop: str, backend: str) -> Run:
    return Run(batch=4, tokens=32, loop=loop, checkpoint="none", backend=backend)


def predict(loop: str, backend: str) -> dict[str, Predicted]:
    step = simulate(Model.from_config(CONFIG), PRECISION, run_of(loop, backend))
    return {"peak": Predicted(derived=step.peak.bytes)}


def trained(loop: str, meter: Meter) -> None:
    """Three steps; of the third the peak is noted."""
    with tempfile.TemporaryDirectory() as folder:
        third_step(
            PRECISION,
            run_of(loop, meter.device),
            folder,
            CONFIG,
            begins=meter.reset_peak,
            ends=meter.note_peak,
            use_cpu=meter.device == "cpu",
        )


def lacks(loop: str, device: str) -> str:
    """What is missing. What an import makes and keeps is there afterwards, and counts nowhere."""
    package, name = CLASSES[loop]
    if missing := [each for each in ("accelerate", package) if find_spec(each) is None]:
        return f"it needs {' and '.join(missing)}"
    if device == "cuda" and torch.cuda.device_count() > 1:
        return "Trainer would take all GPUs; CUDA_VISIBLE_DEVICES=0 shows it one"
    with quiet():
        getattr(import_module(package), name)
    return ""


def cases() -> list[Case]:
    how = {"trainer": "transformers' Trainer", "sft": "TRL's SFTTrainer"}
    return [
        Case(
            f"trainers/{loop}",
            f"the third step of a tiny Llama in {PRECISION} in {words}",
            {"peak": "trainers"},
            partial(predict, loop),
            partial(trained, loop),
            lacks=partial(lacks, loop),
        )
        for loop, words in how.items()
    ]
