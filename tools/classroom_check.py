"""Install an archive of tools/classroom.py as a laptop without a network would, and run a chapter.

The archive is unpacked below a folder with a blank in its name. The commands are those of its own
README; each runs with an empty home and where there is no network but the machine itself (Linux,
`unshare`). In place of JupyterLab, nbconvert runs a chapter.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from memlab.units import text

CHAPTER = "02_weights"
LAB = "jupyter lab notebooks"
RUN = f"jupyter nbconvert --to notebook --execute --output-dir ran notebooks/{CHAPTER}.ipynb"
WITHOUT = ["unshare", "--map-root-user", "--net"]
# In a network of its own not even a machine's own address answers until its interface is up (ioctl
# SIOCSIFFLAGS, IFF_UP), and a kernel is talked to by that address.
ALONE = """
import fcntl, os, socket, struct, sys
with socket.socket() as asked:
    fcntl.ioctl(asked, 0x8914, struct.pack("16sh14x", b"lo", 1))
names = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
assert names == ["lo"], names
os.execvp("sh", ["sh", "-ec", sys.argv[1]])
"""


def commands(readme):
    """The lines of a README for a shell, JupyterLab's replaced by a run of the chapter."""
    found = "".join(re.findall(r"```sh\n(.*?)```", readme, re.S)).splitlines()
    if not any(line.endswith(LAB) for line in found):
        raise ValueError(f"no command of the README ends in {LAB!r}")
    return [line.replace(LAB, RUN) for line in found]


def alone(command, folder, home):
    """Run a command without a network; its output goes to this program's."""
    near = home / "bin"
    if not near.exists():
        near.mkdir()
        (near / "python3").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    clean = {"HOME": str(home), "PATH": f"{near}:/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"}
    words = [*WITHOUT, sys.executable, "-c", ALONE, command]
    return subprocess.run(words, cwd=folder, env=clean).returncode


def able():
    """Whether a program can be run without a network here: on Linux, unless it is forbidden."""
    if not shutil.which(WITHOUT[0]):
        return False
    return not subprocess.run([*WITHOUT, "true"], capture_output=True).returncode


def check(archive):
    """Install and run; raises SystemExit where a command fails."""
    if not able():
        sys.exit(f"`{' '.join(WITHOUT)} true` fails here: the check needs Linux, maybe its root")
    with tempfile.TemporaryDirectory(dir=archive.parent) as place:
        room, home = Path(place, "a room"), Path(place, "home")
        home.mkdir()
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(room)
        [folder] = room.iterdir()
        for command in commands((folder / "README.md").read_text(encoding="utf-8")):
            begun = time.monotonic()
            print(f"$ {command}", flush=True)
            if status := alone(command, folder, home):
                sys.exit(f"Without a network it ended with {status}: {command}")
            print(f"  {time.monotonic() - begun:.0f} s", flush=True)
        ran = json.loads((folder / "ran" / f"{CHAPTER}.ipynb").read_text("utf-8"))
        cells = [cell for cell in ran["cells"] if cell["cell_type"] == "code"]
        if not all(cell["execution_count"] for cell in cells):
            sys.exit(f"Not every cell of {CHAPTER} ran")
        files = (path for path in (folder / ".venv").rglob("*") if not path.is_symlink())
        size = text(sum(path.stat().st_size for path in files if path.is_file()))
        print(f"Installed without a network: {size}; {len(cells)} cells of {CHAPTER} ran")
