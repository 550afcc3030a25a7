"""Everything beside the code that may change a measured byte: device, driver, versions, commit."""

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

from .subprocess_cases import ask_driver

HERE = Path(__file__).resolve().parent
NONE = "none"


def provenance(device: str) -> dict[str, str]:
    """The words of a record, of this machine and this moment."""
    on_cuda = device == "cuda"
    return {
        "kind": device,
        "device": torch.cuda.get_device_name() if on_cuda else f"CPU, {platform.machine()}",
        "driver": (ask_driver("driver_version") or "unknown") if on_cuda else NONE,
        "cuda": (torch.version.cuda or "unknown") if on_cuda else NONE,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
    }


def commit() -> str:
    """The commit of this checkout, "… and changes" if files differ from it; else "unknown"."""
    try:
        found = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{found} and changes" if changed else found


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=HERE.parent, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.strip()
