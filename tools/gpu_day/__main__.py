"""What memlab predicts for one GPU, measured on it: one command of at most nine minutes.

tools/gpu_day.sh                            one H100 or H200; files in $OUT, else in ./gpu_day
tools/gpu_day.sh --device cpu --small       a rehearsal: every part, on a model of three layers
tools/gpu_day.sh --only fails fits          some of the runs
tools/gpu_day.sh --commit ID                where git is not at hand: what was checked out

It needs torch and transformers, no network and no weights. book.json, driver.json, train.json have
a line for each figure, measured and predicted, written as it is found; card.json is that of `memlab
record`; failure.pickle a snapshot for pytorch.org/memory_viz; log.txt what the runs printed, and
summary.txt all figures. A run that fails or hangs ends alone, and the files say so.
"""

import argparse
import os
import sys
import time
from pathlib import Path

# In the place of this folder, whose modules are those of a package.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from gpu_day.apart import apart  # noqa: E402
from gpu_day.note import Note  # noqa: E402
from gpu_day.runs import ALL, PATIENCE, RUNS, preload  # noqa: E402
from gpu_day.summary import summary  # noqa: E402


def main() -> int:
    """Run what was asked for, then the summary; 1 where a run did not end as it should."""
    options = _options()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("book.json", "driver.json", "train.json", "card.json", "log.txt", "summary.txt"):
        (out / name).unlink(missing_ok=True)
    if options.device == "cpu":
        preload()
    until, notes = time.monotonic() + options.seconds * (PATIENCE if options.small else 1), []
    for one in RUNS:
        if options.only and one.name not in options.only:
            continue
        small = " --small" if options.small else ""
        about = {"command": f"tools/gpu_day.sh --device {options.device}{small}"}
        about |= {"commit": options.commit} if options.commit else {}
        note = Note(out / f"{one.part}.json", one.name, options.device, **about)
        apart(one, note, options.small, until - time.monotonic())
        notes.append(note)
        found = note.found()
        print(f"{one.name:10} {found['state']} {found['message']}".rstrip(), flush=True)
        (out / "summary.txt").write_text(summary(notes), encoding="utf-8")
    print((out / "summary.txt").read_text(encoding="utf-8"))
    return int(any(note.found()["state"] not in ("measured", "skipped") for note in notes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/gpu_day.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="three layers: a rehearsal")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in RUNS], metavar="RUN")
    parser.add_argument("--out", metavar="FOLDER", default=os.environ.get("OUT") or "gpu_day")
    parser.add_argument("--commit", metavar="ID", default="", help="default: what git says")
    parser.add_argument("--seconds", type=int, default=ALL, help=f"for all of it (default: {ALL})")
    options = parser.parse_args()
    if options.device == "cpu" and not options.small:
        parser.error("--device cpu is a rehearsal, which needs --small: 8B would take hours")
    return options


if __name__ == "__main__":
    sys.exit(main())
