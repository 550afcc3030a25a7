"""The archive of a room without a network: what goes in, and what cannot be had, by name.

Its installation, which takes pip, hundreds of megabytes and minutes, is `make classroom CHECK=1`.
"""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

pytest.importorskip("packaging", reason="no book: packaging is not installed")
import classroom  # noqa: E402
import classroom_check  # noqa: E402
import room_wheels  # noqa: E402
import wheel  # noqa: E402

from memlab.base import messages  # noqa: E402

# Requirements of a pretended index: what each package has in its metadata.
INDEX = {
    "a": ["b>=2", 'w; sys_platform == "win32"', 'c[more]; platform_system == "Linux"'],
    "b": ["D_d", "memlab[torch]"],
    "c": ['e; extra == "more"', 'f; extra == "other"'],
    "d-d": ['g; python_version < "3.12"', "c"],
    "t": ["a"],
}
OWN = ['a; extra == "notebooks"', 't<3,>=1; extra == "torch"', 'z; extra == "dev"']


def put(folder, name, version="2.5", needs=(), tag="py3-none-any"):
    """Write a wheel that says what it requires, and has nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    told = "".join(f"Requires-Dist: {need}\n" for need in needs)
    texts = {f"{name.replace('-', '_')}-{version}.dist-info/METADATA": f"Name: {name}\n{told}"}
    return wheel.archive(folder / f"{name.replace('-', '_')}-{version}-{tag}.whl", texts)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder, a function that downloads into it, and what that was asked for, round by round."""
    said = "".join(f"Requires-Dist: {need}\n" for need in OWN)
    monkeypatch.setattr(room_wheels.wheel, "metadata", lambda: f"Name: memlab\n{said}")
    folder, asked = tmp_path / "wheels", []
    folder.mkdir()

    def download(wanted):
        asked.append(wanted)
        for each in wanted:
            name = re.match(r"[\w-]+", each)[0]
            put(folder, name, needs=INDEX.get(name, ()))

    return folder, download, asked


@pytest.mark.parametrize(
    ("place", "python", "names"),
    [
        ("linux-x86_64", "3.11", "a b c d-d e g t"),
        ("linux-aarch64", "3.13", "a b c d-d e t"),
        ("windows-x86_64", "3.12", "a b c d-d t w"),
        ("macos-arm64", "3.11", "a b c d-d g t"),
    ],
)
def test_conditions_are_those_of_the_platform_and_of_its_python(index, place, python, names):
    """Of another system's laptops too, on whatever machine the archive is made."""
    folder, download, asked = index
    put(folder, "stale", "1.0")
    room_wheels.fetch(place, python, folder, download)
    assert " ".join(sorted(room_wheels.wheels(folder))) == names  # and nothing that is not needed
    each = [one for some in asked for one in some]
    assert asked[0] == ["a"] and "t<3,>=1" in each and len(each) == len(names.split())


def test_what_is_there_is_not_fetched_again(index):
    folder, download, asked = index
    for _ in range(2):
        room_wheels.fetch("linux-x86_64", "3.11", folder, download)
        rounds = len(asked)
    assert rounds == len(asked) and asked.count(["a"]) == 1


def test_versions_that_do_not_go_together_are_named(index):
    folder, download, _ = index
    put(folder, "b", "1.0")
    with pytest.raises(room_wheels.Missing, match="apart: b>=2, and pip chose 1.0"):
        room_wheels.fetch("linux-x86_64", "3.11", folder, download)


def test_what_memlab_requires_is_what_it_declares():
    """With the real requirements: the extra and those that it contains, and nothing of others."""
    machine = room_wheels.conditions("linux-x86_64", "3.12")
    lines = room_wheels.requirements(wheel.metadata().encode())
    found = {one.name: one for one in room_wheels.needed(lines, {"notebooks"}, machine)}
    assert {"memlab", "jupyterlab", "bitsandbytes"} < found.keys() and "torch" not in found
    assert found["memlab"].extras == {"torch"}
    assert {one.name for one in room_wheels.needed(lines, {"torch"}, machine)} == {"torch", "numpy"}


def pretended(monkeypatch, *answers):
    """What pip answers, in turn; returns the commands that it got."""
    asked, left = [], list(answers)

    def pip(*words):
        asked.append(words)
        status, said = left.pop(0)
        return SimpleNamespace(returncode=status, stderr=said, stdout="")

    monkeypatch.setattr(room_wheels, "pip", pip)
    return asked


def test_every_package_without_a_wheel_is_named(monkeypatch, tmp_path):
    gone = "ERROR: No matching distribution found for {}\n"
    asked = pretended(
        monkeypatch, (1, gone.format("torch==2.13.0")), (1, gone.format("Bits_X<3")), (0, "")
    )
    download = room_wheels.by_pip("macos-x86_64", "3.13", tmp_path)
    with pytest.raises(room_wheels.Missing, match=r"^no wheel of torch==2\.13\.0, Bits_X<3$"):
        download(["torch<3,>=2", "bits-x<3", "numpy"])
    assert [words[-1] for words in asked] == ["numpy"] * 3 and "bits-x<3" not in asked[-1]
    assert "--only-binary=:all:" in asked[0] and "macosx_14_0_x86_64" in asked[0]
    assert asked[0][asked[0].index("--python-version") + 1] == "3.13"


@pytest.mark.parametrize(
    "said",
    ["WARNING: Retrying (Retry(total=4))\nNo matching distribution found for a", "no disk", ""],
)
def test_an_index_that_does_not_answer_lacks_no_package(monkeypatch, tmp_path, said):
    asked = pretended(monkeypatch, (1, said))
    with pytest.raises(room_wheels.Missing) as error:
        room_wheels.by_pip("linux-x86_64", "3.13", tmp_path)(["a", "b"])
    assert len(asked) == 1 and not str(error.value).startswith("no wheel of")
    assert (said or "pip ended with 1") in str(error.value)


def test_wheels_are_kept_until_pip_would_choose_others(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(room_wheels, "fetch", lambda *words: made.append(words[:3]))
    monkeypatch.setattr(room_wheels, "by_pip", lambda *words: None)
    settings = {"stdout": ""}
    monkeypatch.setattr(room_wheels, "pip", lambda *words: SimpleNamespace(**settings))
    first = room_wheels.kept("linux-x86_64", "3.12", tmp_path)
    assert room_wheels.kept("linux-x86_64", "3.12", tmp_path) == first and len(made) == 1
    other = room_wheels.kept("linux-x86_64", "3.13", tmp_path)
    settings["stdout"] = "global.extra-index-url='https://example.org/cpu'"
    second = room_wheels.kept("linux-x86_64", "3.12", tmp_path)
    assert second != first and {*tmp_path.iterdir()} == {second, other}


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [("Linux", "x86_64", "linux-x86_64"), ("Darwin", "arm64", "macos-arm64")]
    + [("Windows", "AMD64", "windows-x86_64")],
)
def test_a_machine_knows_its_platform(monkeypatch, system, machine, name):
    monkeypatch.setattr(room_wheels.platform, "system", lambda: system)
    monkeypatch.setattr(room_wheels.platform, "machine", lambda: machine)
    assert room_wheels.here() == name and name in room_wheels.TAGS
    assert room_wheels.conditions(name, "3.12")["platform_machine"] == machine


@pytest.fixture
def built(tmp_path, monkeypatch):
    """What a small book and its slides left, the pins' wheels and a place for archives."""
    build = tmp_path / "_build"
    for language in ("en", "pt-BR"):
        notebooks = build / "html" / language / "_sources" / "notebooks"
        notebooks.mkdir(parents=True)
        cells = [{"id": "install-memlab", "source": ["x"]}, {"id": "a", "source": language}]
        (notebooks / "02_weights.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
        (build / "html" / language / "intro.html").write_text(language)
        slides = build / "slides" / language
        slides.mkdir(parents=True)
        (slides / "index.html").write_text("slides")
    (build / "html" / "index.html").write_text("way in")
    put(build / "wheels", "torch", "2.13.0+cpu")
    put(build / "wheels", "colorama", "0.4.6")
    for name, value in {"BUILD": build, "OUT": build / "classroom"}.items():
        monkeypatch.setattr(classroom, name, value)
    kept = lambda place, python, folder: build / "wheels"  # noqa: E731
    monkeypatch.setattr(classroom.room_wheels, "kept", kept)
    monkeypatch.setattr(classroom.shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 40))
    return build


def archived(path):
    with zipfile.ZipFile(path) as opened:
        return {entry.filename: opened.read(entry) for entry in opened.infolist()}


def test_an_archive_has_all_that_a_room_needs_in_its_language(built, capsys):
    classroom.main(["--lang", "pt-BR", "--pythons", "3.12", "3.13"])
    name = f"memlab-{wheel.project()['version']}-pt-BR"
    path = built / "classroom" / f"{name}.zip"
    files = {each.removeprefix(f"{name}/"): data for each, data in archived(path).items()}
    assert list(files) == sorted(files)
    assert files.keys() == {
        *("README.md", "constraints.txt", "notebooks/02_weights.ipynb", "slides/index.html"),
        *("site/index.html", "site/en/intro.html", "site/pt-BR/intro.html"),
        *(f"site/{x}/_sources/notebooks/02_weights.ipynb" for x in ("en", "pt-BR")),
        *("wheels/torch-2.13.0+cpu-py3-none-any.whl", "wheels/colorama-0.4.6-py3-none-any.whl"),
        f"wheels/{wheel.name()}",
    }
    first, second = json.loads(files["notebooks/02_weights.ipynb"])["cells"]
    assert "".join(first["source"]) == classroom.CELL and second["source"] == "pt-BR"
    assert files["constraints.txt"] == room_wheels.PINS.read_bytes()
    said = capsys.readouterr().out
    assert "3 wheels (torch 2.13.0+cpu), 1 notebooks, the site, the slides" in said
    assert "Not in constraints.txt, so the newest: colorama 0.4.6\n" in said


def test_the_same_files_make_the_same_archive_and_wheels_are_not_packed_twice(built):
    made = []
    for _ in range(2):
        classroom.main([])
        [path] = (built / "classroom").glob("*.zip")
        made.append(path.read_bytes())
        for each in built.rglob("*.html"):
            each.touch()
    assert made[0] == made[1]
    assert [each for each in path.parent.iterdir() if each.suffix == ".part"] == []
    with zipfile.ZipFile(path) as opened:
        for entry in opened.infolist():
            packed = entry.compress_type == zipfile.ZIP_DEFLATED
            assert packed != entry.filename.endswith(".whl"), entry
            assert entry.external_attr >> 16 == 0o100644 and entry.date_time == wheel.ALWAYS


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("html/pt-BR", "No book in 'pt-BR' in .*: `make book` builds it"),
        ("slides/pt-BR", "No slides in 'pt-BR' in .*: `make slides BOOK_LANG=pt-BR` makes them"),
    ],
)
def test_what_was_not_built_is_named_with_the_command_that_builds_it(built, lost, words):
    shutil.rmtree(built / lost)
    with pytest.raises(SystemExit, match=words):
        classroom.main(["--lang", "pt-BR"])
    assert not (built / "classroom").exists()


def test_a_platform_without_a_wheel_is_named_and_there_is_no_archive(built, monkeypatch):
    def kept(place, python, folder):
        if place == "macos-x86_64":
            raise room_wheels.Missing("no wheel of torch==2.13.0")
        return built / "wheels"

    monkeypatch.setattr(classroom.room_wheels, "kept", kept)
    with pytest.raises(SystemExit) as error:
        classroom.main("--platforms linux-x86_64 macos-x86_64 --pythons 3.12 3.13".split())
    assert str(error.value).splitlines() == [
        "macos-x86_64, Python 3.12: no wheel of torch==2.13.0",
        "macos-x86_64, Python 3.13: no wheel of torch==2.13.0",
        "No archive: leave out what cannot be had",
    ]
    assert not list((built / "classroom").glob("memlab-*.zip"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--platforms", "amiga"], "no platform 'amiga'; known: linux-x86_64, linux-aarch64"),
        (["--pythons", "3.9"], r"invalid choice: '3.9' \(choose from '?3.11"),
        (["--lang", "fr"], "invalid choice: 'fr'"),
    ],
)
def test_what_there_is_not_is_refused_by_name(built, capsys, words, said):
    with pytest.raises(SystemExit):
        classroom.main(words)
    assert re.search(said, capsys.readouterr().err)


def test_a_full_disk_is_seen_before_anything_is_fetched(built, monkeypatch):
    monkeypatch.setattr(classroom.room_wheels, "kept", lambda *words: 1 / 0)
    monkeypatch.setattr(classroom.shutil, "disk_usage", lambda path: SimpleNamespace(free=3 << 30))
    with pytest.raises(SystemExit, match=r"The wheels and the archive need 4 GiB, and 3 GiB are"):
        classroom.main(["--pythons", "3.12", "3.13"])
    made = {"a": "x" * 100}
    monkeypatch.setattr(classroom.shutil, "disk_usage", lambda path: SimpleNamespace(free=99))
    with pytest.raises(SystemExit, match="files of the archive need 100 B, and 99 B are free"):
        classroom.write(made, built / "x.zip")
    assert not list(built.glob("x.*"))


@pytest.mark.parametrize("language", messages.languages())
def test_the_readme_installs_in_two_commands(language):
    words = classroom.readme(language, ["linux-x86_64", "macos-arm64"], ["3.12", "3.13"])
    assert not re.search(r"\{\w+\}", words) and "linux-x86_64, macos-arm64" in words
    assert "3.12, 3.13" in words
    venv, install, doctor, run = classroom_check.commands(words)
    assert venv == "python3 -m venv .venv" and "--no-index --find-links wheels" in install
    assert doctor == f".venv/bin/memlab doctor --lang {language}"
    assert run == f".venv/bin/{classroom_check.RUN}"
    # Both lines for Windows are the same, but for where a venv has its programs.
    windows = re.search(r"```bat\n(.*?)```", words, re.S)[1].splitlines()
    assert windows == ["py -m venv .venv", install.replace("/bin/", "/Scripts/").replace("/", "\\")]
    with pytest.raises(ValueError, match="no command of the README ends in 'jupyter lab"):
        classroom_check.commands("```sh\na\n```")


def test_the_first_cell_does_nothing_where_memlab_is():
    assert classroom.CELL.count("\n") < 15
    done = subprocess.run([sys.executable, "-c", classroom.CELL], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_command_of_the_check_reaches_its_own_machine_and_nothing_else(tmp_path):
    """The proof that the check can fail: an address that is not this machine's has no way."""
    if not classroom_check.able():
        pytest.skip("no network of its own for a program: unshare is missing or forbidden")
    code = "import socket; [socket.create_server((x, 0)).close() for x in ('127.0.0.1', '')];"
    code += "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53))"
    (tmp_path / "try.py").write_text(code)
    for address, status in (("127.0.0.1", 0), ("192.0.2.1", 1)):
        (tmp_path / "try.py").write_text(code.replace("192.0.2.1", address))
        assert classroom_check.alone("python3 try.py 2>/dev/null", tmp_path, tmp_path) == status
