"""`memlab record`: the suite on the CPU, and on a device whose answers are replayed from files."""

import json
import os
import subprocess
import sys
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

from memlab import cli  # noqa: E402
from memlab.files.records import FOLDER, read, records  # noqa: E402
from memlab.measure import cuda  # noqa: E402
from memlab.measure.step_tracker import StepTracker  # noqa: E402
from memlab.recording import beside as chapter  # noqa: E402
from memlab.recording import loops, meter, provenance, subprocess_cases, suite, techniques, write  # noqa: E402
from memlab.recording.case import EXACT, KERNELS, SCRATCH, Case, Predicted  # noqa: E402
from memlab.recording.whole_steps import tiny  # noqa: E402
from memlab.terms.allocator import segment_for  # noqa: E402
from memlab.terms.replay import replay  # noqa: E402
from memlab.units import KiB, MiB  # noqa: E402

# One case of each group; the whole suite takes a minute.
FEW = ["weights/tied/bf16", "kv-cache/growing/bf16", "loading/assign", "quantization/nf4"]
FEW += ["small-optimizers/adafactor", "step/llama/bf16", "logits", "fp8", "offloading", "pruning"]
FEW += ["experts", "step-in-backward", "serving", "trainers"]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "few.json"
    said = cli.main(["record", "--device", "cpu", "--out", str(path), "--only", *FEW, "context"])
    return path, said


def test_predicted_is_measured_to_the_byte_on_a_cpu(few):
    path, status = few
    found = read(path)
    assert status == 0 and found.complete and found.kind == "cpu"
    measured = [row for row in found.rows if row.state == "measured"]
    assert len(measured) > 20 and {row.error for row in measured} == {0}
    skipped = {row.name: row.message for row in found.rows if row.state == "skipped"}
    assert skipped == {
        "pruning/two-of-four/held": "to_sparse_semi_structured is for CUDA",
        "context/held": "it needs a CUDA device",
    }
    assert list(path.parent.iterdir()) == [path]  # no unfinished file stays
    assert found.command.startswith("memlab record --device cpu --only weights/tied/bf16")
    assert (found.torch, found.driver, found.cuda) == (torch.__version__, "none", "none")


def test_a_row_that_a_cpu_cannot_have_is_skipped_and_not_failed():
    chosen = suite.cases(["attention/flash", "attention/efficient", "attention/math"])
    rows = [row for case in chosen for row in suite.one(case, "cpu")]
    assert len(rows) == 12 and {row.state for row in rows} == {"skipped"}
    assert {row.message for row in rows} == {"SDPA on a CPU has no such choice of kernels"}
    assert all(case.predict("cuda") for case in chosen)


def test_derived_and_traced_agree_for_both_backends():
    for case in suite.cases(["step/qwen3/autocast", "optimizer/fused", "checkpointing/bf16"]):
        for backend in ("cpu", "cuda"):
            for said in case.predict(backend).values():
                assert said.derived == said.traced and said.by == "derived and traced"


def test_on_cuda_the_counters_of_steps_are_on_the_host():
    forloop, fused = (
        next(iter(suite.cases([name]))).predict("cuda")["between_steps"].bytes
        for name in ("step/llama/fp32", "optimizer/fused")
    )
    names = 3 * 9 + 3  # nine tensors in each of three layers, embedding, final norm, head
    assert fused - forloop == 4 * names


def test_every_case_has_names_of_its_own_and_predicts_for_cuda_without_one():
    cases = suite.cases()
    names = [name for case in cases for name in case.names()]
    assert len(names) == len(set(names)) > 150
    for case in cases:
        if not case.name.startswith(("step", "attention", "checkpointing", "mixed", "optimizer")):
            assert set(case.predict("cuda")) == set(case.terms)


def test_by_hand_what_a_cache_and_a_checkpoint_hold():
    rows = {
        name: said.bytes
        for case in suite.cases(["kv-cache/growing/fp32", "loading/copy"])
        for name, said in zip(case.names(), case.predict("cuda").values(), strict=True)
    }
    shape = techniques.LLAMA
    one = 2 * shape.kv_heads * shape.head_dim * 4  # a token's keys in one layer, batch 2
    held = 2 * shape.layers * 40 * one
    assert rows["kv-cache/growing/fp32/held"] == held
    # The last layer's values: the longer copy, the shorter one, and the new token.
    assert rows["kv-cache/growing/fp32/peak"] == held + 39 * one + one
    assert rows["loading/copy/peak"] > 2 * rows["loading/copy/held"]  # and a tied table


class Card:
    """A pretended device: every tensor that a run makes is a line of the allocator's statistics."""

    def __init__(self, monkeypatch, name="Pretended H100", capability=(9, 0)):
        self.alive, self.peak, self.kept = 0, 0, 0
        answers = {
            "is_available": lambda: True,
            "init": lambda: None,
            "synchronize": lambda device=None: None,
            "empty_cache": lambda: None,
            "memory_stats": self.stats,
            "reset_peak_memory_stats": self.reset,
            "get_device_name": lambda device=None: name,
            "get_device_capability": lambda device=None: capability,
        }
        for key, function in answers.items():
            monkeypatch.setattr(torch.cuda, key, function)
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        monkeypatch.delenv("MEMLAB_DEVICE", raising=False)

    def stats(self, device=None):
        def both(key, now, peak):
            return {f"{key}.all.current": now, f"{key}.all.peak": peak}

        def blocks(size):
            return -(-size // 512) * 512

        now, peak = self.alive + self.kept, self.peak + self.kept
        found = both("requested_bytes", now, peak)
        found |= both("allocated_bytes", blocks(now), blocks(peak))
        found |= both("active_bytes", blocks(now), blocks(peak))
        return found | both("reserved_bytes", *2 * [segment_for(blocks(max(peak, 1)))])

    def reset(self, device=None):
        self.peak = self.alive

    def take(self, size):
        self.alive += size
        self.peak = max(self.peak, self.alive)


@pytest.fixture
def card(monkeypatch):
    return Card(monkeypatch)


def pretended(card, *, library=8 * MiB, extra=0, terms=None):
    """A case that takes 1,000 bytes and 200 for a moment, and whose library keeps a workspace."""

    def run(meter):
        assert meter.device == "cuda"
        card.kept = library  # the first run makes it, and the second one finds it
        meter.reset_peak()
        card.take(1000)
        card.take(200 + extra)
        card.take(-200 - extra)
        meter.note("held")
        meter.note_peak()
        card.take(-1000)

    said = {"held": Predicted(derived=1000), "peak": Predicted(derived=1200)}
    terms = terms or {"held": "step", "peak": "step"}
    return Case("pretended", "a run", terms, lambda backend: said, run)


def test_the_second_run_counts_and_what_a_library_keeps_does_not(card):
    card.kept = 100  # somebody else's
    held, peak = suite.one(pretended(card), "cuda")
    assert held.measured == {"requested": 1000, "allocated": 1024, "reserved": 0}
    assert (held.error, held.above, held.why) == (0, 0, EXACT)
    assert (peak.found, peak.error, peak.above, peak.why) == (1200, 0, SCRATCH, KERNELS)


def test_a_kernels_scratch_memory_is_tolerated_in_a_peak_and_too_much_is_not(card):
    _, peak = suite.one(pretended(card, extra=4096), "cuda")
    assert peak.error == 4096 and peak.holds
    held, peak = suite.one(pretended(card, extra=SCRATCH + 1), "cuda")
    assert held.holds and not peak.holds


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("cuda", torch.OutOfMemoryError("CUDA out of memory.\nmore"), "CUDA out of memory."),
        ("cuda", RuntimeError(""), "RuntimeError: "),
        ("cpu", NotImplementedError("x" * 1000), "x" * 100),
    ],
)
def test_a_row_that_fails_is_recorded_and_the_next_one_runs(card, tmp_path, device, error, message):
    def run(meter):
        raise error

    good = suite.cases(["quantization/nf4"])[0]
    case = Case("bad", "it fails", {"held": "step"}, lambda backend: {}, run)
    out = tmp_path / "x.json"
    cases = [case, pretended(card)] if device == "cuda" else [case, good]
    write.recorded(cases, device, "memlab record", out=out)
    failed, *rest = read(out).rows
    assert failed.state == "failed" and message in failed.message
    assert len(failed.message) <= suite.LONGEST and not failed.holds
    assert rest and all(row.state == "measured" and row.error == 0 for row in rest)


def test_a_run_that_forgets_a_moment_fails_by_name(card):
    terms = {"held": "step", "later": "step"}
    held, later = suite.one(pretended(card, terms=terms), "cuda")
    assert held.state == "measured"
    assert later.message == "the run noted no requested bytes at 'later'"


def test_a_stopped_run_leaves_the_old_record_and_the_rows_so_far(card, tmp_path):
    def stop(meter):
        raise KeyboardInterrupt

    out = tmp_path / "x.json"
    out.write_text("an earlier record")
    case = Case("stopped", "by hand", {"held": "step"}, lambda backend: {}, stop)
    with pytest.raises(KeyboardInterrupt):
        write.recorded([pretended(card), case], "cuda", "memlab record", out=out)
    assert out.read_text() == "an earlier record"
    found = read(tmp_path / "x.json.unfinished")
    assert not found.complete and [row.found for row in found.rows] == [1000, 1200]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.json", "x.json.unfinished"]


def test_a_file_that_cannot_be_written_is_told_before_anything_runs(card, tmp_path):
    def never(meter):
        raise AssertionError

    case = Case("x", "x", {"held": "step"}, never, never)
    with pytest.raises(FileNotFoundError):
        write.recorded([case], "cuda", "memlab record", out=tmp_path / "no" / "x.json")


def test_a_device_says_what_it_is(card, monkeypatch):
    monkeypatch.setattr(provenance, "ask_driver", lambda what: "580.1" if "driver" in what else "")
    found = provenance.provenance("cuda")
    assert (found["kind"], found["device"], found["driver"]) == ("cuda", "Pretended H100", "580.1")
    assert found["cuda"] == "13.0"
    monkeypatch.setattr(provenance, "ask_driver", lambda what: "")
    assert provenance.provenance("cuda")["driver"] == "unknown"


def test_a_chapter_measures_where_there_is_a_device(card, monkeypatch):
    monkeypatch.setattr(suite, "cases", lambda: [pretended(card)])
    here = chapter("step")
    assert here.holds and "Pretended H100" in str(here) and "1,200" in str(here)
    monkeypatch.setattr(suite, "cases", lambda: [pretended(card, extra=SCRATCH + 1)])
    assert not chapter("step").holds
    monkeypatch.setenv("MEMLAB_DEVICE", "cpu")
    assert records("cuda") or str(chapter("step")) == "Not yet measured on a GPU."


def test_a_chapter_without_a_device_shows_the_record(card, monkeypatch, tmp_path):
    monkeypatch.setattr(beside_module(), "records", records_in(tmp_path))
    monkeypatch.setenv("MEMLAB_DEVICE", "cpu")
    assert str(chapter("step")) == "Not yet measured on a GPU."
    assert chapter("step")._repr_html_() == "<p>Not yet measured on a GPU.</p>"
    monkeypatch.delenv("MEMLAB_DEVICE")
    write.recorded([pretended(card)], "cuda", "memlab record", out=tmp_path / "a.json")
    monkeypatch.setenv("MEMLAB_DEVICE", "cpu")
    shown = chapter("step")
    assert "Pretended H100" in str(shown) and "1,000" in shown._repr_html_() and shown.holds
    assert str(chapter("lora")) == "Not yet measured on a GPU."
    with pytest.raises(ValueError, match="no row is about 'prices'; known: accumulation"):
        chapter("prices")


def beside_module():
    return sys.modules["memlab.recording.recorded_rows"]


def records_in(folder):
    def found():
        return [*map(read, sorted(folder.glob("*.json"))), *records("cpu")]

    return found


def test_where_a_chapter_runs(card, monkeypatch):
    assert cuda.where() == "cuda" and suite.chosen_device(None) == "cuda"
    monkeypatch.setenv("MEMLAB_DEVICE", "cpu")
    assert cuda.where() == "cpu" and suite.chosen_device(None) == "cpu"
    with pytest.raises(ValueError, match="device 'cuda': this torch build sees no CUDA device"):
        suite.chosen_device("cuda")
    monkeypatch.setenv("MEMLAB_DEVICE", "gpu")
    with pytest.raises(ValueError, match="MEMLAB_DEVICE='gpu' is unknown; known: cpu, cuda"):
        cuda.where()


@pytest.mark.parametrize(
    ("capability", "lacks"), [((8, 0), "8.9"), ((8, 9), ""), ((9, 0), ""), ((12, 0), "")]
)
def test_which_cards_multiply_in_eight_bits(monkeypatch, capability, lacks):
    Card(monkeypatch, capability=capability)
    assert techniques.no_scaled_mm("cuda").endswith(lacks) and bool(
        techniques.no_scaled_mm("cuda")
    ) == bool(lacks)
    assert techniques.no_scaled_mm("cpu") == ""


def test_a_trainer_is_skipped_where_a_library_or_its_one_gpu_is_missing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert loops.lacks("sft", "cuda").endswith("CUDA_VISIBLE_DEVICES=0 shows it one")
    monkeypatch.setattr(loops, "find_spec", lambda name: None if name == "trl" else name)
    assert loops.lacks("sft", "cpu") == "it needs trl"
    assert loops.lacks("trainer", "cpu") == ""
    monkeypatch.setattr(loops, "find_spec", lambda name: None)
    assert loops.lacks("trainer", "cuda") == "it needs accelerate and transformers"


@pytest.mark.parametrize(
    ("capability", "bytes"),
    [((8, 6), 8519680), ((9, 0), 33554432), ((10, 0), 33554432), ((12, 0), 33554432)],
)
def test_the_workspace_that_a_card_gets(monkeypatch, capability, bytes):
    Card(monkeypatch, capability=capability)
    assert subprocess_cases.derived_workspace("cuda")["held"].derived == bytes
    assert subprocess_cases.derived_workspace("cpu")["held"].bytes is None


def test_the_allocators_story_by_hand():
    """Small: 100 KiB, 700 and 1 MiB lie in one segment of 2 MiB, which 300 KiB then shares."""
    plain, grown = (replay(subprocess_cases.STORY, expandable=each) for each in (False, True))
    # Large: 1 MiB and a byte, 3, 8 and 4 in 20; 8 and 12 in 20; 33 in 34; and for the last 12 a
    # segment of its own, since the two gaps of 8 lie apart.
    assert plain.reserved[-1] == (2 + 20 + 20 + 34 + 12) * MiB
    # Expandable: 69 MiB and a block in four pages of 20; what is left at their end is less than 12,
    # so a fifth page comes. Fewer borders are not always fewer bytes.
    assert grown.reserved[-1] == (2 + 5 * 20) * MiB
    assert subprocess_cases.replayed(True, "cuda")["held"].traced == grown.reserved[-1]
    assert subprocess_cases.SIZES[0] == 100 * KiB


def answers(monkeypatch, said, code=0, error=""):
    """Whatever is started answers so; returns what was started."""
    calls = []

    def run(command, **how):
        calls.append((command, how))
        if code and how.get("check"):
            raise subprocess.CalledProcessError(code, command)
        return subprocess.CompletedProcess(command, code, said, error)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_a_process_of_its_own_gets_one_setting_and_its_card(card, monkeypatch):
    calls = answers(monkeypatch, 'noise\n{"requested": 1, "allocated": 512, "reserved": 2097152}\n')
    uuid = type("Properties", (), {"uuid": "8f5a"})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: uuid)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:20")
    expandable, plain = (
        suite.one(case, "cuda")[0]
        for case in sorted(suite.cases(["allocator"]), key=lambda case: case.name)
    )
    assert plain.measured == expandable.measured and plain.found == 2 * MiB
    assert plain.compared == "reserved" and not plain.holds  # 2 MiB is not what was predicted
    settings = {how["env"].get("PYTORCH_ALLOC_CONF") for _, how in calls}
    assert settings == {None, "expandable_segments:True"}
    for command, how in calls:
        assert "PYTORCH_CUDA_ALLOC_CONF" not in how["env"]
        assert how["env"][subprocess_cases.CARD] == "GPU-8f5a" and command[-1] == "story"


def test_a_process_that_dies_says_its_last_line(card, monkeypatch):
    answers(monkeypatch, "", 1, "Traceback\nRuntimeError: no kernel image\n")
    uuid = type("Properties", (), {"uuid": "8f5a"})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: uuid)
    (row,) = suite.one(suite.cases(["context"])[0], "cuda")
    assert row.state == "failed" and row.message.endswith("RuntimeError: no kernel image")


def test_a_real_process_of_its_own():
    """Without a device the call fails there, and its own words come back."""
    if torch.cuda.is_available():
        pytest.skip("it would be counted here")
    with pytest.raises(RuntimeError, match=r"story in a process of its own: .*(CUDA|NVIDIA)"):
        subprocess_cases.counted("story")


def test_the_context_is_what_no_segment_accounts_for(card, monkeypatch):
    used = iter(["300 MiB\n", "748 MiB\n"])
    monkeypatch.setattr(subprocess_cases, "ask_driver", lambda what, card: next(used).strip())
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 22 * MiB)
    ones = torch.ones
    monkeypatch.setattr(torch, "ones", lambda *shape, device: ones(*shape))
    assert subprocess_cases.context() == {"reserved": (748 - 300 - 22) * MiB}


def test_a_driver_that_does_not_answer(monkeypatch):
    answers(monkeypatch, "[N/A]\n")
    with pytest.raises(ValueError, match=r"nvidia-smi says '\[N/A\]'"):
        subprocess_cases.used_by_driver()
    answers(monkeypatch, "426 MiB\n24564 MiB\n")
    assert subprocess_cases.used_by_driver() == 426 * MiB
    answers(monkeypatch, "", 9)
    assert subprocess_cases.ask_driver("driver_version") == ""

    def missing(command, **how):
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(subprocess, "run", missing)
    assert subprocess_cases.ask_driver("driver_version") == "" and provenance.commit() == "unknown"


def test_on_a_cpu_a_run_is_counted_on_its_own_device_alone():
    def run(meter):
        kept = torch.ones(7), torch.ones(9, device="meta")
        meter.note("held")
        del kept

    assert meter.measured(run, "cpu")["held"]["requested"] == 28


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "tpu"], "unknown device 'tpu'; known: cuda, cpu"),
        (["--only", "weight"], "nothing is called 'weight'; known: weights, kv-cache"),
        (["--only", "weights", "--out", "."], "'.' is a folder; a file is needed"),
        (["--only", "weights", "--out", "no/such/x.json"], "no/such"),
    ],
)
def test_what_makes_no_sense_gets_one_line(capsys, words, message):
    assert cli.main(["record", *words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("memlab: ") and message in said.err
    assert said.err.count("\n") == 1


def test_stopping_it_by_hand_gets_one_line(monkeypatch, capsys, tmp_path):
    def stop(case, device):
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "one", stop)
    out = tmp_path / "x.json"
    words = ["record", "--device", "cpu", "--only", "weights", "--out", str(out)]
    assert cli.main(words) == 130
    said = capsys.readouterr().err
    assert said == f"memlab: stopped by hand; the rows so far are in {out}.unfinished\n"
    assert read(f"{out}.unfinished").rows == () and not out.exists()


def test_the_list_runs_nothing(capsys):
    assert cli.main(["record", "--list", "--only", "step/*/bf16/peak", "context"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and lines[-1].startswith("context") and "step/gpt2/bf16 " in lines[0]


def test_from_a_shell(tmp_path):
    command = [sys.executable, "-m", "memlab", "record", "--device", "cpu", "--only", "weights"]
    done = subprocess.run(
        [*command, "--out", "x.json"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "4 rows: 4 measured; 0 out of tolerance" in done.stdout and done.stderr == ""
    assert json.loads((tmp_path / "x.json").read_text())["complete"] is True
    assert os.listdir(tmp_path) == ["x.json"]


STATED = ["weights", "kv-cache", "fp8", "pruning", "experts", "serving", "trainers"]


def test_the_committed_record_of_a_cpu_is_of_this_suite():
    """Each row that the suite has now is in it, with the prediction that is made now.

    One of a GPU cannot be made anew whenever a row comes, and keeps the predictions of its commit.
    """
    paths = [path for path in sorted(FOLDER.glob("*.json")) if read(path).kind == "cpu"]
    assert paths
    for path in paths:
        found = {row.name: row for row in read(path).rows}
        names = [name for case in suite.cases() for name in case.names()]
        assert list(found) == names, path.name
        for case in suite.cases([*STATED, "step/gpt2/bf16"]):
            for moment, said in case.predict(read(path).kind).items():
                assert found[f"{case.name}/{moment}"].predicted == said.bytes


class MetaMeter(meter.CpuMeter):
    """Counts what is on the meta device alone: a run with another device than the host's."""

    def __init__(self, tracker):
        super().__init__(tracker)
        self.device = "meta"


# Of a step what stays after it: on meta attention is written out, and keeps more.
STAYS = ("after_backward", "between_steps")
ON_META = ["weights", "kv-cache", "quantization", "fp8", "pruning/masked", "pruning/csr"]
ON_META += ["serving"]
ON_META += ["small-optimizers/adamw*", "small-optimizers/muon*", "small-optimizers/galore*"]


@pytest.mark.parametrize(
    ("only", "moments"),
    [(ON_META, ("held", "peak")), (["mixed-precision/fp32", "lora/8"], STAYS)],
)
def test_nothing_is_forgotten_on_the_host_and_what_belongs_there_is_not_predicted(only, moments):
    """The runs, on a device that is not the CPU, against what is predicted for CUDA."""
    for case in suite.cases(only):
        with StepTracker("meta") as tracker:
            noted = MetaMeter(tracker)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of torch, about sparse tensors
                case.run(noted)
        said = case.predict("cuda")
        for moment in set(moments) & set(case.terms):
            assert noted.found[moment]["requested"] == said[moment].bytes, (case.name, moment)


@pytest.mark.parametrize("kernel", ["flash", "math"])
def test_a_chosen_kernel_runs(kernel):
    """On a CPU both can be chosen, too; what stays then is CUDA's, and counters of steps beside."""
    (case,) = suite.cases([f"attention/{kernel}"])
    found = meter.measured(case.run, "cpu")
    assert set(found) == set(case.terms)
    kept = {moment: found[moment]["requested"] for moment in STAYS}
    model = tiny("gpt2")
    counters = 4 * sum(tensor.copies for tensor in model.tensors())  # on the host, beside CUDA
    said = case.predict("cuda")
    assert kept == {moment: said[moment].traced + counters for moment in STAYS}
    assert case.predict("cpu") == {}  # its rows are skipped there


def pretended_factory(card, kind):
    """torch.ones and torch.empty as if on the card, whose statistics they raise until they die."""

    def make(*shape, dtype=torch.float32, device):
        assert device == "cuda"
        made = kind(*shape, dtype=dtype)
        card.take(made.nbytes)
        weakref.finalize(made, card.take, -made.nbytes)
        return made

    return make


def test_the_story_leaves_what_is_alive_at_its_end(card, monkeypatch):
    monkeypatch.setattr(torch, "empty", pretended_factory(card, torch.empty))
    alive = (
        sum(subprocess_cases.SIZES)
        - sum(subprocess_cases.SIZES[i] for i in (1, 5, 7))
        + 12 * MiB
        + 300 * KiB
    )
    assert subprocess_cases.story()["requested"] == alive and card.alive == 0


def test_a_librarys_workspace_is_what_no_matrix_accounts_for(card, monkeypatch):
    ones = torch.ones
    monkeypatch.setattr(torch, "ones", pretended_factory(card, ones))
    card.kept = (
        ones(256, 256).nbytes + subprocess_cases.WORKSPACE
    )  # the product, and what cuBLAS keeps
    assert subprocess_cases.library() == {
        "requested": subprocess_cases.WORKSPACE,
        "allocated": subprocess_cases.WORKSPACE,
    }
