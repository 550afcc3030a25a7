"""Run, clean and check the chapters.

    python tools/notebooks.py run [PATH …]      execute from a clean kernel, then clean
    python tools/notebooks.py clean [PATH …]    drop what changes from run to run; keep the outputs
    python tools/notebooks.py check [PATH …]    report what `clean` would change and, for a chapter
                                                (NN_noun.ipynb), what its anatomy lacks
    python tools/notebooks.py time [PATH …]     execute, store nothing, and print the seconds of
                                                processor time, the most memory that was resident
                                                and the three dearest cells of each
    python tools/notebooks.py record [PATH …]   the same, and keep seconds and memory for the
                                                schedules, in book/courses/machine.json

A path is a notebook or a folder of notebooks; without one, all of `notebooks/`. Running a notebook
twice gives the same bytes, so a diff shows only what an author changed.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import machine_record
import nbformat
from chapter_anatomy import CHAPTER, problems
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from notebook_text import trim
from notebook_time import Stopwatch

from memlab.base import message
from memlab.base.message import PLACE

ROOT = Path(__file__).resolve().parent.parent
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
# All that a cell's metadata may say; editors and clocks write much more.
CELL_KEYS = ("tags", "mystnb")


def run(nb, folder):
    """Execute every cell in order in a fresh kernel that starts in `folder`.

    The messages that memlab was asked for go into the metadata, those of each answer of a slider
    too: a translator needs them, and tells memlab's words from the code's by them.
    """
    with tempfile.TemporaryDirectory() as heard:
        os.environ["MEMLAB_HEARD"] = str(Path(heard, "said.jsonl"))
        os.environ["MEMLAB_ANSWERS"] = str(Path(heard, "answers.jsonl"))
        try:
            execute(nb, folder)
        finally:
            said = Path(os.environ.pop("MEMLAB_HEARD"))
            del os.environ["MEMLAB_ANSWERS"]
        lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
    nb.metadata["memlab"] = {"said": sorted(filter(is_message, {*map(json.loads, lines)}))}


def is_message(text):
    """Whether a text has words for a translator: no name of code, and no value as Python has it."""
    named = re.fullmatch(r"[\w.:/-]+", PLACE.sub("x", text)) and re.search(r"[._]", text)
    return message.is_message(text) and not named and not re.match(r"[{\[]['\"]", text)


def execute(nb, folder, watch=None):
    """Run every cell; a `Stopwatch` takes the time of each."""
    os.environ.setdefault("MEMLAB_DEVICE", "cpu")  # outputs are stored without a GPU
    # The first figure on a machine makes matplotlib say, in some cell, that it lists the fonts.
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], capture_output=True)
    client = NotebookClient(
        nb,
        kernel_name="python3",
        timeout=300,
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
    )
    if watch:
        client.on_notebook_start = lambda **_: watch.started(client)
        client.on_cell_executed = lambda cell_index, **_: watch.cell(cell_index)
    client.execute()


def timed(path):
    """A `Stopwatch` that ran through a notebook; its file stays as it is."""
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as heard:
        # What a chapter says is written down as `run` does it, for that is part of a run.
        os.environ["MEMLAB_HEARD"] = str(Path(heard, "said.jsonl"))
        try:
            execute(nbformat.read(path, as_version=4), path.resolve().parent, watch)
        finally:
            del os.environ["MEMLAB_HEARD"]
    return watch


def clean(nb):
    """Drop in place what differs between two runs; outputs, ids, tags and numbers stay."""
    kept = {"memlab": nb.metadata["memlab"]} if "memlab" in nb.metadata else {}
    nb.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE, **kept})
    nb.nbformat, nb.nbformat_minor = 4, 5
    for cell in nb.cells:
        cell.source = trim(cell.source)
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in CELL_KEYS if cell.metadata.get(key)}
        )
        if cell.cell_type == "code":
            cell.outputs = _outputs(cell.outputs)


def _stream(output):
    """The name of the stream that an output is a piece of, or False."""
    return output.output_type == "stream" and output.name


def _outputs(outputs):
    kept: list[nbformat.NotebookNode] = []
    for output in outputs:
        if "metadata" in output:
            output.metadata = nbformat.from_dict({})
        if "text/html" in output.get("data", {}):
            output.data.pop(WIDGET, None)
        # A kernel cuts a stream into pieces wherever its buffer happened to be flushed.
        before = kept[-1] if kept else None
        if before is not None and _stream(output) and _stream(output) == _stream(before):
            before.text += output.text
        else:
            kept.append(output)
    return kept


def text_of(nb):
    """The notebook as the bytes of its file, as text."""
    return nbformat.writes(nb).rstrip("\n") + "\n"


def notebooks(paths):
    """The notebooks that the paths name, folders opened, in order."""
    found = []
    for path in map(Path, paths or [ROOT / "notebooks"]):
        if not path.exists():
            raise SystemExit(f"{path}: no such notebook or folder")
        found += sorted(path.glob("*.ipynb")) if path.is_dir() else [path]
    return found


def handle(command, path):
    """Do `command` to one notebook; return the lines that a person should read."""
    before = path.read_text(encoding="utf-8")
    nb = nbformat.reads(before, as_version=4)
    if command == "run":
        try:
            run(nb, path.resolve().parent)
        except CellExecutionError as error:
            return [f"{path}: a cell failed, the file is left as it was\n{error}"]
    clean(nb)
    after = text_of(nb)
    if command != "check":
        if after != before:
            path.write_text(after, encoding="utf-8")
        return []
    found = ["not-clean: run `python tools/notebooks.py clean`"] if after != before else []
    if CHAPTER.fullmatch(path.name):
        found += problems(nbformat.reads(before, as_version=4))
    return [f"{path}: {line}" for line in found]


def main(arguments):
    if not arguments or arguments[0] not in ("run", "clean", "check", "time", "record"):
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] in ("time", "record"):
        for path in notebooks(arguments[1:]):
            watch = timed(path)
            seconds, peak = watch.ended()
            size = f"{peak / 2**20:7,.0f} MiB"
            print(f"{path.stem:<24} {seconds:6.1f} s {size}   {watch.dearest()}", flush=True)
            if arguments[0] == "record":
                machine_record.keep(ROOT, path, seconds, peak)
        return 0
    lines = []
    for path in notebooks(arguments[1:]):
        lines += handle(arguments[0], path)
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
