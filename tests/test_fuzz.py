"""What nobody would ask: odd questions of the shell, damaged files, valid configs at random.

A question ends in status 0, 1 or 2; a refusal is one line (or argparse's usage), an answer is
printable, and what --json prints is JSON. A reader of a file may refuse with a ValueError of one
line, or a TypeError where a value is of a wrong kind. All else is a finding.

    pytest tests/test_fuzz.py --hypothesis-profile=long        hours, and other draws in each run
"""

import contextlib
import io
import json
import os
import resource
import shlex
import signal
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from damaged import CONFIG, ODD, TARGETS, changed, configs, files
from described import described_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from test_nothing_ignored import TABLE
from test_refusals import OBJECT

from memlab import Model, cli
from memlab.model import presets
from memlab.step.windows import first_apart

SECONDS, BYTES, PATIENCE = 10, 2**30, 120  # of a processor; more than before; of a clock
# The same few cases in each run, or as many as the profile says.
LONG = settings.get_current_profile_name() == "long"
FEW = settings() if LONG else settings(max_examples=50, derandomize=True)
COMMANDS = ("estimate", "fit", "explain")
SIZES = ["80GB", "24 GiB", "24", "4090", "-1 GB", "0", "1e9 B", "9 PB"]
EVIL = ["\x1b[2J\x07", "\u202e", "../../etc/passwd", "a" * 5000, "inf", "nan", "x", ",", "", "1.5"]
COUNTS = [1000, 1001, 10**5, 10**9, 10**12, 10**30, 2**63]
VALUES = st.sampled_from([*SIZES, *EVIL, *map(str, COUNTS), "-5", "/nowhere.json", "README.md"])
odd_configs = configs | configs.flatmap(lambda c: changed(c, (*ODD, *EVIL, *COUNTS)))


@pytest.fixture(scope="module", autouse=True)
def ready():
    """What every question imports, so that a child pays for its answer alone."""
    for name in {*cli.COMMANDS, "lists"} - {"trace", "measure", "watch", "record", *cli.LISTS}:
        import_module(f"memlab.cli.{name}")
    import_module("memlab.step")


def options(command):
    """Of each option of a command whether it takes a value."""
    return {
        max(one.option_strings, key=len): one.nargs != 0
        for one in cli.parser(command).of._actions
        if one.option_strings and one.dest not in ("help", "plot", "json")
    }


@st.composite
def questions(draw, folder):
    """The words of one command line: of some options a use that counts, some of it made odd."""
    command = draw(st.sampled_from(COMMANDS))
    known = options(command)
    config = folder / "config.json"
    text = json.dumps(draw(odd_configs))
    config.write_text(text, encoding="utf-8", errors="surrogatepass")
    words = [command, draw(st.sampled_from([str(config)] * 3 + ["gpt2", "", *presets()]))]
    chosen: dict = {}
    for how in draw(st.lists(st.sampled_from([*TABLE.values()]), max_size=3)):
        flag = None
        for word in shlex.split(" ".join(how)):
            if word.startswith("--"):
                flag = word if word in known else None
            if flag:
                chosen[flag] = None if word == flag else word
    for flag in draw(st.lists(st.sampled_from([*known]), max_size=2)):
        chosen[flag] = draw(VALUES) if known[flag] else None
    for flag in {"fit": ["--on"], "explain": ["--seen"]}.get(command, []):
        chosen.setdefault(flag, draw(VALUES))
    for flag, value in chosen.items():
        words += [flag] if value is None else [flag, value]
    return [*words, "--json"] if draw(st.booleans()) else words


def attempt(words):
    """None, or what a command line did that it must not; in a process of its own, with limits."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child uses none
        child = os.fork()
    if child == 0:
        try:
            said = _limited(words)
        except BaseException as error:  # nothing of the child may go on in the parent's loop
            said = f"{type(error).__name__}: {error}"
        os.write(write, (said or "").encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return said or (f"ended by {signal.Signals(status & 127).name}" if status else None)


def _seconds(words):
    """SECONDS, but for one answer that is known to be slow, and is to be made fast.

    Where layers take turns each is simulated, in each of thirty steps that an explanation tries:
    28 seconds for gemma-2-27b with two micro-batches.
    """
    known = words[0] == "explain" and words[1] in presets()
    return 60 if known and first_apart(Model.preset(words[1])) is None else SECONDS


def _limited(words):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = _seconds(words)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.alarm(PATIENCE)
    os.environ["MEMLAB_DEBUG"] = "1"  # what breaks is to be seen, not status 70
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            described_alone(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            status = cli.main(words)
    except SystemExit as end:
        status = end.code
    return _judged(status, out.getvalue(), err.getvalue(), "--json" in words)


def _judged(status, out, err, as_json):
    if status not in (0, 1, 2):
        return f"status {status}"
    if status == 2:
        usage = err.startswith("usage: ")
        whole = err.startswith('{ "memlab": "error",' if as_json else "memlab: ")
        one = whole and err.count("\n") == 1 and not OBJECT.search(err)
        return None if not out and (usage or one) else f"refusal: not one line: {err[:200]!r}"
    if not out.strip():
        return "silence: no answer"
    if odd := [c for c in out if not (c.isprintable() or c == "\n")]:
        return f"unprintable: {odd[:3]}"
    if as_json:
        json.loads(out)
    return None


@settings(FEW)
@given(st.data())
def test_any_question_is_answered_or_refused(tmp_path_factory, data):
    words = data.draw(questions(tmp_path_factory.getbasetemp()))
    assert attempt(words) is None, shlex.join(["memlab", *words])


CLAIM = ("figure", "ask", "line", "within", "unchecked", "verdict", "reason", "where", "x")


@settings(FEW)
@given(st.data())
def test_any_list_of_claims_is_answered_or_refused(tmp_path_factory, data):
    usual = {"figure": "16 GB", "ask": "estimate llama-3.1-8b --precision bf16", "line": "weights"}
    values = st.sampled_from([*ODD, *EVIL, *SIZES, "at least 1 GB", "yes", "5 %", "rows.x.y"])
    claim = st.dictionaries(st.sampled_from(CLAIM), values, max_size=2).map(lambda odd: usual | odd)
    lines = ["# claims"]
    for items in data.draw(st.lists(claim, max_size=3)):
        lines += ["", data.draw(st.sampled_from(["## a claim", "## ", "### x"]))]
        lines += [f"- {key}: {value}" for key, value in items.items()]
    path = tmp_path_factory.getbasetemp() / "claims.md"
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    assert attempt(["audit", str(path), *data.draw(st.sampled_from([[], ["--json"]]))]) is None


def read(kind, path):
    """None, or what a reader did that it must not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[kind][1](str(path))
    except (ValueError, TypeError) as error:
        typed = ("config", "adapter")  # whose fields have types: Model's, Lora's
        if isinstance(error, TypeError) and kind not in typed:
            return f"TypeError: {error}"
        return f"more than one line: {error}" if "\n" in str(error) else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("kind", TARGETS)
@settings(FEW, max_examples=FEW.max_examples * 3)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, kind, data):
    path = tmp_path_factory.getbasetemp() / f"damaged-{kind}"
    path.write_bytes(data.draw(files(kind)))
    assert read(kind, path) is None


def _fifo(path):
    os.mkfifo(path)


def _endless(path):
    path.symlink_to("/dev/zero")


def _long(path):
    with path.open("wb") as file:
        file.truncate(2**33)


HOSTILE = {
    "a pipe": _fifo,
    "a device": _endless,
    "a folder": Path.mkdir,
    "8 GiB of nothing": _long,
    "nested": lambda path: path.write_text('{"a": ' * 10**5),
    "NaN": lambda path: path.write_text('{"model_type": NaN}'),
    "no number": lambda path: path.write_text('{"zero_optimization": {"stage": -1e999}}'),
    "a key twice": lambda path: path.write_text('{"zero_optimization": 1, "zero_optimization": 2}'),
    "a key twice, of many": lambda path: path.write_text(
        "{" + "".join(f'"{n}": 1, ' for n in range(10**5)) + '"1": 2, "1": 3}'
    ),
    "not UTF-8": lambda path: path.write_bytes(b'{"\xff": 1}'),
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("kind", TARGETS)
def test_no_reader_waits_for_what_has_no_end(tmp_path, kind, hostile):
    path = tmp_path / "found.json"
    HOSTILE[hostile](path)
    signal.alarm(PATIENCE)  # a reader that waits ends all tests
    try:
        with pytest.raises((ValueError, OSError)) as refused:
            TARGETS[kind][1](str(path))
    finally:
        signal.alarm(0)
    assert len(str(refused.value)) < 400 and "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", [kind for kind in TARGETS if kind != "snapshot"])
@settings(FEW, max_examples=3)
@given(data=st.data())
def test_a_mark_of_the_byte_order_is_no_text(tmp_path_factory, kind, data):
    """Editors on Windows begin a file with it."""
    value, reader = TARGETS[kind]
    text = json.dumps(CONFIG if kind == "config" else data.draw(value))
    found = []
    for encoding in ("utf-8", "utf-8-sig"):
        path = tmp_path_factory.mktemp(kind) / "found.json"
        path.write_text(text, encoding=encoding)
        found.append(reader(str(path)))
    assert found[0] == found[1]


def test_the_files_are_damaged_and_not_all_beyond_reading(tmp_path):
    path, seen = tmp_path / "s", []

    @settings(FEW, database=None)
    @given(files("snapshot"))
    def drawn(data):
        path.write_bytes(data)
        with contextlib.suppress(ValueError):
            TARGETS["snapshot"][1](str(path))
            seen.append(data)

    drawn()
    assert 5 < len(seen) < FEW.max_examples - 5


def test_a_reader_that_breaks_is_noticed(monkeypatch, tmp_path):
    monkeypatch.setitem(TARGETS, "snapshot", (None, lambda path: {}["a"]))
    assert read("snapshot", tmp_path).startswith("KeyError")


@pytest.mark.parametrize(
    ("broken", "finding"),
    [
        (lambda words: {}[1], "KeyError: 1"),
        (lambda words: print("\x1b[2J") or 0, "unprintable: ['\\x1b']"),
        (lambda words: print("{") or 0, "JSONDecodeError"),
        (lambda words: 0, "silence: no answer"),
        (lambda words: 3, "status 3"),
        (lambda words: print("x", file=sys.stderr) or 2, "refusal: not one line"),
        (lambda words: [0] * 2**28, "MemoryError"),
        (lambda words: any(n < 0 for n in iter(int, 1)), "ended by SIGXCPU"),
        (lambda words: os.kill(os.getpid(), signal.SIGKILL), "ended by SIGKILL"),
    ],
)
def test_a_command_that_breaks_is_noticed(monkeypatch, broken, finding):
    monkeypatch.setattr(cli, "main", broken)
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 1)
    assert attempt(["estimate", "--json"]).startswith(finding)


@pytest.mark.deep
@settings(FEW)
@given(seed=st.integers(0, 2**32))
def test_any_step_is_the_real_one_to_the_byte(seed):
    """In what it holds, and to the number at its peak that autograd wraps."""
    from real_steps import FAMILIES, random_configs, real_step, simulated

    step = random_configs(seed % len(FAMILIES) + 1, seed)[-1]
    real, found = real_step(step), simulated(step)
    assert found.held == real.held
    assert abs(found.peak.bytes - real.peak.bytes) <= 8
