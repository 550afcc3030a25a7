"""The wheels that memlab's notebooks need on another machine, found by pip and by their metadata.

`pip download --platform` reads the conditions of a requirement (`sys_platform == "win32"`) for the
machine that it runs on. So wheels are asked for here round by round: pip chooses one of each name
for that platform and that Python, the wheel's metadata says what it requires there, until no name
is new. Versions are those of constraints.txt; what only another system needs has no line there, and
pip takes the newest.
"""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import wheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "constraints.txt"
EXTRA = "notebooks"
# System: sys_platform, platform_system and os_name, as conditions ask for them.
SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "macos": ("darwin", "Darwin", "posix"),
    "windows": ("win32", "Windows", "nt"),
}
# Platform: the tags of the wheels that it takes. pip adds those of older macOS by itself; of Linux
# they are those of glibc 2.28 and older, which distributions have had since 2019.
GLIBC = [f"manylinux_2_{minor}" for minor in range(28, 4, -1)]
GLIBC += ["manylinux2014", "manylinux2010", "manylinux1", "linux"]
TAGS = {
    "linux-x86_64": [f"{each}_x86_64" for each in GLIBC],
    "linux-aarch64": [f"{each}_aarch64" for each in GLIBC],
    "macos-arm64": ["macosx_14_0_arm64"],
    "macos-x86_64": ["macosx_14_0_x86_64"],
    "windows-x86_64": ["win_amd64"],
}
MACHINES = {"windows-x86_64": "AMD64"}  # where platform.machine() says another word
GONE = re.compile(r"No matching distribution found for (\S+)")


class Missing(Exception):
    """What cannot be had for a platform, in words."""


def here():
    """This machine's platform."""
    system = {"Darwin": "macos"}.get(platform.system(), platform.system().lower())
    machine = platform.machine().lower()
    return f"{system}-{'x86_64' if machine == 'amd64' else machine}"


def conditions(place, python):
    """What the condition of a requirement may ask of a machine, by the names of PEP 508."""
    system, _, machine = place.partition("-")
    short, name, kind = SYSTEMS[system]
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": kind,
        "platform_machine": MACHINES.get(place, machine),
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": name,
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": short,
    }


def needed(lines, extras, machine):
    """The requirements among these lines that hold on a machine, with these extras."""
    for one in map(Requirement, lines):
        asked = (one.marker.evaluate(machine | {"extra": e}) for e in ["", *extras] if one.marker)
        if one.marker is None or any(asked):
            yield one


def fetch(place, python, folder, download):
    """Fill a folder with the wheels of `memlab[notebooks]`; one that is there is not asked for.

    download    a function of requirements, as texts, that puts a wheel of each into the folder
    Raises      Missing, with what cannot be had, by name
    """
    machine = conditions(place, python)
    lines = {"memlab": requirements(wheel.metadata().encode())}
    asked: dict[str, set[str]] = {"memlab": {EXTRA}}
    rules: dict[str, list[Requirement]] = {}
    while True:
        before = sum(map(len, asked.values())) + len(rules)
        for name in list(lines):
            for one in needed(lines[name], asked[name], machine):
                key = canonicalize_name(one.name)
                asked.setdefault(key, set()).update(one.extras)
                if key != "memlab" and one not in rules.setdefault(key, []):
                    rules[key].append(one)
        there = wheels(folder)
        if new := sorted(rules.keys() - there.keys()):
            download([joined(name, rules[name]) for name in new])
            there = wheels(folder)
        lines |= {name: requirements(metadata(there[name][1])) for name in rules}
        if not new and before == sum(map(len, asked.values())) + len(rules):
            break
    for path in set(folder.iterdir()) - {there[name][1] for name in rules}:
        path.unlink()
    if apart := [
        f"{one}, and pip chose {there[name][0]}"
        for name, every in rules.items()
        for one in every
        if not one.specifier.contains(there[name][0], prereleases=True)
    ]:
        raise Missing("two packages require versions apart: " + "; ".join(apart))


def joined(name, every):
    """One requirement of all those of a name, without conditions and extras."""
    return name + ",".join(sorted({str(part) for one in every for part in one.specifier}))


def wheels(folder):
    """The wheels in a folder: name -> (version, path)."""
    found = {}
    for path in folder.glob("*.whl"):
        name, version, *_ = parse_wheel_filename(path.name)
        found[str(name)] = str(version), path
    return found


def metadata(path):
    """The METADATA of a wheel."""
    with zipfile.ZipFile(path) as opened:
        [name] = [x for x in opened.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", x)]
        return opened.read(name)


def pinned():
    """The versions of constraints.txt by name."""
    lines = (line.partition("==") for line in PINS.read_text(encoding="utf-8").splitlines())
    return {canonicalize_name(name): version for name, mark, version in lines if mark}


def requirements(told):
    return message_from_bytes(told).get_all("Requires-Dist", [])


def by_pip(place, python, folder):
    """A function that downloads for another machine.

    Raises      Missing, with each name that no index has for it, or with what else pip said
    """
    tags = [word for tag in TAGS[place] for word in ("--platform", tag)]
    words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--constraint", str(PINS)]
    words += ["--python-version", python, "--implementation", "cp", *tags, "--dest", str(folder)]

    def download(wanted):
        gone = []
        while wanted:
            done = pip(*words, *wanted)
            if not done.returncode:
                break
            found = GONE.search(done.stderr)
            if "Retrying" in done.stderr or not found:
                raise Missing(done.stderr.strip() or f"pip ended with {done.returncode}")
            name = canonicalize_name(Requirement(found[1]).name)
            gone.append(found[1])
            wanted = [one for one in wanted if Requirement(one).name != name]
        if gone:
            raise Missing(f"no wheel of {', '.join(gone)}")

    return download


def pip(*words):
    """Run pip; return the process that ended."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True)


def kept(place, python, folder):
    """The folder below `folder` with the wheels of a platform and a Python; fetched only once.

    Its name carries what pip's choice depends on: the pins, the requirements, pip's own settings
    (an index of CPU builds, say). Those of another choice are removed.
    Raises      Missing
    """
    told = PINS.read_text("utf-8"), wheel.metadata(), pip("config", "list").stdout
    key = hashlib.sha256("\0".join(told).encode()).hexdigest()[:8]
    whole, part = folder / f"{place}-{python}-{key}", folder / f"{place}-{python}-{key}.part"
    if not whole.exists():
        for old in folder.glob(f"{place}-{python}-*"):
            if old != part:
                shutil.rmtree(old)
        part.mkdir(parents=True, exist_ok=True)
        fetch(place, python, part, by_pip(place, python, part))
        part.rename(whole)
    return whole
