"""The README's picture and table, made by the commands that it names.

python tools/readme.py          write both
python tools/readme.py --check  exit with 1 if they are not what the commands print now
"""

import contextlib
import io
import re
import sys
from pathlib import Path

from memlab import Model
from memlab.cli import main as memlab
from memlab.lab.train import train
from memlab.plot import timeline

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book" / "_static" / "step.svg"
BLOCK = re.compile(r"(\$ \.venv/bin/memlab ([^\n]+)\n)(.*?)(```)", re.S)


def printed(words):
    """What the `memlab` command prints for these words."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = memlab(words.split())
    if status:
        raise SystemExit(f"memlab {words} failed with {status}")
    return out.getvalue().rstrip()


def picture():
    """The second step of the small Llama's training: the first one whose peak counts."""
    run = train(Model.preset("tiny-llama"), "fp32", steps=2, batch=4)
    phases = [event.phase for event in run.tracker.timeline]
    first_step_ends = phases.index("step")
    begins = phases.index("forward", first_step_ends)
    return timeline(run.tracker, start=begins, title="One training step, every byte").svg


def readme():
    """README.md with the output under each `$ .venv/bin/memlab` line made anew."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return BLOCK.sub(lambda m: m[1] + printed(m[2]) + "\n" + m[4], text)


def main():
    wanted = {ROOT / "README.md": readme(), PICTURE: picture()}
    if "--check" not in sys.argv[1:]:
        for path, content in wanted.items():
            path.write_text(content, encoding="utf-8")
        return
    stale = [
        path.name
        for path, content in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != content
    ]
    if stale:
        raise SystemExit(
            f"not what the commands print now: {', '.join(stale)}; run tools/readme.py"
        )


if __name__ == "__main__":
    main()
