"""The sources' own scripts, rehearsed as they are: research/posted/scripts.json and its table.

    python research/posted/ask.py --scripts FOLDER [--write]

FOLDER has a checkout of each source at the commit that SOURCES names, under the repository's name.
No line of them is in this repository. Data and tokenizers that the scripts would load from a
network are replaced by what `stand_in` makes. torchtitan needs tiktoken, torchdata and tensorboard.
"""

import base64
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from . import readings
from .misses import UNEXPLAINED
from .page import signed
from .readings import ROOT

STORED = readings.FOLDER / "scripts.json"
VERSIONS = ("torch", "triton")
RASCHKA, TITAN = "LLMs-from-scratch", "torchtitan"
COMPILED = "The script compiles its model; the rehearsal runs it uncompiled."
SOURCES = {  # by the folder of a checkout: its commit
    RASCHKA: "322000d8334012f8bd99eb02c4ebd405e7707f19",
    TITAN: "9dec370ad26b5f8e9a7333a0e36165018262644b",
}
TRAIN = (
    f"../{TITAN}/train.py --job.config_file ../{TITAN}/train_configs/llama3_8b.toml "
    "--training.batch_size 2 --training.dataset c4_test --training.dataset_path c4 "
    "--model.tokenizer_path tokenizer.model"
)
SPEED = f"../{RASCHKA}/ch05/10_llm-training-speed"
# By the reading's id: the checkout, the command, why the figure is another one.
SCRIPTS = {
    "llms-from-scratch/speed/0-orig": (
        RASCHKA,
        f"memlab rehearse --on 'A100 40GB' --json -- python {SPEED}/00_orig.py",
        "",
    ),
    "llms-from-scratch/speed/10-batch": (
        RASCHKA,
        f"memlab rehearse --on 'A100 40GB' --json -- python {SPEED}/01_opt_single_gpu.py",
        COMPILED,
    ),
    "llms-from-scratch/speed/ddp": (
        RASCHKA,
        "memlab rehearse --on 'A100 40GB' --json -- torchrun --nproc_per_node=4 "
        f"{SPEED}/02_opt_multi_gpu_ddp.py",
        COMPILED,
    ),
    "torchtitan/T1 8B FSDP8 b2 SAC/eager": (
        TITAN,
        f"memlab rehearse --on '96 GB' --gpus 8 --rank 0 --json -- python {TRAIN}",
        UNEXPLAINED,
    ),
}
ENCODING = """class Encoding:
    n_vocab = 50257

    def encode(self, text, allowed_special=()):
        return [len(word) for word in text.split()]

    def decode(self, tokens):
        return " ".join(map(str, tokens))


def get_encoding(name):
    return Encoding()
"""


def stand_in(source, folder):
    """What a source's scripts read, made in a folder; all of them cut texts into full sequences.

    LLMs-from-scratch   the book, of which only the number of words counts here, and tiktoken, of
                        one token a word
    torchtitan          the dataset C4, and a tokenizer of as many tokens as Llama 3's, from which
                        the script takes the size of the vocabulary
    """
    if source == RASCHKA:
        (folder / "middlemarch.txt").write_text("word " * 460_000)
        (folder / "tiktoken.py").write_text(ENCODING)
        return
    tokens: list[bytes] = []
    for length in (1, 2, 3):
        every = map(bytes, itertools.product(range(256), repeat=length))
        tokens += itertools.islice(every, 128_000 - len(tokens))
    lines = [base64.b64encode(each) + f" {n}\n".encode() for n, each in enumerate(tokens)]
    (folder / "tokenizer.model").write_bytes(b"".join(lines))
    (folder / "c4").mkdir()
    text = json.dumps({"text": "a b c d " * 5000}) + "\n"
    (folder / "c4" / "data.json").write_text(text * 200)


def checked(folder):
    """The folder, where it has every checkout at its commit.

    Raises      ValueError that names what is missing
    """
    for name, commit in SOURCES.items():
        command = ["git", "-C", str(folder / name), "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.stdout.strip() != commit:
            found = done.stdout.strip() or "no checkout"
            raise ValueError(f"{folder / name} has {found}; {name} at commit {commit} is needed")
    return folder.resolve()


def rehearsed(folder, name):
    """Bytes that the allocator would reserve for one script, as its counter reads them."""
    source, line, _ = SCRIPTS[name]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        stand_in(source, Path(place))
        given = [str(ROOT / "src"), place, os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, given))}
        if source == TITAN:  # as its own launcher has it
            environment |= {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        command = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=place)
    try:
        return json.loads(done.stdout)["allocator"]["reserved"]
    except json.JSONDecodeError:
        raise ValueError(f"{line}: {done.stderr.rstrip()}") from None


def main(arguments):
    """Rehearse every script again, print what is stored otherwise, and store it where asked.

    Raises      ValueError for other arguments, and for what cannot be rehearsed
    """
    if not arguments or arguments[1:] not in ([], ["--write"]):
        raise ValueError("--scripts FOLDER [--write]: the folder of the sources' checkouts")
    place = checked(Path(arguments[0]))
    found = {name: rehearsed(place, name) for name in SCRIPTS}
    versions = {name: metadata.version(name).partition("+")[0] for name in VERSIONS}
    for name, size in found.items():
        print(f"{name}\n    {SCRIPTS[name][1]}\n    {size:,} B")
    new = json.dumps({"versions": versions, "reserved": found}, indent=1) + "\n"
    if arguments[1:]:
        STORED.write_text(new, encoding="utf-8")
    elif new != STORED.read_text(encoding="utf-8"):
        raise ValueError(f"{STORED.name} has something else; --write stores this")


def beside():
    """(a reading and what one command gave, the rehearsed bytes), a script each."""
    rows = {a.reading.id: a for found in readings.commands() for a in found}
    return [(rows[name], size) for name, size in readings.loaded(STORED)["reserved"].items()]


def table(root):
    """Published, the answer of one command, the rehearsed script, and why they differ."""
    lines = ["| script | published | one command | its script rehearsed | error | why |"]
    lines.append("|---" * 6 + "|")
    for answer, size in beside():
        source, line, why = SCRIPTS[answer.reading.id]
        script = next(word for word in line.split() if word.endswith(".py"))
        known = "no answer" if answer.bytes is None else f"{answer.bytes / 2**30:.2f} GiB"
        published = answer.reading.bytes
        sizes = f"{published / 2**30:.2f} GiB | {known} | {size / 2**30:.2f} GiB"
        error = signed(size / published - 1)
        label = f"`{Path(script).name}` of {source}, {answer.reading.device}"
        lines.append(f"| {label} | {sizes} | {error} | {why} |")
    return "\n".join(lines)
