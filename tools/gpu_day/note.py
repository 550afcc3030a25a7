"""A part's JSON file, written anew after every figure: a crash loses only what comes after it."""

import json
import os
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = ("transformers", "peft", "accelerate", "bitsandbytes", "torchao", "trl")
LONGEST = 4000  # characters of a text


class Note:
    """What one run found, in the file of its part, beside the runs before it.

    Shapes      {"device": ..., "runs": {run: {"state", "message", "figures", "texts"}}}; a figure
                is {"measured", "predicted", "by", "difference"}: bytes or a count, null where this
                device has no such counter or memlab no prediction
    """

    def __init__(self, path: Path, run: str, device: str, **about: str) -> None:
        self.path, self.run, self.device, self.about = path, run, device, about
        self.began = time.monotonic()

    def figure(
        self,
        name: str,
        measured: int | None = None,
        *,
        predicted: int | None = None,
        by: str = "",
    ) -> None:
        """Note a measured figure, or add memlab's to one that is there.

        With a part's first figure it says where this is, which makes the CUDA context.
        """

        def change(whole: dict[str, Any]) -> None:
            if "libraries" not in whole:
                whole |= provenance(self.device) | {"libraries": libraries()} | self.about
            empty = {"measured": None, "predicted": None, "by": "", "difference": None}
            row = self._mine(whole)["figures"].setdefault(name, empty)
            told = {"measured": measured, "predicted": predicted, "by": by or None}
            row |= {key: value for key, value in told.items() if value is not None}
            if None not in (row["measured"], row["predicted"]):
                row["difference"] = row["measured"] - row["predicted"]

        self._change(change)

    def text(self, name: str, words: str) -> None:
        """Note words as they were printed."""
        self._change(lambda whole: self._mine(whole)["texts"].update({name: words}))

    def state(self, state: str, message: str = "") -> None:
        """Say how the run ended: measured, skipped, failed, stopped."""

        def change(whole: dict[str, Any]) -> None:
            seconds = round(time.monotonic() - self.began, 1)
            told = {"state": state, "message": message[:LONGEST], "seconds": seconds}
            self._mine(whole).update(told)

        self._change(change)

    def found(self) -> dict[str, Any]:
        """The run as it stands in the file."""
        return self._mine(self._read())

    def _mine(self, whole: dict[str, Any]) -> dict[str, Any]:
        empty = {"state": "begun", "message": "", "seconds": 0.0, "figures": {}, "texts": {}}
        return whole["runs"].setdefault(self.run, empty)  # type: ignore[no-any-return]

    def _read(self) -> dict[str, Any]:
        with suppress(FileNotFoundError):
            return json.loads(self.path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        return {"schema": 1, **self.about, "runs": {}}

    def _change(self, change: Any) -> None:
        whole = self._read()
        change(whole)
        whole["runs"] = whole.pop("runs")  # last, below what it was found on
        part = self.path.with_name(f".{self.path.name}.part")
        text = json.dumps(whole, indent=1, ensure_ascii=False)
        part.write_text(f"{text}\n", encoding="utf-8")
        os.replace(part, self.path)


def provenance(device: str) -> dict[str, Any]:
    """Device, driver, versions, date and commit."""
    from memlab.recording import provenance  # imports torch, which the runner does not need

    return dict(provenance.provenance(device))


def libraries() -> dict[str, str]:
    """The versions of those that are installed."""
    found = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
