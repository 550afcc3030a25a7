"""Run chapters as other processors would, and print the cells that say something else there.

    python tools/portable.py [PATH …]      each chapter in every way; without a path, all of them
    python tools/portable.py --changed     the chapters that changed, in the first two ways

A way sets what a processor decides otherwise: which instructions the kernels of torch, MKL and
oneDNN use, and among how many threads a sum is divided. Nobody can set more than the processor has:
a weekly job runs on an Arm, too, and what AVX-512 and AMX do shows where a machine has them.

Changed is what differs from the commit at which this branch left the remote's main one; on that one
itself, from the commit before. A copy without that history has nothing to compare: it says so, and
the weekly job runs every chapter.
"""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = "notebooks/*.ipynb"
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}
# Where a processor has AMX, oneDNN is held back whenever torch is: with ATEN_CPU_CAPABILITY alone
# torch 2.13 packs for AMX what it then multiplies without AVX-512, and its attention in bf16 ends
# with "pack_vnni2 is only supported when avx512 is supported". No chapter can mend that.
X86 = {
    "SSE 4, 4 threads": {
        **PLAIN,
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OMP_NUM_THREADS": "4",
    },
    "AVX2, 1 thread": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OMP_NUM_THREADS": "1",
    },
    "AVX, 2 threads": {
        **PLAIN,
        "ONEDNN_MAX_CPU_ISA": "AVX",
        "MKL_ENABLE_INSTRUCTIONS": "AVX",
        "OMP_NUM_THREADS": "2",
    },
}
OTHERS = {f"as it comes, threads: {n}": {"OMP_NUM_THREADS": f"{n}"} for n in (4, 1)}
WAYS = X86 if platform.machine() in ("x86_64", "AMD64") else OTHERS
KEYS = {key for way in WAYS.values() for key in way}


def differs(paths, way):
    """The cells that differ in one way, as pytest names them; what they said is printed."""
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-rfE", "-p", "no:cacheprovider"]
    workers = min(len(paths), os.cpu_count() or 1, 4)
    command += ["-n", str(workers if workers > 1 else 0), "--dist", "loadfile", *map(str, paths)]
    env = {key: value for key, value in os.environ.items() if key not in KEYS} | WAYS[way]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8")
    if done.returncode:
        print(f"{way}:\n{done.stdout}{done.stderr}", flush=True)
    cells = re.findall(r"^(?:FAILED|ERROR) (\S+)::(\S.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return cells or [("pytest", f"ended with {done.returncode}")] * bool(done.returncode)


def changed(root=ROOT):
    """The chapters that differ from the commit before, or from the remote's main branch.

    Raises      LookupError where the history has no such commit
    """
    head, *mains = (_git(root, "rev-parse", "-q", "--verify", name) for name in ("HEAD", *MAINS))
    left = [_git(root, "merge-base", "HEAD", main) for main in mains if main]
    bases = [base for base in left if base and base != head]
    base = bases[0] if bases else _git(root, "rev-parse", "-q", "--verify", "HEAD^")
    if not base:
        raise LookupError("no commit before this one is here")
    names = _git(root, "diff", "--name-only", "--diff-filter=d", base, "--", CHAPTERS)
    return [Path(root, name) for name in names.splitlines()]


MAINS = ("origin/HEAD", "origin/main")


def _git(root, *words):
    """What git answers, or nothing where it cannot."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, encoding="utf-8")
    except FileNotFoundError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def main(arguments):
    ways, paths = list(WAYS), [Path(path).resolve() for path in arguments]
    if arguments == ["--changed"]:
        ways = ways[:2]
        try:
            paths = changed()
        except LookupError as why:
            print(f"chapters on other processors: not run, {why}")
            return 0
    elif not arguments:
        paths = sorted(ROOT.glob(CHAPTERS))
    found = {way: differs(paths, way) for way in ways} if paths else {}
    for way, cells in found.items():
        print(f"{way}: chapters run: {len(paths)}, cells that differ: {len(cells)}")
        for chapter, cell in cells:
            print(f"    {chapter} {cell}")
    if not paths:
        print("chapters on other processors: none changed")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
