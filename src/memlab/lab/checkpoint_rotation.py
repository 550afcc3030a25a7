"""The last N checkpoints of a run, on disk: never fewer, and one more for a moment.

A checkpoint is worth having only if it is whole, so it is written beside the others under another
name and gets its own name when its last byte is on the disk. Only then may the oldest one go.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

NAME = re.compile(r"step-(\d{8})\.pt")


class KeepLast:
    """A folder that holds the checkpoints of the last `keep` steps that were saved.

    Formula     while one is written the folder holds up to keep + 1 checkpoints
    Unit        each is what torch.save writes: its tensors, once for each storage, and some
                hundred bytes a tensor for names and places
    Leaves out  sharded and asynchronous writing; the copy to the host that tensors of a GPU need
    Raises      ValueError for a `keep` below 1, and for a step that is not after the last one
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int) -> None:
        if keep < 1:
            raise ValueError(f"keep={keep}; at least 1 is needed, or no checkpoint would be left")
        self.folder, self.keep = Path(folder), keep
        self.folder.mkdir(parents=True, exist_ok=True)

    def steps(self) -> list[int]:
        """The steps whose checkpoints are whole, oldest first."""
        found = [NAME.fullmatch(path.name) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for match in found if match)

    def save(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write the checkpoint of a step, then drop what is older than the last `keep`."""
        if (last := self.steps()[-1:]) and step <= last[0]:
            raise ValueError(f"step={step} is not after the last one saved, {last[0]}")
        path = self._path(step)
        unfinished = path.with_suffix(".unfinished")
        with open(unfinished, "wb") as file:
            torch.save(dict(state), file)
            file.flush()
            os.fsync(file.fileno())  # a rename may reach the disk before the bytes do
        os.replace(unfinished, path)
        for old in self.steps()[: -self.keep]:
            self._path(old).unlink()
        return path

    def load(self, step: int | None = None, **how: Any) -> dict[str, Any]:
        """A checkpoint, by default the newest; `how` goes to torch.load.

        Raises      ValueError where there is none
        """
        steps = self.steps()
        if not steps or step not in (None, *steps):
            raise ValueError(f"step={step} has no checkpoint in the folder; it has: {steps}")
        return torch.load(self._path(steps[-1] if step is None else step), **how)

    @property
    def bytes(self) -> int:
        """What the files of the folder take on the disk, unfinished ones included."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.pt"
