"""`memlab doctor`: what it finds here, and what it says of machines that lack something."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from test_measure_room import MEMINFO, machine_with

from memlab.base import machine
from memlab.base.message import Message, is_message
from memlab.cli import doctor, doctor_looks, main
from memlab.cli.doctor_looks import MISSING, OPTIONAL, READY
from memlab.cli.schema import schema
from memlab.units import GiB, KiB, MiB

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STEP = {"version": "2.13.0+cpu", "cuda": None, "hip": None, "gpus": [], "mps": None}
STEP |= {"measured": 3_215_872, "derived": 3_215_872}
NONE = ([], "")
# Ends the process at the first connection that leaves this machine.
WATCH = """
import os, sys
def seen(event, given):
    if event in ("socket.connect", "socket.sendto") and isinstance(given[1], tuple):
        if not str(given[1][0]).startswith(("127.", "::1", "localhost")):
            os._exit(99)
    if event == "socket.getaddrinfo" and given[0] not in (None, "", "localhost", "127.0.0.1"):
        os._exit(99)
sys.addaudithook(seen)
"""


def test_this_machine(tmp_path):
    """Where the tests run is ready for the chapters, and nothing of it asks a network."""
    pytest.importorskip("torch")
    pytest.importorskip("jupyter_client")
    here, watch = tmp_path / "here", tmp_path / "watch"
    for folder, name, code in (
        (watch, "sitecustomize.py", WATCH),
        (here, "torch.py", "raise SystemExit('a file of this folder')"),
    ):
        folder.mkdir()
        (folder / name).write_text(code)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "memlab", "doctor", "--json"],
        cwd=here,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(watch), str(ROOT / "src")])},
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    jsonschema.validate(found, schema("doctor"))
    lines = {one["name"]: one for one in found["checks"]}
    assert done.returncode == (0 if found["ready"] else 1) and done.stderr == ""
    assert lines["PyTorch"]["state"] == "ready"
    assert "3,215,872 B of weights, as derived" in lines["PyTorch"]["found"]
    assert lines["Jupyter kernel"]["state"] == "ready"
    assert lines["GPU"]["state"] in ("ready", "optional")
    assert all(one["do"] or one["state"] != "missing" for one in found["checks"])


def test_the_watch_of_the_test_above_sees_a_connection(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    code = "import socket; socket.create_connection(('192.0.2.1', 9), timeout=0.1)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 99


# The answer -------------------------------------------------------------------------------------


@pytest.fixture
def said(monkeypatch, capsys):
    """What the command prints of lines that are given."""

    def answer(*lines, words=()):
        monkeypatch.setattr(doctor, "looks", lambda: [doctor_looks.Look(*each) for each in lines])
        status = main(["doctor", *words])
        return capsys.readouterr().out.splitlines(), status

    return answer


LINES = (
    ("Python", READY, "3.13.1"),
    ("memory", OPTIONAL, "little", "close other programs before a chapter"),
    ("PyTorch", MISSING, "not installed", "pip install torch numpy"),
)


def test_each_line_has_a_sign_and_what_to_do(said):
    assert said(*LINES) == (
        [
            "✓ Python    3.13.1",
            "○ memory    little",
            "            → close other programs before a chapter",
            "✗ PyTorch   not installed",
            "            → pip install torch numpy",
            "",
            "Not ready: PyTorch.",
        ],
        1,
    )
    lines, status = said(*LINES[:2])
    assert lines[-1] == "This machine is ready." and status == 0, "optional is not needed"


def test_names_take_their_places_in_a_terminal(said, monkeypatch):
    words = {"memory": "記憶體", "Not ready: {1}.": "尚未就緒：{1}。"}
    monkeypatch.setattr("memlab.base.messages.catalogue", lambda code: words)
    lines, status = said(*LINES, words=["--lang", "zh-TW"])
    assert lines[1] == "○ 記憶體    little" and lines[-1] == "尚未就緒：PyTorch。" and status == 1


def test_the_document_is_english(said, monkeypatch):
    words = {"not installed": "não instalado"}
    monkeypatch.setattr("memlab.base.messages.catalogue", lambda code: words)
    lines, status = said(*LINES, words=["--lang", "pt-BR"])
    assert "não instalado" in lines[3]
    lines, status = said(*LINES, words=["--json"])
    found = json.loads("\n".join(lines))
    jsonschema.validate(found, schema("doctor"))
    assert found["ready"] is False and status == 1
    assert found["checks"][2]["found"] == "not installed"


def test_a_translator_is_given_every_sentence():
    for module in (doctor, doctor_looks):
        texts = [one for name, one in vars(module).items() if name.isupper()]
        texts = {one for one in texts if isinstance(one, str) and is_message(one)}
        assert texts - {doctor.ABOUT, READY, OPTIONAL, MISSING} <= set(doctor.SENTENCES)


# One look after the other -----------------------------------------------------------------------


def test_what_is_needed_is_what_the_project_says():
    first = ".".join(map(str, doctor_looks.PYTHONS[0]))
    assert PROJECT["requires-python"] == f">={first}"
    tested = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "3." in each]
    assert tested[0] == first and tested[-1] == ".".join(map(str, doctor_looks.PYTHONS[1]))
    least = ".".join(map(str, doctor_looks.TORCH))
    assert f"torch>={least}" in PROJECT["optional-dependencies"]["torch"]
    assert {*doctor_looks.BESIDE} <= {*PROJECT["optional-dependencies"]["notebooks"]}


@pytest.mark.parametrize(
    ("version", "state"),
    [((3, 10, 2), MISSING), ((3, 11, 0), READY), ((3, 13, 9), READY), ((3, 14, 0), OPTIONAL)],
)
def test_python(monkeypatch, version, state):
    monkeypatch.setattr(doctor_looks.sys, "version_info", version)
    found = doctor_looks.python()
    assert found.state == state and bool(found.do) == (state != READY)


@pytest.mark.parametrize(
    ("version", "step", "why", "state", "words", "do"),
    [
        (None, None, "", MISSING, "not installed", "pip install torch numpy"),
        ("2.9.1", None, "", MISSING, "2.9.1; at least 2.11 is", "pip install --upgrade torch"),
        ("2.13.0", STEP, "", READY, "2.13.0+cpu, CPU build; a step of tiny-llama: 3,215,8", ""),
        ("2.13.0", STEP | {"cuda": "13.0"}, "", READY, "+cpu, CUDA 13.0 build;", ""),
        ("2.13.0", STEP | {"hip": "7.0"}, "", READY, "+cpu, ROCm 7.0 build;", ""),
        (
            *("2.13.0", STEP | {"measured": 1}, "", MISSING),
            *("1 B of weights; the formula gives 3,215,872 B", "pip install torch==2.13.0"),
        ),
        (
            *("2.13.0", None, "signal 4", MISSING),
            *("2.13.0; its first step fails: signal 4", "pip install --force-reinstall torch"),
        ),
        (
            *("2.13.0", None, "ModuleNotFoundError: No module named 'numpy'", MISSING),
            *("No module named 'numpy'", "pip install torch numpy"),
        ),
    ],
)
def test_torch(version, step, why, state, words, do):
    found = doctor_looks.torch(version, step, why)
    assert found.state == state and words in found.found
    assert found.do.startswith(do) and bool(found.do) == bool(do)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os; os.abort()", "signal 6"),
        ("raise OSError('libcudart.so.13: cannot open')", "OSError: libcudart.so.13: cannot open"),
        ("raise SystemExit('stop')", "stop"),
    ],
)
def test_a_build_of_torch_that_cannot_be_imported_ends_no_doctor(tmp_path, monkeypatch, code, why):
    (tmp_path / "torch.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT / 'src'}")
    assert doctor_looks.printed("doctor_torch") == (None, why)


def test_torch_is_not_imported_where_it_is_missing_or_old(monkeypatch):
    def never(module):
        assert module != "doctor_torch", "a step was made"
        return None, "no"

    monkeypatch.setattr(doctor_looks, "printed", never)
    for version in (None, "2.9.1"):
        monkeypatch.setattr(doctor_looks, "installed", lambda name, v=version: v)
        found = {one.name: one.state for one in doctor_looks.looks()}
        assert found["PyTorch"] == MISSING


@pytest.mark.parametrize(
    ("version", "state", "words"),
    [
        (None, OPTIONAL, "not installed"),
        ("5.23.0", READY, "5.23.0"),
        ("5.22.1", OPTIONAL, "5.22.1; the outputs of the book were made with 5.23.0"),
    ],
)
def test_a_package_of_some_chapters(monkeypatch, version, state, words):
    monkeypatch.setattr(doctor_looks, "installed", lambda name: version)
    found = doctor_looks.beside("transformers")
    assert (found.state, found.found) == (state, words)
    assert found.do == {READY: ""}.get(state, found.do) and ("pip" in found.do) == (state != READY)
    assert doctor_looks.beside("matplotlib").state == (OPTIONAL if version is None else READY)


@pytest.mark.parametrize(
    ("free", "total", "state"),
    [
        (5 * GiB // 2, 8 * GiB, READY),
        (5 * GiB // 2 - 1, 8 * GiB, OPTIONAL),
        (GiB, 5 * GiB // 2 - 1, MISSING),
        (None, 8 * GiB, OPTIONAL),
        (GiB, None, OPTIONAL),
    ],
)
def test_memory(monkeypatch, free, total, state):
    monkeypatch.setattr(doctor_looks, "free_bytes", lambda: free)
    monkeypatch.setattr(doctor_looks, "total_bytes", lambda: total)
    found = doctor_looks.memory()
    assert found.state == state and bool(found.do) == (state != READY)
    assert ("up to 2.5 GiB" in found.found) == (None not in (free, total))


GROUP = {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "1048576\n"}


@pytest.mark.parametrize(
    ("files", "total"),
    [(MEMINFO, 4 * MiB), (MEMINFO | GROUP, MiB), (GROUP, MiB)],
    ids=("machine", "container", "container alone"),
)
def test_all_memory_of_a_machine_and_of_a_container(tmp_path, monkeypatch, files, total):
    monkeypatch.setattr(machine, "_psutil", lambda: None)
    machine_with(tmp_path, files)
    assert machine.total_bytes(tmp_path) == total


def test_all_memory_where_there_is_no_proc(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_psutil", lambda: None)
    assert machine.total_bytes(tmp_path) is None
    counts = SimpleNamespace(total=8 * KiB, available=KiB)
    theirs = SimpleNamespace(virtual_memory=lambda: counts)
    monkeypatch.setattr(machine, "_psutil", lambda: theirs)
    assert (machine.total_bytes(tmp_path), machine.free_bytes(tmp_path)) == (8 * KiB, KiB)


@pytest.mark.parametrize(
    ("free", "version", "state"),
    [(GiB, "2.13.0", READY), (GiB - 1, "2.13.0", MISSING), (3 * GiB, None, MISSING)],
)
def test_disk(monkeypatch, free, version, state):
    monkeypatch.setattr(doctor_looks.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(doctor_looks, "installed", lambda name: version)
    found = doctor_looks.disk()
    assert found.state == state and bool(found.do) == (state != READY)


def program(folder, name, code="exit 0"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{code}\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def test_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor_looks.sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BROWSER", raising=False)
    found = doctor_looks.browser()
    assert found.state == OPTIONAL and "another machine" in found.do
    program(tmp_path, "firefox")
    assert (doctor_looks.browser().state, doctor_looks.browser().found) == (READY, "firefox")
    monkeypatch.setenv("BROWSER", program(tmp_path / "mine", "mine") + " --new-window %s")
    assert doctor_looks.browser().found == "mine"


def spec(folder, *words):
    """A kernel `python3` that stands before all others."""
    place = folder / "kernels" / "python3"
    place.mkdir(parents=True)
    argv = [sys.executable, *words, "-f", "{connection_file}"]
    told = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (place / "kernel.json").write_text(json.dumps(told))


WITHOUT = "import sys; sys.modules['memlab'] = None; "
WITHOUT += "from ipykernel.kernelapp import launch_new_instance as go; go()"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(3)", "python3 does not start: RuntimeError: Kernel died"),
        (WITHOUT, "python3 starts another Python, which has no memlab: "),
    ],
)
def test_a_kernel_that_does_not_start_and_one_of_another_python(tmp_path, monkeypatch, code, words):
    pytest.importorskip("jupyter_client")
    spec(tmp_path, "-c", code)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = doctor_looks.kernel()
    assert found.state == MISSING and found.found.startswith(words)
    assert found.do == "python -m ipykernel install --sys-prefix --name python3"


def test_no_jupyter(monkeypatch):
    monkeypatch.setattr(doctor_looks, "installed", lambda name: None)
    found = doctor_looks.kernel()
    assert (found.state, found.do) == (MISSING, "pip install jupyterlab ipykernel")


H100 = {"name": "NVIDIA H100 80GB HBM3", "usable": 84_942_979_072, "free": 80 * GiB // 2}
SMI = ([("NVIDIA H100 80GB HBM3", 81559 * MiB, "570.86.15")], "")


@pytest.mark.parametrize(
    ("step", "there", "state", "words"),
    [
        (STEP, NONE, OPTIONAL, ["none; every chapter runs on the CPU"]),
        (None, NONE, OPTIONAL, ["none; every chapter runs on the CPU"]),
        (
            *(STEP | {"gpus": [H100 | {"error": ""}]}, SMI, READY),
            [
                "NVIDIA H100 80GB HBM3: 79.11 GiB usable, 40 GiB free, driver 570.86.15; "
                "`memlab devices`: H100 80GB, 79.11 GiB"
            ],
        ),
        (
            *(STEP | {"gpus": [H100 | {"error": "", "name": "Foo 9"}] * 2}, NONE, READY),
            ["Foo 9: 79.11 GiB usable, 40 GiB free"] * 2,
        ),
        (  # the table's has 16 GB
            *(STEP | {"gpus": [H100 | {"error": "", "name": "RTX 4060 Ti"}]}, NONE, READY),
            ["RTX 4060 Ti: 79.11 GiB usable, 40 GiB free"],
        ),
        (
            *(STEP | {"gpus": [H100 | {"error": "RuntimeError: no kernel image"}]}, SMI, OPTIONAL),
            ["NVIDIA H100 80GB HBM3 does not compute: RuntimeError: no kernel image"],
        ),
        (
            *(STEP, SMI, OPTIONAL),
            [
                "NVIDIA H100 80GB HBM3, 79.65 GiB, driver 570.86.15; PyTorch does not see it, and "
                "chapters run on the CPU"
            ],
        ),
        (STEP, ([], "signal 6"), OPTIONAL, ["nvidia-smi reports: signal 6"]),
        (STEP | {"mps": 12 * GiB}, NONE, READY, ["Apple GPU (MPS): PyTorch takes up to 12 GiB"]),
    ],
)
def test_gpus(monkeypatch, step, there, state, words):
    monkeypatch.setattr(doctor_looks, "smi", lambda: there)
    found = list(doctor_looks.gpus(step))
    assert [str(one.found) for one in found] == words
    assert {one.state for one in found} == {state}


def test_nvidia_smi_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor_looks.smi() == NONE
    line = 'echo "NVIDIA H100 80GB HBM3, 81559, 570.86.15"; echo "NVIDIA Thor, [N/A], 580.1"'
    program(tmp_path, "nvidia-smi", line)
    assert doctor_looks.smi() == ([*SMI[0], ("NVIDIA Thor", 0, "580.1")], "")
    program(tmp_path, "nvidia-smi", 'echo "NVIDIA-SMI has failed: no driver"; exit 9')
    assert doctor_looks.smi() == ([], "NVIDIA-SMI has failed: no driver")


def test_node_is_for_the_book_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor_looks.node().state == OPTIONAL
    program(tmp_path, "node", "echo v20.1.0")
    assert doctor_looks.node().state == OPTIONAL
    program(tmp_path, "npm", "echo 10.2.0")
    assert doctor_looks.node().found == "v20.1.0, 10.2.0"


def test_a_program_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(doctor_looks, "SECONDS", 0.1)
    assert doctor_looks._ran([sys.executable, "-c", "while True: pass"]) == (
        *("", "no answer in 0.1 s"),
    )
    assert doctor_looks._ran(["/no/such/program"])[1] == "No such file or directory"


def test_versions_are_no_figures_of_a_language(said, monkeypatch):
    monkeypatch.setattr("memlab.base.messages.catalogue", lambda code: {"{1} free of {2}": "x"})
    line = doctor_looks.torch("2.13.0", STEP | {"cuda": "13.0", "version": "2.14"}, "")
    assert isinstance(line.found, Message)
    lines, _ = said(("PyTorch", READY, line.found), words=["--lang", "pt-BR"])
    assert re.search(r"2\.14, CUDA 13\.0 build", lines[0]) and "3,215,872" in lines[0]
