"""The command line as a shell meets it: encodings, Ctrl-C, help, JSON, hostile names."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from memlab.cli import COMMANDS, main, parser
from memlab.cli.document import document
from memlab.cli.examples import EXAMPLES, NO_JSON, OWN_STATUS
from memlab.cli.interrupt import Interruptible
from memlab.cli.parser import BASIC
from memlab.cli.schema import FIELDS, schema
from memlab.model import presets
from memlab.model.presets import HUB

LISTS = ("models", "devices", "formats", "recipes", "claims")


def shell(*words, **environment):
    command = [sys.executable, "-m", "memlab", *words]
    return subprocess.run(command, capture_output=True, env={**os.environ, **environment})


SAID = (
    *LISTS,
    "claims 004",
    "estimate gpt2 --tokens 64",
    "estimate gpt2 --against bf16",
    "explain gpt2 --seen 80GB --tokens 64",
    "fit gpt2 --on H100 --tokens 64",
    "record --list",
    "estimate --help",
)


@pytest.mark.sample(9)
@pytest.mark.parametrize(  # what ASCII can spell, the wider ones can
    "encoding, words",
    [
        *(("ascii", words) for words in SAID),
        *(("cp1252", words) for words in SAID[::4]),
        *(("iso8859-1", words) for words in SAID[1::4]),
    ],
)
def test_a_narrow_encoding_spells_what_it_lacks(encoding, words):
    done = shell(*words.split(), PYTHONIOENCODING=encoding)
    assert done.returncode in (0, 1) and done.stderr == b""
    assert len(done.stdout.decode(encoding)) > 40


def test_signs_have_their_nearest_spelling():
    done = shell("estimate", "gpt2", "--tokens", "64", PYTHONIOENCODING="ascii")
    assert done.stdout.startswith(b"gpt2 - fp32 - 1 x 64 tokens") and b"?" not in done.stdout
    done = shell("estimate", "\u4e2d\u2192.json", PYTHONIOENCODING="ascii")
    assert done.returncode == 2 and b"memlab: '?->.json' is neither" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_exit_statuses(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and "130" in said and f"memlab {command}" in said
    for line, _ in EXAMPLES[command]:
        assert line.startswith(f"memlab {command}") and line in said
    assert ("--json  " in said) == (command not in NO_JSON)
    assert ("exit status" in said) != (command in OWN_STATUS), "two tables of statuses"


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_help_fits_a_terminal(capsys, monkeypatch, command):
    """argparse lists all flags of a command before the first word about it, a screen of them."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if len(line) > 80] == []
    assert said.index("") < 5, "the first word after the usage"


@pytest.mark.parametrize("command", ["estimate", "trace", "fit", "explain"])
def test_a_short_help_has_what_most_need(capsys, command):
    for word in ("-h", "--help"):
        with pytest.raises(SystemExit) as ended:
            main([command, word])
        assert ended.value.code == 0
    short, whole = capsys.readouterr().out.split(f"usage: memlab {command}")[1:]
    count = [text.count("\n  --") for text in (short, whole)]
    assert 12 <= count[0] <= 20 < count[1] and "--tokens N" in short
    assert f"memlab {command} --help has all " in short


def test_the_short_help_names_options_that_there_are():
    known = {flag for name in COMMANDS for flag in parser(name).of._option_string_actions}
    assert set(BASIC) <= known


def test_help_of_a_command_is_its_help(capsys):
    said = []
    for words in (["help", "fit"], ["fit", "--help"], ["help"], ["--help"], ["-h"]):
        with pytest.raises(SystemExit):
            main(words)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != said[2] == said[3] == said[4]
    assert main(["help", "fitt"]) == 2 and "did you mean fit?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({"MEMLAB_LANG": "pt_BR"}, "pesos"),
        ({"MEMLAB_LANG": "zh-tw"}, "權重"),
        ({"LANG": "pt_BR.UTF-8"}, "pesos"),
        ({"LANG": "zh_TW.UTF-8", "LC_ALL": "C.UTF-8"}, "weights"),
        ({"LANG": "pt_BR.UTF-8", "MEMLAB_LANG": "en"}, "weights"),
        ({"LANG": "de_DE.UTF-8"}, "weights"),
    ],
    ids=str,
)
def test_the_environment_says_the_language(environment, word):
    none = {name: "" for name in ("LC_ALL", "LC_MESSAGES", "LANG", "MEMLAB_LANG")}
    done = shell("estimate", "gpt2", **none | {"PYTHONIOENCODING": "utf-8"} | environment)
    assert done.returncode == 0 and word in done.stdout.decode()


def test_a_language_that_is_none_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("MEMLAB_LANG", "xx")
    assert main(["estimate", "gpt2"]) == 2
    assert "MEMLAB_LANG=xx is no language here; known: en, pt-BR" in capsys.readouterr().err


# What needs files that are not there, a long run, or torch's slow start, stands in other tests.
# Without those that read or write a file: a name like qwen3-0.6b is none.
FILES = re.compile(r"\.(py|svg|json|pickle|md|log|ipynb|html)\b")
QUICK = [line for lines in EXAMPLES.values() for line, _ in lines if not FILES.search(line)]
QUICK = [line for line in QUICK if line.split()[1] not in ("trace", "measure", "record", "doctor")]


@pytest.mark.parametrize("line", QUICK)
def test_examples_work_as_they_stand(capsys, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)  # one of them begins the capstone where it stands
    assert main(shlex.split(line)[1:]) in (0, 1)
    out, err = capsys.readouterr()
    assert out and not err


def answered(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", LISTS)
def test_lists_are_documents_of_their_schema(capsys, command):
    found = answered(capsys, command)
    jsonschema.validate(found, schema(command))
    assert found["memlab"] == command and found["schema"] == 1 and len(found[command]) > 5


def test_every_preset_has_its_document(capsys):
    """nanochat's, whose family has no config.json, ended in a KeyError."""
    for name in presets():
        found = answered(capsys, "estimate", name)
        jsonschema.validate(found, schema("estimate"))
        assert found["model"] == name and found["parameters"] > 0


def test_measure_and_record_are_documents_of_their_schema(capsys):
    found = answered(capsys, "measure", "tiny-llama", "--steps", "2")
    jsonschema.validate(found, schema("measure"))
    assert found["difference"] == 0 and len(found["losses"]) == 2
    found = answered(capsys, "record", "--device", "cpu", "--only", "fp8")
    jsonschema.validate(found, schema("record"))
    assert found["rows"] and "schema" in found


STEP = ["tiny-llama", "--tokens", "32"]
LOG = (
    "Free memory on device (5.01/6.0 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 5.4 GiB)"
)


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "tiny-llama"],
        ["estimate", *STEP],
        ["estimate", *STEP, "--backend", "cpu", "--lora-rank", "4", "--holds", "graph,model"],
        ["estimate", *STEP, "--phase", "decode", "--precision", "bf16"],
        ["estimate", "tiny-llama", "--ranks", "4", "--zero", "2"],
        ["estimate", *STEP, "--against", "bf16"],
        ["serve", "tiny-llama", "--on", "RTX 4090"],
        ["fit", "tiny-llama", "--tokens", "32", "--on", "RTX 4090"],
        ["fit", "tiny-llama", "--batch", "2", "--on", "RTX 4090"],
        ["fit", *STEP, "--batch", "4", "--on", "14 MiB", "--spare", "0"],
        ["fit", *STEP, "--batch", "4", "--on", "1 MiB", "--spare", "0"],
        ["explain", *STEP, "--seen", "20 MiB"],
        ["explain", "llama-3-8b", "--engine", "vllm", "--seen", "20 GiB", "--on", "RTX 4090"],
        ["explain", "llama-3-8b", "--engine", "vllm", "--seen", LOG],
        ["trace", *STEP],
    ],
    ids=" ".join,
)
def test_answers_are_documents_of_their_schema(capsys, words):
    assert main([*words, "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    more = [word for word in ("--against", "--engine") if word in words]
    command = " ".join([words[0], *more])
    jsonschema.validate(found, schema(command))
    assert found["memlab"] == command and found["schema"] == 1


def _without_words(part):
    """Every field of a schema that says nothing about itself."""
    for name, field in part.get("properties", {}).items():
        if not field.get("description"):
            yield name
        yield from _without_words(field)
    if "items" in part:
        yield from _without_words(part["items"])


@pytest.mark.parametrize("command", FIELDS)
def test_every_field_is_described_and_a_wrong_one_is_found(command):
    told = schema(command)
    jsonschema.Draft202012Validator.check_schema(told)
    assert list(_without_words(told)) == []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(document(command)), told)  # no fields


@pytest.mark.parametrize(
    "words",
    [
        "estimate gpt2 --batch-size 4",
        "estimate none",
        "fit gpt2 --on x --batch 1",
        "estimat gpt2",
        "fit gpt2",
        "estimate gpt2 --phase x",
    ],
)
def test_a_refusal_is_a_document_too(capsys, words):
    with contextlib.suppress(SystemExit):  # argparse's own way
        main(words.split())
    line = capsys.readouterr().err
    with contextlib.suppress(SystemExit):
        main([*words.split(), "--json"])
    out, err = capsys.readouterr()
    found = json.loads(err.splitlines()[-1])
    jsonschema.validate(found, schema("error"))
    assert out == "" and line == f"memlab: {found['message']}\n" and found["status"] == 2


def test_a_schema_of_nothing_is_refused():
    with pytest.raises(ValueError, match="'completion' prints no JSON; known: .*models"):
        schema("completion")


def test_claims_of_one_verdict_from_all_notes(capsys):
    assert main(["claims", "--verdict", "unit slip"]) == 0
    said = capsys.readouterr().out
    assert "S1-" in said and "S4-" in said
    assert said.splitlines()[-1] == (
        "4 claims: 4 unit slip; 3 claims added while auditing: 3 unit slip; judged 7 by check"
    )
    found = answered(capsys, "claims", "--verdict", "unit slip")["claims"]
    assert {one["verdict"] for one in found} == {"unit slip"}
    assert len({one["note"] for one in found}) > 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("record --list --out x.json", "--list runs nothing; leave --out out"),
        ("record --list --json", "leave --json out"),
        ("measure tiny-llama --steps 0", "--steps 0; at least 1"),
        ("estimate gpt2 --zero 2 --tokens 8", "--zero 2 divides what data-parallel ranks share"),
        ("estimate gpt2 --zero 1 --tensor 2", "give --ranks N, more than 2"),
        ("estimate gpt2 --plan torch --tokens 8", "--plan torch is of tensor parallelism"),
        ("estimate gpt2 --schedule 1f1b --tokens 8", "--schedule 1f1b is of a pipeline"),
        ("estimate gpt2 --lora-rank 8", "--lora-rank 8 changes a step: it needs tokens"),
    ],
)
def test_no_flag_is_dropped_silently(capsys, words, message):
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("estimat gpt2", "no command 'estimat'; did you mean estimate? known: estimate, trace"),
        ("estimate gpt2 --tokns 5", "--tokns 5; did you mean --tokens"),
        ("estimate gpt2 --xyz", "unrecognized arguments: --xyz; see `memlab estimate --help`"),
        ("estimate gpt2 a b", "unrecognized arguments: a b; see `memlab estimate --help`"),
        ("trace gpt2 --fsdp 8", "ask `memlab estimate gpt2 --fsdp 8`; see `memlab trace --help`"),
        ("watch --fsdp 8", "memlab estimate has --fsdp, memlab watch does not; see `memlab w"),
        ("estimate", "the following arguments are required: CONFIG; see `memlab estimate --help`"),
        ("explain gpt2 --seen 9GB --level x", "argument --level: invalid choice: 'x' (choose from"),
        ("--frob", "required: COMMAND; see `memlab --help`"),
        ("estimate lama-3-8b", "a preset; did you mean llama-3-8b"),
        (
            "estimate x/y.json",
            "get its config with `hf download x/y.json config.json --local-dir y",
        ),
        ("estimate ./no/file", "'./no/file' is neither a file nor a preset; `memlab models` lists"),
        ("estimate https://x.org/a/b", "download the model's config.json, and give its path"),
        (
            "trace meta-llama/Llama-3.3-8B-Instruct",
            "`hf download meta-llama/Llama-3.3-8B-Instruct config.json --local-dir "
            "Llama-3.3-8B-Instruct`, and give the folder; did you mean llama-3",
        ),
        ("audit nothing.md", "memlab: nothing.md: No such file or directory"),
    ],
)
def test_a_slip_is_one_line_that_names_what_is_near(capsys, words, message):
    try:
        status = main(words.split())
    except SystemExit as end:  # argparse's own way
        status = end.code
    out, err = capsys.readouterr()
    assert status == 2 and out == "" and err.startswith("memlab: ") and err.count("\n") == 1
    assert message in err


def test_every_repository_is_a_preset():
    assert set(HUB.values()) == set(presets()) - {"tiny-gpt", "tiny-llama", "nanochat-d26"}
    assert all(name == name.lower() and name.count("/") == 1 for name in HUB)


def test_a_schema_of_nothing_is_refused_at_the_shell():
    done = shell("schema", "completion")
    said = b"memlab: 'completion' prints no JSON; known"
    assert done.returncode == 2 and done.stderr.startswith(said)
    assert json.loads(shell("schema", "fit").stdout)["fit"] == schema("fit")
    assert list(json.loads(shell("schema").stdout)) == list(FIELDS)


# Ctrl-C ---------------------------------------------------------------------------------------

LONG = {
    "estimate": "estimate llama-3-8b --tokens 4096 --backend cuda --json",
    "trace": "trace llama-3-8b --tokens 4096",
    "fit": "fit llama-3-8b --on 80GB --tokens 128",
    "explain": "explain llama-3-8b --seen 80GB --tokens 4096",
    "measure": "measure tiny-llama --steps 100000",
    "record": "record --device cpu",
}


READY = "import sys; from memlab.cli import main; print('ready', flush=True); sys.exit(main())"


@pytest.fixture
def heard():
    """Ctrl-C is heard, also where the tests run in the background, where a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.sample(9)
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize(
    "command, seconds",
    [*((command, at) for command in LONG for at in (0.05, 1.0)), ("measure", 4.0), ("record", 4.0)],
)
def test_ctrl_c_is_one_line_and_130(tmp_path, command, seconds):
    words = [sys.executable, "-c", READY, *LONG[command].split()]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    try:
        answer, said = child.communicate(timeout=60)
    finally:
        child.kill()  # if it did not hear it
    if answer:
        pytest.skip("the answer came first")
    assert said.decode() == "memlab: stopped by hand\n" and child.returncode == 130


class Dropped:
    """Python reports what its end raises, and goes on."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)


@pytest.mark.usefixtures("heard")
def test_an_interruption_that_a_callback_dropped_comes_again():
    reached = []
    with pytest.raises(KeyboardInterrupt), Interruptible():
        Dropped()
        for _ in range(1000):
            time.sleep(0.001)
        reached.append("the end")
    assert not reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("heard")
def test_an_interruption_that_a_library_swallowed_ends_the_block():
    with pytest.raises(KeyboardInterrupt), Interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)
        except BaseException:
            pass
    with Interruptible():  # a quiet one
        pass


def test_other_things_that_are_dropped_are_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))

    class Other:
        def __del__(self):
            raise LookupError

    with Interruptible():
        Other()
    assert told == [LookupError]


# Names from outside ---------------------------------------------------------------------------

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"


def test_a_file_s_name_moves_no_cursor(capsys, tmp_path):
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 10}
    folder = tmp_path / f"a{EVIL}b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config | {"n_positions": 64}))
    for words in (["estimate", str(folder)], ["estimate", str(folder), "--json"]):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert all(c.isprintable() or c == "\n" for c in out)
        assert "\\u001b]0;owned" in out
    assert EVIL in json.loads(out)["model"]
    assert main(["estimate", str(folder / "none")]) == 2
    assert "\x1b" not in capsys.readouterr().err
    assert main(["measure", str(folder / "config.json"), "--recipe", "fp32"]) == 2
    assert "\x1b" not in capsys.readouterr().err
