"""`memlab watch` with real programs: they leak, fork, hide, refuse to end, and end by themselves.

Everything waits for what it needs, never for a time that should be enough.
"""

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from xml.etree.ElementTree import parse

import jsonschema
import psutil
import pytest
from fake_nvml import Nvml, NVMLError

from memlab import MiB, text
from memlab.base import machine
from memlab.cli import main
from memlab.cli.schema import schema
from memlab.files.observation import seen
from memlab.files.timelines import read_timeline
from memlab.plot.watched import watched
from memlab.watch import guard, limits, record, samplers
from memlab.watch.program import Program
from memlab.watch.record import Record
from memlab.watch.tree import Tree

HEAD = {
    "command": ["true"],
    "started": "2026-11-27T00:00:00+00:00",
    "source": "process",
    "device": None,
    "total_bytes": 2**34,
}
HERE = Path(__file__).parent
MACHINES = json.loads((HERE / "nvml.json").read_text())
PEAK = r"(?:peak [\d.,]+ \w+|it ended before anything was seen of it,)"
LAST = rf"memlab watch: {PEAK} in [\d.,]+ s, exit code {{}}\n"
PATIENCE = 60  # seconds until a test gives up: only a broken watch needs them
linux = pytest.mark.skipif(sys.platform != "linux", reason="what only Linux can do")


def command(*options, program=None, words=None):
    """`memlab watch` on a Python program, or on any words."""
    what = words if program is None else [sys.executable, "-S", "-c", program]
    return [sys.executable, "-m", "memlab", "watch", "--every", "0.02", *options, "--", *what]


def run(*options, program=None, words=None, **more):
    return subprocess.run(
        command(*options, program=program, words=words),
        capture_output=True, timeout=PATIENCE, text=True, **more,
    )  # fmt: skip


def _heard():
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def running(*options, program, **more):
    """The watch of a program, killed at the end if it is still there."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # These tests may run under nohup or in the background, where SIGHUP or SIGINT is ignored and
    # stays so in every child.
    more.setdefault("preexec_fn", _heard)
    with subprocess.Popen(command(*options, program=program), **pipes, **more) as watch:
        try:
            yield watch
        finally:
            watch.kill()


def until(condition):
    """Wait for it; its value."""
    ends = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.01)
    return value


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def gpu(*, used=1000, mine=None, **more):
    card = {"uuid": "GPU-1", "name": "Card", "total": 10**10, "used": used, "graphics": None}
    return {"cards": [{**card, "compute": mine, **more}]}


# ---- what passes through


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -9 $$", 137)],
)
def test_the_exit_code_is_the_program_s(tmp_path, script, code):
    out = tmp_path / "run.json"
    done = run("--out", str(out), words=["sh", "-c", script])
    assert done.returncode == code and re.fullmatch(LAST.format(code), done.stderr)
    found = read_timeline(out)
    assert found["exit"] == code and found["command"] == ["sh", "-c", script]
    assert found["events"][-1]["kind"] == "exit" and found["samples"]
    assert found["source"] == "process" and found["device"] is None
    assert sorted(f.name for f in tmp_path.iterdir()) == ["run.json", "run.svg"]


def test_what_the_program_says_is_not_touched():
    say = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 8000); sys.stderr.write('a\\rb')"
    done = subprocess.run(command(program=say), capture_output=True, timeout=PATIENCE)
    assert done.stdout == bytes(range(256)) * 8000 and done.stderr.startswith(b"a\rb")
    assert re.fullmatch(LAST.format(0), done.stderr.decode()[3:])
    echo = "import sys; sys.stdout.write(sys.stdin.read()[::-1])"
    assert run(program=echo, input="abc").stdout == "cba"


def test_a_program_may_close_its_output():
    done = run(program="import os; os.close(1); os.close(2); raise SystemExit(3)")
    assert (done.returncode, done.stdout) == (3, "")


def test_where_nobody_watches_the_last_line_says_the_peak():
    assert re.fullmatch(LAST.format(5), run(words=["sh", "-c", "exit 5"]).stderr)
    assert run("--quiet", words=["sh", "-c", "exit 5"]).stderr == ""


def test_a_program_may_be_called_anything(tmp_path):
    out = tmp_path / "run.json"
    words = ["echo", os.fsdecode(b"\xff\x1b[1m"), "<a>\n&"]
    assert subprocess.run(command("--out", str(out), words=words), capture_output=True).stdout
    assert read_timeline(out)["command"] == words
    assert parse(out.with_suffix(".svg")).getroot().tag.endswith("svg")


def test_a_program_s_own_words_are_not_ours():
    words = ["sh", "-c", 'echo "$0 $@"', "--every", "--", "-x", "--help"]
    assert run(words=words).stdout == "--every -- -x --help\n"


def test_what_a_shell_opened_is_passed_on():
    read, write = os.pipe()
    with os.fdopen(write, "w") as end:
        end.write("hello")
    done = run(program=f"import os; print(os.read({read}, 9).decode())", pass_fds=[read])
    os.close(read)
    assert done.stdout == "hello\n"


HEARS = """
import os, signal, time
def hear(number, frame):
    # Not print: the signal may come while "ready" is printed, and print may not be called again.
    os.write(1, signal.Signals(number).name.encode() + bytes([10]))
    os._exit(5)
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    signal.signal(getattr(signal, name), hear)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signals_reach_the_program(tmp_path, name):
    out = tmp_path / "run.json"
    with running("--out", str(out), program=HEARS) as watch:
        assert watch.stdout.readline() == "ready\n"
        until(out.exists)  # from then on the watch is ready for signals, too
        watch.send_signal(getattr(signal, name))
        assert watch.stdout.readline() == f"{name}\n"
        assert watch.wait(PATIENCE) == 5
    kinds = [(event["kind"], event.get("signal")) for event in read_timeline(out)["events"]]
    assert kinds == [("signal", name), ("exit", None)]


def test_a_program_without_handlers_ends_by_the_signal():
    with running(program="print('ready', flush=True); import time; time.sleep(600)") as watch:
        watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE) == 130


def test_what_was_ignored_stays_ignored():
    ask = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    found = run(program=ask, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert found.stdout == "True\n"


# ---- limits

LEAK = f"""
import signal, sys, time
if "deaf" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
kept = []
while len(kept) < 200:
    kept.append(b"x" * {4 * MiB})
    time.sleep(0.01)
time.sleep(600)
"""


def test_a_leak_is_warned_of_and_stopped(tmp_path):
    out = tmp_path / "run.json"
    done = run("--soft-limit", "40MiB", "--hard-limit", "80MiB", "--out", str(out), program=LEAK)
    assert done.returncode == 121 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 3 and "soft limit: " in lines[0] and " of 80 MiB" in lines[1]
    assert re.fullmatch(LAST.format(121), lines[2] + "\n")
    found = read_timeline(out)
    soft, hard, end = found["events"]
    assert (soft["kind"], soft["limit"]) == ("soft-limit", 40 * MiB)
    assert (hard["kind"], hard["limit"]) == ("hard-limit", 80 * MiB)
    assert soft["at"] <= hard["at"] <= end["at"] and hard["bytes"] >= 80 * MiB
    assert (end["kind"], end["code"]) == ("exit", 143) and found["exit"] == 121
    assert end["largest_process_bytes"] > 40 * MiB
    looks = max(held for _, held, _ in found["samples"])
    # The system's own figure may be of this process, of which the watch was a copy once.
    assert looks <= found["peak_bytes"] <= max(looks, end["largest_process_bytes"])
    assert found["peak_bytes"] >= 80 * MiB
    assert found["started"] and found["process_counts"] in ("PSS", "RSS")
    drawn = out.with_suffix(".svg").read_text()
    assert "hard limit 80 MiB" in drawn and "peak " in drawn and drawn.rstrip().endswith("</svg>")


def test_a_peak_between_two_looks_is_the_kernels(tmp_path):
    """It printed 202 KiB for a program of 700 MiB, stored that, and explain took it."""
    out = tmp_path / "run.json"
    grows = f"import time; time.sleep(0.3); kept = b'x' * {64 * MiB}; time.sleep(0.3)"
    watch = [sys.executable, "-m", "memlab", "watch", "--every", "60", "--out", str(out), "--"]
    # By a shell: a process that was this one before has what this one holds as a peak of its own.
    by_a_shell = ["sh", "-c", '"$@"; exit $?', "sh", *watch, sys.executable, "-c", grows]
    done = subprocess.run(by_a_shell, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    found = read_timeline(out)
    counted = found["events"][-1]["largest_process_bytes"]
    assert max(held for _, held, _ in found["samples"]) < 64 * MiB < counted
    assert found["peak_bytes"] == counted == seen(str(out)).amount
    assert f"peak {text(counted)} in " in done.stderr


def test_who_ended_before_the_first_look_has_no_peak(tmp_path):
    """The system counts our own bytes of a program that was a copy of us until it began."""
    out = tmp_path / "run.json"
    record = Record(str(out), HEAD, {})
    record.publish()
    program = Program(["true"], dict(os.environ))
    while program.code is None:
        time.sleep(0.01)
        program.reap()
    program.close()
    assert 0 < program.largest <= program.own and program.least == 0
    record.known(program.least)
    record.close(0)
    assert read_timeline(out)["peak_bytes"] == record.peak == 0


def test_what_the_kernel_counts_of_processes_is_no_floor_of_a_card(tmp_path):
    record = Record(None, HEAD | {"source": "device", "device": "a card"}, {})
    record.look(0.0, 5 * MiB, 2 * MiB)
    record.known(700 * MiB)
    assert record.peak == 2 * MiB


def test_who_ignores_the_polite_signal_gets_the_firm_one(tmp_path):
    out = tmp_path / "run.json"
    deaf = LEAK.replace('"deaf" in sys.argv', "True")
    done = run("--hard-limit", "40MiB", "--grace", "0.3", "--out", str(out), program=deaf)
    assert done.returncode == 121
    hard, end = read_timeline(out)["events"]
    assert end["code"] == 137 and end["at"] - hard["at"] >= 0.3


def test_a_share_of_the_machine_is_a_limit_too():
    quick = "import time; time.sleep(600)"
    assert run("--hard-limit", "0.0001%", program=quick).returncode == 121


FORKS = f"""
import os, sys, time
shared = b"s" * {64 * MiB}
for _ in range(4):
    if os.fork() == 0:
        own = b"x" * ({32 * MiB} if {{own}} else 1)
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(600)
os.write(1, b"all\\n")
time.sleep(600)
"""


def test_the_memory_of_all_processes_counts_together():
    forks = FORKS.format(own=True)
    done = run("--hard-limit", "128MiB", program=forks)  # no process alone has as much
    assert done.returncode == 121
    assert all(gone(int(pid)) for pid in done.stdout.split() if pid != "all")


@linux
@pytest.mark.skipif(not samplers.HAS_PSS, reason="no smaps_rollup here")
def test_pages_that_forks_share_count_once(tmp_path):
    out = tmp_path / "run.json"
    with running("--out", str(out), program=FORKS.format(own=False)) as watch:
        said = [watch.stdout.readline().strip() for _ in range(5)]
        until(out.exists)
        looks = len(read_timeline(out)["samples"])
        until(lambda: len(read_timeline(out)["samples"]) > looks + 3)
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(PATIENCE) == 143
    assert 64 * MiB <= read_timeline(out)["peak_bytes"] < 128 * MiB
    assert all(gone(int(pid)) for pid in said if pid != "all")


HIDES = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        os.close(1)
        os.close(2)
        {then}
    os._exit(0)
os.wait()
{last}
"""


@linux
@pytest.mark.parametrize(
    ("then", "last", "code"),
    [
        ("time.sleep(600)", "sys.exit(4)", 4),  # left behind by a program that ends by itself
        (f"x = b'x' * {64 * MiB}; time.sleep(600)", "time.sleep(600)", 121),
    ],
)
def test_a_grandchild_in_a_session_of_its_own_is_found(tmp_path, then, last, code):
    out = tmp_path / "run.json"
    program = HIDES.format(then=then, last=last)
    done = run("--hard-limit", "50MiB", "--grace", "0.2", "--out", str(out), program=program)
    assert done.returncode == code == read_timeline(out)["exit"]
    assert gone(int(done.stdout))


def test_without_a_system_that_hands_orphans_over_known_ones_are_found():
    code = HIDES.format(then="time.sleep(600)", last="sys.stdin.read()")
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        tree = Tree(adopts=False)
        orphan = psutil.Process(int(program.stdout.readline()))
        # Its parent may have ended before anybody looked: so let it be known, as after a look.
        tree._known[orphan.pid] = orphan
        assert {program.pid, orphan.pid} <= {process.pid for process in tree.alive()}
        program.stdin.close()
        until(lambda: program.poll() is not None)
        assert orphan.pid in {process.pid for process in tree.alive()}
        tree.send(signal.SIGKILL)
        until(lambda: gone(orphan.pid))
        until(lambda: orphan.pid not in {process.pid for process in tree.alive()})


# ---- a watch that is cut off


@linux
def test_killed_it_leaves_a_whole_record_and_no_program(tmp_path):
    looks = 0
    for name in ("a.json", "b.json", "c.json"):
        out = tmp_path / name
        say = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        with running("--every", "0.001", "--out", str(out), program=say) as watch:
            pid = int(watch.stdout.readline())
            until(out.exists)
            while len(json.loads(out.read_text())["samples"]) < looks + 5:  # whole at any moment
                assert watch.poll() is None
            watch.kill()
            watch.wait()
            found = json.loads(out.read_text())
            assert found == read_timeline(out) and found["exit"] is None
            assert out.with_suffix(".svg").read_text().rstrip().endswith("</svg>")
            until(lambda pid=pid: gone(pid))
            looks += 10


# ---- the terminal


@contextmanager
def terminal(*words):
    """`memlab watch` in a terminal of 24 lines: its number, and what it has shown so far."""
    pid, end = pty.fork()
    if pid == 0:
        os.execve(words[0], words, {**os.environ, "TERM": "xterm", "LINES": "", "COLUMNS": ""})
    shown = bytearray()

    def read():
        assert select.select([end], [], [], PATIENCE)[0], f"nothing more after {bytes(shown)!r}"
        try:
            shown.extend(os.read(end, 65536))
        except OSError:  # Linux's way to say that it is over
            return False
        return True

    try:
        yield pid, end, shown, read
    finally:
        os.close(end)  # what still runs there gets a SIGHUP


def ask_terminal(script, answer, words=None):
    """What a program with a terminal shows, and its exit code.

    answer      what is typed when it says that it is ready; or pairs of what to wait for after the
                last of them, and what to type then
    """
    import fcntl
    import struct
    import termios

    pairs = [(b"ready", answer)] if isinstance(answer, bytes) else list(answer)
    wait = "import sys; sys.stdin.readline(); "  # the window gets its size before it begins
    wait += "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "  # as in a terminal
    start = [sys.executable, "-c", wait + "import os; os.execvp(sys.argv[1], sys.argv[1:])"]
    with terminal(*start, *(words or command(program=script))) as (pid, end, shown, read):
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.write(end, b"\n")
        seen, since = 0, time.monotonic()
        while read():
            if pairs and pairs[0][0] in shown[seen:]:
                os.write(end, pairs.pop(0)[1])
                seen, since = len(shown), time.monotonic()
            # its line is drawn again and again: something always comes
            late = time.monotonic() - since > PATIENCE
            assert not late, f"waits for {pairs[:1]} after {bytes(shown[seen:][-500:])!r}"
    return bytes(shown), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_in_a_terminal_a_line_is_drawn_and_the_program_reads():
    shown, code = ask_terminal(
        "print('ready'); print(input()[::-1]); raise SystemExit(6)", b"abc\n"
    )
    lines = re.sub(rb"\x1b7.*?\x1b8", b"", shown)  # the line may be drawn between two of its own
    assert code == 6 and b"\r\ncba\r\n" in lines
    assert b"\x1b[1;23r" in shown and re.search(rb"memlab watch  \d+\.\d s   processes ", shown)
    assert shown.index(b"\x1b[r") > shown.rindex(b"processes")  # the whole terminal scrolls again
    assert b"memlab watch: peak " in shown and b"exit code 6" in shown


def test_in_a_terminal_ctrl_c_reaches_the_program_once():
    script = """
import time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("once", flush=True)
    time.sleep(0.3)
    raise SystemExit(9)
"""
    shown, code = ask_terminal(script, b"\x03")
    assert code == 9 and shown.count(b"once") == 1 and b"Traceback" not in shown


def test_with_its_output_in_a_pipe_it_reads_from_the_terminal_all_the_same():
    watch = shlex.join(
        command(program="import sys; print('ready', file=sys.stderr); print(input())")
    )
    shown, code = ask_terminal(None, b"abc\n", words=["sh", "-c", f"{watch} | tr a-c x-z"])
    assert code == 0 and b"xyz" in shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_a_shell_stops_it_and_continues_it():
    script = """
import os, signal, time
came = []
signal.signal(signal.SIGCONT, lambda *_: came.append(1))
print("rea" + "dy", flush=True)
while not came:  # not in input(): one that comes just before it reads would wait for what is typed
    time.sleep(0.05)
print("go " + "on", flush=True)
print(input()[::-1])
"""
    # A shell reads what is typed in its locale's letters: the interpreter's path may have others.
    watch = shlex.join(command(program=script)).replace(shlex.quote(sys.executable), '"$HERE"')
    watch = watch.encode("ascii")
    typed = [
        (b"shell", watch + b"\n"),
        (b"ready", b"\x1a"),
        (b"Stopped", b"fg\n"),
        (b"go on", b"abc\n"),
        (b"cba", b"exit $?\n"),
    ]
    where = ["env", "PS1=shell ", f"HERE={sys.executable}", "bash", "--norc", "--noprofile", "-i"]
    shown, code = ask_terminal(None, typed, words=where)
    assert code == 0 and b"Traceback" not in shown


# ---- bad input


@pytest.mark.parametrize(
    ("options", "words", "why"),
    [
        (["--hard-limit", "5PiB"], ["ls"], "unknown unit 'PiB'"),
        (["--hard-limit", "5"], ["ls"], "no unit"),
        (["--hard-limit", ""], ["ls"], "no unit"),
        (["--soft-limit", "x GiB"], ["ls"], "--soft-limit"),
        (["--hard-limit", "9000TiB"], ["ls"], "is above the"),
        (["--hard-limit", "101%"], ["ls"], "more than all of it"),
        (["--hard-limit", "x%"], ["ls"], "no share"),
        (["--hard-limit", "0%"], ["ls"], "is nothing"),
        (["--hard-limit=-1GiB"], ["ls"], "is nothing"),
        (["--hard-limit", "1MiB", "--soft-limit", "2MiB"], ["ls"], "is above --hard-limit 1MiB"),
        (["--every", "0"], ["ls"], "--every 0"),
        (["--every", "nan"], ["ls"], "--every nan"),
        (["--every", "inf"], ["ls"], "--every inf"),
        (["--grace", "-1"], ["ls"], "--grace -1"),
        ([], [], "no program"),
        (["--of", "device"], ["ls"], "no device to watch"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(
    capfd, tmp_path, monkeypatch, options, words, why
):
    monkeypatch.setattr(samplers, "import_module", lambda _: Nvml(MACHINES["no driver"]))
    before = signal.getsignal(signal.SIGINT)
    out = ["--out", str(tmp_path / "run.json")]
    assert main(["watch", *out, *options, "--", *words]) == 2
    told, line = capfd.readouterr()
    assert told == "" and line.count("\n") == 1 and line.startswith("memlab: ") and why in line
    assert list(tmp_path.iterdir()) == [] and signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("words", "status"),
    [("no-such-program", 127), (str(HERE), 126), (str(HERE / "nvml.json"), 126)],
)
def test_what_cannot_be_run_has_the_status_that_a_shell_gives(capfd, tmp_path, words, status):
    assert main(["watch", "--out", str(tmp_path / "run.json"), "--", words]) == status
    assert f"memlab watch: cannot run {words!r}: " in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_script_without_its_first_line_is_the_shell_s(tmp_path, monkeypatch):
    script = tmp_path / "memlab-no-first-line"
    script.write_text('echo "$1"; exit 7')
    script.chmod(0o755)
    done = run(words=[str(script), "a b"])
    assert (done.returncode, done.stdout) == (7, "a b\n")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run(
        words=["memlab-no-first-line", "c"], env={**os.environ, "PATH": path}
    )  # found like any program
    assert (done.returncode, done.stdout) == (7, "c\n")


def test_two_watches_do_not_write_one_record(tmp_path):
    out = tmp_path / "run.json"
    wait = "import sys; print('ready', flush=True); sys.stdin.read()"
    with running("--out", str(out), program=wait, stdin=subprocess.PIPE) as first:
        assert first.stdout.readline() == "ready\n"
        second = run("--out", str(out), program="print('never')")
        assert second.returncode == 2 and second.stdout == ""
        assert "another memlab watch is writing it" in second.stderr
        first.communicate()
    assert read_timeline(out)["exit"] == 0
    assert run("--out", str(out), program="pass").returncode == 0  # free again
    assert sorted(f.name for f in tmp_path.iterdir()) == ["run.json", "run.svg"]


@pytest.mark.parametrize(
    ("out", "why"),
    [("run.txt", "does not end in .json"), ("none/run.json", "no folder"), ("dir.json", "no file")],
)
def test_a_record_goes_into_a_file(capfd, tmp_path, out, why):
    (tmp_path / "dir.json").mkdir()
    assert main(["watch", "--out", str(tmp_path / out), "--", "touch", str(tmp_path / "x")]) == 2
    assert why in capfd.readouterr().err
    assert [f.name for f in tmp_path.iterdir()] == ["dir.json"]


def test_a_record_that_cannot_be_put_in_its_place_ends_the_program(tmp_path):
    code = f"""
import sys
from memlab.watch import run, timeline_writer
def refuse(*_): raise OSError(28, "No space left on device")
timeline_writer.TimelineWriter.publish = refuse
try: run.watch(["sleep", "600"], out={str(tmp_path / "run.json")!r})
except OSError as error: print(error)
import psutil
left = psutil.Process().children()
psutil.wait_procs(left)
print(all(not p.is_running() for p in left))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.split("\n")[:2] == ["[Errno 28] No space left on device", "True"]


def test_what_cannot_start_leaves_an_old_record(capfd, tmp_path):
    out = tmp_path / "run.json"
    out.write_text("old")
    assert main(["watch", "--out", str(out), "--", "no-such-program"]) == 127
    assert out.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_no_link_is_followed(capfd, tmp_path):
    """Who may write into the folder could have any file of the watcher's overwritten."""
    victim = tmp_path / "victim.txt"
    victim.write_text("keep")
    for name in (".run.json.new", "run.json", "run.svg"):
        link = tmp_path / name
        link.symlink_to(victim)
        assert main(["watch", "--out", str(tmp_path / "run.json"), "--", "true"]) == 2
        said = capfd.readouterr().err
        assert said == f"memlab: --out: {link} is a link, and is not followed\n"
        assert victim.read_text() == "keep" and link.is_symlink()
        link.unlink()
    (tmp_path / "there").mkdir()  # of folders, which are their owner's, a link may be
    (tmp_path / "folder").symlink_to(tmp_path / "there")
    assert main(["watch", "--out", str(tmp_path / "folder/run.json"), "--", "true"]) == 0
    assert read_timeline(tmp_path / "there/run.json")["exit"] == 0


def test_a_picture_does_not_follow_a_link_either(tmp_path):
    (tmp_path / "victim.txt").write_text("keep")
    link = tmp_path / ".run.svg.1.new"
    link.symlink_to(tmp_path / "victim.txt")
    record._made(link, "picture")
    assert link.read_text() == "picture" and not link.is_symlink()
    assert (tmp_path / "victim.txt").read_text() == "keep"


def test_the_end_is_a_line_of_json(tmp_path):
    out = tmp_path / "run.json"
    done = run(
        "--json",
        "--of",
        "process",
        "--out",
        str(out),
        program="print('its own'); raise SystemExit(3)",
    )
    assert done.returncode == 3 and done.stdout == "its own\n"
    (line,) = done.stderr.splitlines()
    found, kept = json.loads(line), read_timeline(out)
    jsonschema.validate(found, schema("watch"))
    assert (found["exit"], found["events"][-1]["kind"]) == (3, "exit")
    for key in ("command", "started", "total_bytes", "peak_bytes", "events", "exit"):
        assert found[key] == kept[key]


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/a\n", {"a/memory.events": "oom 2\noom_kill 3\n"}, 3),
        ("4:memory:/x\n", {"memory/x/memory.oom_control": "under_oom 0\noom_kill 7\n"}, 7),
        ("0::/\n", {}, None),
    ],
)
def test_whom_the_system_killed_in_a_container_is_counted(tmp_path, cgroup, files, expected):
    groups(tmp_path, cgroup, files)
    assert machine.oom_kills(tmp_path) == expected


def test_whom_the_system_killed_is_said(capfd, monkeypatch, tmp_path):
    counts = iter([3, 4])
    monkeypatch.setattr(guard, "oom_kills", lambda: next(counts))
    out = tmp_path / "run.json"
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    assert main(["watch", "--of", "process", "--out", str(out), "--", *killed]) == 137
    said = "memlab watch: the system killed 1 for want of memory in this container (oom_kill)\n"
    assert said in capfd.readouterr().err
    assert read_timeline(out)["events"][-1]["oom_kills"] == 1


def test_the_help_says_what_a_limit_cannot_do(capsys):
    with pytest.raises(SystemExit):
        main(["watch", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "above --hard-limit before it is stopped" in said


def test_the_command_needs_no_torch():
    code = "import sys; from memlab.watch import run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_psutil_it_says_what_to_install(capfd, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("memlab.watch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert main(["watch", "--", "ls"]) == 2
    assert "pip install psutil nvidia-ml-py" in capfd.readouterr().err


# ---- limits and capacities, in numbers


def test_limits_are_bytes_of_the_capacity():
    assert limits.limit("--hard-limit", "90%", 1000, "it") == 900
    assert limits.limit("--hard-limit", "33.3 %", 1000, "it") == 333
    assert limits.limit("--hard-limit", "1.5KiB", 2000, "it") == 1536
    assert limits.limit("--hard-limit", "100%", 2000, "it") == 2000
    assert limits.limit("--hard-limit", None, 2000, "it") is None


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/a/b\n", {"a/memory.max": "500\n", "a/b/memory.max": "max\n"}, 500),
        ("0::/\n", {"memory.max": "700\n"}, 700),
        ("0::/\n", {}, 1000),
        ("5:cpu:/x\n4:memory:/x/y\n0::/\n", {"memory/x/memory.limit_in_bytes": "300\n"}, 300),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"}, 1000),
        (None, {}, 1000),
    ],
)
def test_a_container_s_limit_is_the_machine_s(tmp_path, cgroup, files, expected):
    groups(tmp_path, cgroup, files)
    assert limits.machine_bytes(1000, tmp_path) == expected


def groups(tmp_path, cgroup, files):
    """The files in which a container says what it may hold."""
    for name, words in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    if cgroup is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(cgroup)


# ---- cards, replayed


def cards(name, own_numbers=True, **environment):
    return samplers.Cards(Nvml(MACHINES[name]), environment, own_numbers=own_numbers)


def test_a_card_counts_what_the_program_holds_and_each_process_once():
    card = cards("one card, ours")
    assert (card.name, card.counts, card.total) == ("NVIDIA H100 80GB HBM3", "program", 85520809984)
    assert card.bytes([70, 71, 5]) == 5_000_000_000
    assert card.bytes([5]) == 0  # it has not touched the card yet


def test_where_the_driver_knows_no_numbers_of_ours_the_whole_card_counts():
    for card in (
        cards("one card, ours", own_numbers=False),
        cards("not told (WDDM)"),
        cards("not supported"),
    ):
        assert card.counts == "card"
    assert cards("one card, ours", own_numbers=False).bytes([70]) == 9_000_000_000
    assert cards("not supported").bytes([70]) == 2_000_000_000


def test_of_several_cards_the_fullest_counts_and_the_smallest_limits():
    both = cards("two cards")
    assert both.name == "2 × NVIDIA A100-SXM4-40GB" and both.total == 42_900_000_000
    assert both.bytes([70]) == 3000
    assert cards("two cards", CUDA_VISIBLE_DEVICES="0").bytes([70]) == 1000
    assert cards("two cards", CUDA_VISIBLE_DEVICES="GPU-bb22").bytes([70]) == 3000
    assert cards("two cards", CUDA_VISIBLE_DEVICES="0,7,1").bytes([70]) == 1000  # as CUDA does


@pytest.mark.parametrize(
    ("name", "visible"),
    [("no driver", "0"), ("no card", "0"), ("two cards", ""), ("two cards", "-1"),
     ("two cards", "GPU-none")],
)  # fmt: skip
def test_no_card(name, visible):
    with pytest.raises(LookupError):
        cards(name, CUDA_VISIBLE_DEVICES=visible)


def test_a_card_that_is_lost_during_the_run_says_nothing():
    machine = gpu(mine=None)
    card = samplers.Cards(Nvml(machine), {}, own_numbers=False)
    machine["cards"][0]["used"] = None
    assert card.bytes([1]) is None


def test_a_card_whose_driver_cannot_be_asked(capfd, monkeypatch):
    def missing(_):
        raise ModuleNotFoundError("No module named 'pynvml'", name="pynvml")

    monkeypatch.setattr(samplers, "import_module", missing)
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    with pytest.raises(LookupError, match="nvidia-ml-py is not installed"):
        samplers.find_cards({})
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    with pytest.raises(ModuleNotFoundError):
        samplers.find_cards({})
    assert main(["watch", "--", "ls"]) == 2
    assert "pip install psutil nvidia-ml-py" in capfd.readouterr().err


DRIVER = """
import json, pathlib, sys
sys.path.insert(0, {here!r})
from fake_nvml import *
machine = json.loads({machine!r})
class Growing(Nvml):
    def nvmlDeviceGetMemoryInfo(self, card):
        card["used"] += 10**8
        return super().nvmlDeviceGetMemoryInfo(card)
fake = Growing(machine)
globals().update({{n: getattr(fake, n) for n in dir(fake) if n.startswith("nvml")}})
"""


def test_a_limit_of_the_card_stops_the_program(tmp_path):
    driver = DRIVER.format(here=str(HERE), machine=json.dumps(gpu(used=0, mine=None)))
    (tmp_path / "pynvml.py").write_text(driver)
    out = tmp_path / "run.json"
    where = {**os.environ, "PYTHONPATH": str(tmp_path)}
    sleep = "import time; time.sleep(600)"
    done = run(
        "--soft-limit", "1GB", "--hard-limit", "20%", "--out", str(out), program=sleep, env=where
    )
    assert done.returncode == 121, done.stderr
    found = read_timeline(out)
    assert (found["source"], found["device"], found["total_bytes"]) == ("device", "Card", 10**10)
    assert found["device_counts"] == "card"
    assert found["peak_bytes"] == max(card for _, _, card in found["samples"]) >= 2 * 10**9
    assert [event["kind"] for event in found["events"]] == ["soft-limit", "hard-limit", "exit"]
    over = run("--hard-limit", "11GB", program=sleep, env=where)
    assert (
        over.returncode == 2 and "--hard-limit 11GB is above the 9.313 GiB of Card" in over.stderr
    )
    mine = run(
        "--of", "process", "--hard-limit", "1MiB", "--out", str(out), program=sleep, env=where
    )
    assert mine.returncode == 121
    found = read_timeline(out)
    assert found["source"] == "process" and found["device"] == "Card" and found["samples"][0][2] > 0


def test_the_fake_driver_raises_what_it_is_told_to():
    with pytest.raises(NVMLError):
        Nvml(MACHINES["no driver"]).nvmlInit()


def test_the_picture_keeps_the_peak_of_a_long_run():
    looks = [(i / 10, 50 if i == 4321 else 10) for i in range(9999)]
    svg = watched(looks, title="a run", limits={"hard limit": 40}).svg
    assert "peak 50 B" in svg and "hard limit 40 B" in svg and svg.count("L") < 600
    assert "peak 0 B" in watched([(0.0, 0)], title="nothing").svg
    with pytest.raises(ValueError, match="no look"):
        watched([], title="none")
