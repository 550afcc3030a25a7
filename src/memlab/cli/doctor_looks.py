"""What `memlab doctor` looks at, one function each: what is there, and what to do about it.

A long file: one function a line of the answer, each with its sentences.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata

from ..base.extras import PACKAGES
from ..base.frozen import dataclass
from ..base.machine import free_bytes, total_bytes
from ..base.message import Localized, Message
from ..base.versions import PROVEN, VERSION
from ..units import GiB, MiB, text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Step = tuple[dict[str, Any] | None, str]

READY, OPTIONAL, MISSING = "ready", "optional", "missing"
# As in pyproject.toml; versions of Python that memlab is tested with.
PYTHONS = ((3, 11), (3, 13))
TORCH = (2, 11)
# What no answer of the core needs, and some chapter does.
BESIDE = """
    transformers trl peft accelerate bitsandbytes torchao matplotlib ipywidgets jupyterlab
""".split()
MOST = 5 * GiB // 2  # resident in the kernel of a chapter
DISK = GiB  # what chapters and their environment write
DISK_INSTALLS = 4 * GiB  # PyTorch's CPU build and what the chapters import take 2.3 GiB
NEAR = 0.05  # by which one GPU's bytes differ with driver and error correction, and a little more
SECONDS = 300  # for a program to answer: the first import of PyTorch reads gigabytes
BROWSERS = """
    firefox google-chrome google-chrome-stable chromium chromium-browser microsoft-edge
    microsoft-edge-stable brave-browser vivaldi opera epiphany falkon konqueror wslview
""".split()
NOT_THERE = "not installed"
UNTESTED = "{1}; memlab is tested with {2} to {3}"
OTHER_VERSION = "{1}; the outputs of the book were made with {2}"
OLD = "{1}; at least {2} is needed"
FAILS = "{1}; its first step fails: {2}"
STEP = "{1}, {2} build; a step of tiny-llama: {3} of weights, as derived"
DIFFERS = "{1}, {2} build; a step of tiny-llama: {3} of weights; the formula gives {4}"
FREE = "{1} free of {2}; a chapter needs up to {3}"
NOT_SAID = "the system does not report how much is free"
DISK_FREE = "{1} free in this folder; {2} are needed"
NO_BROWSER = "none was found"
KERNEL = "python3 starts: Python {1} with memlab {2}"
OTHER_KERNEL = "python3 starts another Python, which has no memlab: {1}"
NO_KERNEL = "python3 does not start: {1}"
NO_GPU = "none; every chapter runs on the CPU"
GPU = "{1}: {2} usable, {3} free{4}"
GPU_FAILS = "{1} does not compute: {2}"
GPU_UNUSED = "{1}, {2}{3}; PyTorch does not see it, and chapters run on the CPU"
SMI_FAILS = "nvidia-smi reports: {1}"
DRIVER = ", driver {1}"
LISTED = "{1}; `memlab devices`: {2}, {3}"
APPLE = "Apple GPU (MPS): PyTorch takes up to {1}"
NO_NODE = "not installed; only building the book needs it"
GET_PYTHON = "install Python 3.13"
GET_SPACE = "make room on this disk, or use another one"
CLOSE = "close other programs before a chapter"
MORE_MEMORY = "use a machine or a container with more memory"
SEE_BROWSER = "install one, or open the address that Jupyter prints on another machine"
SEE_DRIVER = "install or restart the driver of the GPU"
GET_CUDA = "install the build of PyTorch for this GPU and driver: https://pytorch.org"
SENTENCES = (
    *(NOT_THERE, UNTESTED, OTHER_VERSION, OLD, FAILS, STEP, DIFFERS, FREE, NOT_SAID, DISK_FREE),
    *(NO_BROWSER, KERNEL, OTHER_KERNEL, NO_KERNEL, NO_GPU, GPU, GPU_FAILS, GPU_UNUSED, SMI_FAILS),
    *(DRIVER, LISTED, APPLE, NO_NODE, GET_PYTHON, GET_SPACE, CLOSE, MORE_MEMORY, SEE_BROWSER),
    *(SEE_DRIVER, GET_CUDA, "memory", "disk", "browser", "Jupyter kernel", "Node.js and npm"),
)


@dataclass(frozen=True)
class Look:
    """One line: what was looked at, what is there, and what to do; `do` may be empty."""

    name: str
    state: str
    found: str
    do: str = ""


def looks() -> Iterator[Look]:
    """All of them, in the order in which they are told."""
    version = installed("torch")
    step: Step = None, ""
    if version is not None and _numbers(version) >= TORCH:
        step = printed("doctor_torch")
    yield python()
    yield Look("memlab", READY, Localized(VERSION))
    yield torch(version, *step)
    yield from map(beside, BESIDE)
    yield memory()
    yield disk()
    yield browser()
    yield kernel()
    yield from gpus(step[0])
    yield node()


def python() -> Look:
    found, (first, last) = sys.version_info[:2], PYTHONS
    told = Localized(platform.python_version())
    if first <= found <= last:
        return Look("Python", READY, told)
    words = Message(UNTESTED, told, _version(first), _version(last))
    return Look("Python", OPTIONAL if found > last else MISSING, words, GET_PYTHON)


def torch(version: str | None, step: dict[str, Any] | None, why: str) -> Look:
    """PyTorch, and what one step with it found in a process of its own, or why it failed."""
    name, packages = "PyTorch", PACKAGES["torch"]
    if version is None:
        return Look(name, MISSING, NOT_THERE, f"pip install {packages}")
    if _numbers(version) < TORCH:
        words = Message(OLD, Localized(version), _version(TORCH))
        return Look(name, MISSING, words, f"pip install --upgrade {packages}")
    if step is None:
        again = "" if why.startswith("ModuleNotFoundError") else "--force-reinstall "
        words = Message(FAILS, Localized(version), Localized(why))
        return Look(name, MISSING, words, f"pip install {again}{packages}")
    sizes = [f"{step[each]:,} B" for each in ("measured", "derived")]
    told = Localized(step["version"]), build(step)
    if sizes[0] != sizes[1]:
        again = f"pip install torch=={PROVEN['torch']}"
        return Look(name, MISSING, Message(DIFFERS, *told, *sizes), again)
    return Look(name, READY, Message(STEP, *told, sizes[0]))


def beside(name: str) -> Look:
    """A package that some chapter imports."""
    found, proven = installed(name), PROVEN.get(name)
    if found is None:
        return Look(name, OPTIONAL, NOT_THERE, f"pip install {name}")
    if proven in (None, found.partition("+")[0]):
        return Look(name, READY, Localized(found))
    words = Message(OTHER_VERSION, Localized(found), Localized(proven))
    return Look(name, OPTIONAL, words, f"pip install {name}=={proven}")


def memory() -> Look:
    free, total = free_bytes(), total_bytes()
    if free is None or total is None:
        return Look("memory", OPTIONAL, NOT_SAID, "pip install psutil")
    words = Message(FREE, text(free), text(total), text(MOST))
    if total < MOST:
        return Look("memory", MISSING, words, MORE_MEMORY)
    return Look("memory", READY, words) if free >= MOST else Look("memory", OPTIONAL, words, CLOSE)


def disk() -> Look:
    free = shutil.disk_usage(os.getcwd()).free
    needed = DISK if installed("torch") else DISK_INSTALLS
    words = Message(DISK_FREE, text(free), text(needed))
    return Look("disk", READY, words) if free >= needed else Look("disk", MISSING, words, GET_SPACE)


def browser() -> Look:
    """A browser that a notebook can be opened in; none is needed where Jupyter runs elsewhere."""
    if sys.platform.startswith(("win", "darwin", "cygwin")):
        return Look("browser", READY, "Edge" if os.name == "nt" else "Safari")  # as they come
    asked = os.environ.get("BROWSER", "").partition(os.pathsep)[0]
    for name in [*asked.split()[:1], *BROWSERS]:
        if shutil.which(name):
            return Look("browser", READY, Localized(os.path.basename(name)))
    return Look("browser", OPTIONAL, NO_BROWSER, SEE_BROWSER)


def kernel() -> Look:
    """The kernel that notebooks of the book name, started and asked for memlab."""
    name = "Jupyter kernel"
    lacks = [each for each in ("jupyter_client", "ipykernel") if installed(each) is None]
    if lacks:
        return Look(name, MISSING, NOT_THERE, "pip install jupyterlab ipykernel")
    one, why = printed("doctor_kernel")
    mend = "python -m ipykernel install --sys-prefix --name python3"
    if one is None:
        return Look(name, MISSING, Message(NO_KERNEL, Localized(why)), mend)
    if one["memlab"] is None:
        return Look(name, MISSING, Message(OTHER_KERNEL, Localized(one["program"])), mend)
    words = Message(KERNEL, Localized(one["python"]), Localized(one["memlab"]))
    return Look(name, READY, words)


def gpus(step: dict[str, Any] | None) -> Iterator[Look]:
    """Each GPU that PyTorch sees; else those that the driver names; else that there is none."""
    there, why = smi()
    seen = step["gpus"] if step else []
    for place, gpu in enumerate(seen):
        driver = there[place][2] if place < len(there) else ""
        if gpu["error"]:
            words = Message(GPU_FAILS, Localized(gpu["name"]), Localized(gpu["error"]))
            yield Look("GPU", OPTIONAL, words, GET_CUDA)
            continue
        sizes = [text(gpu["usable"]), text(gpu["free"])]
        words = Message(GPU, Localized(gpu["name"]), *sizes, _driver(driver))
        yield Look("GPU", READY, as_listed(gpu["name"], gpu["usable"], words))
    if seen:
        return
    for name, size, driver in there:
        shown = text(size) if size else "?"
        words = Message(GPU_UNUSED, Localized(name), shown, _driver(driver))
        yield Look("GPU", OPTIONAL, words, GET_CUDA)
    if step and step["mps"]:
        yield Look("GPU", READY, Message(APPLE, text(step["mps"])))
    elif why:
        yield Look("GPU", OPTIONAL, Message(SMI_FAILS, Localized(why)), SEE_DRIVER)
    elif not there:
        yield Look("GPU", OPTIONAL, NO_GPU)


def as_listed(name: str, usable: int, words: str) -> str:
    """A GPU beside the one of its name in `memlab devices`, where that has its size."""
    from ..devices import device

    try:
        known = device(name)
    except ValueError:
        return words
    if abs(known.limit - usable) > usable * NEAR:
        return words  # "RTX 4060 Ti" has 8 GB or 16
    return Message(LISTED, words, Localized(known.name), text(known.limit))


def node() -> Look:
    found = [_first_line(name, "--version")[0] for name in ("node", "npm")]
    if not all(found):
        return Look("Node.js and npm", OPTIONAL, NO_NODE)
    return Look("Node.js and npm", READY, Localized(", ".join(found)))


def installed(package: str) -> str | None:
    """The version of a package, without its import; None where it is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def build(one: dict[str, Any]) -> str:
    """For what PyTorch was built."""
    named = {"CUDA": one["cuda"], "ROCm": one["hip"], "MPS": one["mps"] and " "}
    return Localized(next((f"{name} {of}".strip() for name, of in named.items() if of), "CPU"))


def printed(module: str) -> Step:
    """The last line of a program beside this one, as JSON; or None, and why there is none."""
    # -P: a file torch.py in this folder is no part of the question.
    words = [sys.executable, "-P", "-m", f"{__package__}.{module}"]
    said, why = _ran(words)
    try:
        return (None, why) if why else (json.loads(said.splitlines()[-1]), "")
    except (ValueError, IndexError):
        return None, said.strip()[-200:] or "it printed nothing"


def smi() -> tuple[list[tuple[str, int, str]], str]:
    """Name, bytes and driver of each GPU of NVIDIA's; why the driver does not answer."""
    if shutil.which("nvidia-smi") is None:
        return [], ""
    asked = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    said, why = _ran(["nvidia-smi", *asked])
    if why:
        return [], why
    found = []
    for line in said.splitlines():
        name, _, rest = line.partition(", ")
        size, _, driver = rest.partition(", ")
        found.append((name, int(size) * MiB if size.strip().isdigit() else 0, driver.strip()))
    return found, ""


def _first_line(*words: str) -> tuple[str, str]:
    path = shutil.which(words[0])
    said, why = _ran([path, *words[1:]]) if path else ("", "")
    return (said.splitlines() or [""])[0], why


def _ran(words: list[str]) -> tuple[str, str]:
    """What a program prints; and why it failed, in one line."""
    usual: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    try:
        done = subprocess.run(words, timeout=SECONDS, errors="replace", **usual)
    except subprocess.TimeoutExpired:
        return "", f"no answer in {SECONDS} s"
    except OSError as error:
        return "", error.strerror or str(error)
    if done.returncode == 0:
        return done.stdout, ""
    if done.returncode < 0:
        return "", f"signal {-done.returncode}"
    last = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
    return "", last.splitlines()[-1][:200]


def _driver(version: str) -> str:
    return Message(DRIVER, Localized(version)) if version else ""


def _version(numbers: tuple[int, ...]) -> str:
    return Localized(".".join(map(str, numbers)))


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(
        int("".join(c for c in part if c.isdigit()) or 0) for part in version.split(".")[:2]
    )
