"""`memlab record`: measure a suite of small runs on this device, and write what it found."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base.extras import missing
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    pass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A device, which of the runs, and where they are written."""
    parser.add_argument("--device", help="cuda or cpu (default: CUDA where there is a device)")
    parser.add_argument("--out", metavar="FILE", help="write the record, JSON, into this file")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="step, fp8/linear, 'step/*/bf16/peak'"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """What the command prints, and 1 where a row failed or is out of tolerance.

    Raises      ValueError without torch, for a device that is not there, a name that nothing has,
                or --list beside what only a run takes
    """
    if options.list:
        for flag in ("device", "out", "json"):
            if getattr(options, flag):
                raise ValueError(f"--list runs nothing; leave --{flag} out")
    try:
        from ..recording.suite import cases, chosen_device, on_terminal
        from ..recording.write import recorded
    except ModuleNotFoundError as error:
        raise ValueError(missing("measuring", error, "torch")) from error
    chosen = cases(options.only)
    if options.list:
        width = max(len(case.name) for case in chosen)
        return "\n".join(f"{case.name:{width}}   {case.what}" for case in chosen)
    device = chosen_device(options.device)
    out = Path(options.out) if options.out else None
    if out is not None and out.is_dir():
        raise ValueError(f"{options.out!r} is a folder; a file is needed")
    try:
        found = recorded(chosen, device, _command(options, device), out=out, tell=on_terminal)
    except KeyboardInterrupt:
        so_far = f"the rows so far are in {out}.unfinished" if out else ""
        raise KeyboardInterrupt(so_far) from None
    status = 1 if found.wrong else 0
    if options.json:
        import json

        from ..files.records import as_json

        fields = json.loads(as_json(found))
        del fields["schema"]  # that of the file; the document has its own
        return document("record", **fields), status
    counts = ", ".join(f"{number} {state}" for state, number in found.counts().items() if number)
    lines = [str(found), f"{len(found.rows)} rows: {counts}; {len(found.wrong)} out of tolerance"]
    lines += [f"{row.name}: {row.message}" for row in found.rows if row.state == "failed"]
    return "\n".join(lines), status


def _command(options: argparse.Namespace, device: str) -> str:
    """The line that would do this again: no path of this machine in it."""
    only = f" --only {' '.join(options.only)}" if options.only else ""
    return f"memlab record --device {device}{only}"
