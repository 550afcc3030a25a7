"""What is run, in order of worth: each in a process of its own, for no longer than its limit."""

import importlib
import importlib.util
from dataclasses import dataclass

from gpu_day.note import Note

ALL = 540  # seconds: nine minutes
PATIENCE = 4  # times as long for a rehearsal, which may run beside much else


@dataclass(frozen=True)
class One:
    """A run of a part.

    part        its file's name, without .json
    limit       seconds, at most; the runner gives no run more than is left of all
    where       its function in this folder, called with a note, the device and whether it is small
    needs       libraries; where one is missing the run is skipped
    setting     PYTORCH_ALLOC_CONF
    """

    name: str
    part: str
    limit: int
    where: str
    needs: tuple[str, ...] = ("transformers",)
    setting: str = ""

    def call(self, note: Note, device: str, small: bool) -> None:
        """Run it here."""
        module, _, function = self.where.partition(".")
        call = getattr(importlib.import_module(f"gpu_day.{module}"), function)
        from gpu_day.counted import counting  # imports torch, whose settings are read by now

        with counting(device):
            call(note, device, small)


def record(note: Note, device: str, small: bool) -> None:
    """`memlab record`, into card.json beside the parts; of a rehearsal two rows."""
    from memlab.cli import main

    out = note.path.with_name("card.json")
    only = ["--only", "small-optimizers/sgd", "context"] if small else []
    command = ["record", "--device", device, "--out", str(out), *only]
    status = main(command)
    note.figure("status of memlab record", status, predicted=0, by="no row out of tolerance")


# The cheap and certain ones come first: what follows can only take what they leave.
RUNS = (
    One("driver", "driver", 45, "driver.driver", needs=()),
    One("fails", "book", 90, "book.fails"),
    One("fits", "book", 75, "book.fits"),
    One("record", "driver", 120, "runs.record"),
    One("trainer", "train", 70, "library.trainer", ("transformers", "accelerate")),
    One("lora", "train", 50, "library.lora", ("transformers", "peft")),
    One("expandable", "book", 50, "book.expandable", setting="expandable_segments:True"),
    One("larger", "book", 50, "book.larger"),
    One("qlora", "train", 60, "library.qlora", ("transformers", "peft", "bitsandbytes")),
    One("sft", "train", 60, "library.sft", ("transformers", "trl", "datasets")),
    One("fp8", "train", 60, "library.fp8", ("transformers", "torchao")),
)


def preload() -> None:
    """Import what the runs import, once: a rehearsal forks from here, and has no CUDA to spoil."""
    for name in ("torch", "transformers.trainer", "peft", "trl", "torchao"):
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
