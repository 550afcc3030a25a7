"""What other people's GPUs said: the archive is whole, and memlab answers as is stored."""

import hashlib
import json
import re
from collections import Counter
from statistics import median

import ask
import pytest
from depth import few
from posted import page, picture, readings, scripts
from posted.misses import OWN_REASONS, REASONS

from memlab import MiB, Model, Recipe, Run, text
from memlab.adapters import Ia3, Lora
from memlab.cli import main
from memlab.files.records import FOLDER, records
from memlab.run.lower_bound import least
from memlab.terms.allocator import CachingAllocator
from memlab.terms.workspaces import cublas_workspaces

UNITS = {"B": 1, "MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
HOST = {"implementation": "memlab", "optimizer_impl": "forloop"}
AGAIN = "python research/posted/ask.py --write"
FRESH, WORKED = readings.commands()
ROWS = [*FRESH, *WORKED]
NEW, OLD = readings.read(readings.UNSEEN), readings.read()
PAGE = readings.ROOT / "book" / "accuracy.md"
# Of the first answers, as they were given: whoever changes one of them changes what was published.
FIRST = "375f87976b76ee7aa96a7d96281c190a76f601d5aa9739b8404ca76ea3b410b5"


def test_every_reading_has_its_source_and_the_figure_that_was_printed():
    rows = [
        (head, row)
        for folder in (readings.ROWS, readings.UNSEEN)
        for head in readings.sources(folder).values()
        for row in head["readings"]
    ]
    assert len({row["id"] for _, row in rows}) == len(rows) == 755 + 282
    for head, row in rows:
        is_whole(head, row)
    stored = ask._stored()["rows"]
    assert {a.reading.id for a in ROWS} == set(stored) == {reading.id for reading in NEW + OLD}


def is_whole(head, row):
    told = head["every"] | row
    assert head["licence"] and head["date"] and head["not_stated"]
    assert head.get("address") or head["repository"]
    assert "address" in told or (told["path"] and re.fullmatch("[0-9a-f]{9,10}", told["commit"]))
    said = float(told["printed"]) * UNITS[told["unit"]]
    assert told["bytes"] == pytest.approx(said, abs=1), row["id"]
    assert told["kind"] in readings.KINDS and told["counter"] and told["device"]


def some(found):
    """Of each source the first and the last row with a figure, and the first that has none."""
    for name in dict.fromkeys(a.reading.source for a in found):
        its = [a for a in found if a.reading.source == name]
        told = [a for a in its if a.counted]
        refused = [a for a in its if not a.counted]
        chosen = {a.reading.id: a for a in (*told[:1], *told[-1:], *refused[:1])}
        yield from (pytest.param(a, id=a.reading.id) for a in chosen.values())


@pytest.mark.sample(25)
@pytest.mark.parametrize("stored", list(some(ROWS)))
def test_the_command_prints_the_figure(stored):
    """Through the real command line, with nothing added."""
    assert ask.asked(stored) == stored, AGAIN


def test_the_own_terms_say_what_is_stored():
    """A part of each source, again; where traced bytes stand, nothing is left to ask."""
    for read, found, unseen in (
        (OLD, readings.answers(), False),
        (NEW, readings.unseen()[1], True),
    ):
        for name in dict.fromkeys(reading.source for reading in read):
            its = [a for a in found if a.reading.source == name]
            for id in few(8, [a.reading.id for a in its]):
                (stored,) = [a for a in its if a.reading.id == id]
                assert ask.own(stored.reading, unseen=unseen) == stored, AGAIN


def test_an_answer_has_a_figure_or_a_reason():
    assert all(bool(a.command) for a in ROWS if a.counted)
    assert all(a.counted == (a.bytes is not None) == (a.reason == "") for a in ROWS)
    for found in readings.unseen():
        assert all(a.counted == (a.bytes is not None) == (a.reason == "") for a in found)


def test_the_first_answers_are_those_that_were_given():
    first, _ = readings.unseen()
    told = json.dumps([[a.reading.id, a.reading.bytes, a.bytes, a.reason] for a in first])
    assert hashlib.sha256(told.encode()).hexdigest() == FIRST


def test_only_stated_rules_take_a_reading_out_of_the_count():
    out = [a.reason for a in readings.answers() if a.bytes is not None and a.reason]
    assert Counter(reason.split(":")[0] for reason in out) == {
        "a length was read from it": 2,
        "cannot be": 3,
    }


def test_a_reason_is_one_for_many_readings():
    """A mapping refused kinds of runs and never a row that it would miss."""
    reasons = Counter(a.reason for a in readings.answers() if a.bytes is None)
    assert len(reasons) <= 30 and min(reasons.values()) >= 1
    assert all(reason and not re.search(r"\d,\d{3}|%", reason) for reason in reasons)


def test_a_peak_below_its_weights_gradients_and_states_cannot_be():
    model, bf16 = Model.preset("llama-3.2-1b"), Recipe.named("bf16")
    P, told = model.parameter_count, {"tokens": 64}
    assert sum(least(model, bf16, Run(**told)).values()) == pytest.approx(8 * P, rel=1e-6)
    inside = least(model, bf16, Run(step_in_backward=True, **told))
    assert "gradients" not in inside and sum(inside.values()) == pytest.approx(6 * P, rel=1e-6)
    away = least(model, bf16, Run(offload=("states",), **HOST, **told))
    assert away == {"weights": 2 * P, "gradients": 2 * P}
    lora = Lora(8)
    trained = lora.parameter_count(model)
    adapted = least(model, bf16, Run(lora=lora, **told))
    assert sum(adapted.values()) == 2 * P + 16 * trained
    vectors = least(model, bf16, Run(adapter=Ia3(), **told))
    assert sum(vectors.values()) == 2 * P + 16 * Ia3().parameter_count(model)
    norms_alone = least(model, bf16, Run(frozen=("embedding", "attention", "feed_forward"), **told))
    norms = sum(t.count for t in model.tensors() if t.component == "norm")
    assert norms_alone["weights"] == 2 * P and norms_alone["gradients"] == 2 * norms
    assert least(model, bf16, Run(phase="decode", **told)) == {"weights": 2 * P}
    assert ask.Described(model, bf16, Run(), "resident").floor() == 0


def test_the_least_is_never_above_the_peak():
    for run in (
        Run(tokens=16),
        Run(tokens=16, lora=Lora(4)),
        Run(tokens=16, adapter=Ia3()),
        Run(tokens=16, step_in_backward=True),
        Run(tokens=16, frozen=("embedding",)),
        Run(tokens=16, offload=("states",), **HOST),
    ):
        said = ask.Described(Model.preset("tiny-llama"), Recipe.named("fp32"), run)
        assert 0 < said.floor() <= said.bytes(), run


def test_the_shell_says_that_a_posted_peak_cannot_be(capsys):
    words = "estimate tiny-llama --tokens 32 --posted".split()
    assert main([*words, "1 MB"]) == 0
    assert (
        "it cannot be, for the weights, gradients and optimizer states" in capsys.readouterr().out
    )
    assert main([*words, "20 MB", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found, peak = document["posted"], document["peak"]["bytes"]
    assert found["possible"] and found["least"] < peak < 20 * 10**6
    assert found["error"] == pytest.approx((peak - 20 * 10**6) / (20 * 10**6))
    assert main([*words, "20 MB", "--against", "bf16"]) != 0
    assert "leave out --against" in capsys.readouterr().err
    assert main([*words, "-1 MB"]) != 0


def test_a_refusal_is_said_in_memlabs_words():
    assert "neither a file nor a preset" in ask.answer("memlab estimate no-such-model --json")[1]
    assert "no-such-option" in ask.answer("memlab estimate gpt2 --no-such-option --json")[1]
    (reading,) = [r for r in OLD if r.id == "vllm/llama3-8b/act"]
    with pytest.raises(ask.Refused, match="limits are not stated"):
        ask.described(reading)


@pytest.mark.parametrize(
    ("kind", "counter", "wanted"),
    [
        ("train-1gpu", "max_memory_allocated", 5),
        ("train-1gpu", "GPU memory (GB)", 5),
        ("train-1gpu", "peak memory (the script logs both, allocated and reserved)", 5),
        ("train-1gpu", "max reserved", 6),
        ("inference", "model weights take", 1),
        ("resident-1gpu", "memory_allocated() after optimizer.step()", 3),
    ],
)
def test_one_rule_says_which_figure_a_counter_reads(kind, counter, wanted):
    reading = readings.Reading("x", "x", kind, "A100", {}, 1, counter, "")
    said = {"rows": {"weights": 1, "gradients": 1, "logits": None}, "held": {"between_steps": 3}}
    said |= {"peak": {"bytes": 4}, "allocator": {"allocated": 5, "reserved": 6}}
    assert ask.figure(reading, said) == wanted
    alone = {"rows": said["rows"], "held": None, "peak": said["peak"], "allocator": None}
    assert ask.figure(reading, alone) == {5: 4, 6: 4, 3: 2}.get(wanted, wanted)
    if wanted == 6:
        with pytest.raises(ask.Refused, match="no peak"):
            ask.figure(reading, alone | {"peak": None})


def test_a_posted_sum_is_held_against_as_many_answers():
    summed = [reading for reading in NEW + OLD if reading.gpus > 1]
    assert {reading.source for reading in summed} == {"qwen"}
    assert all("sum" in r.counter and r.group == "several GPUs" for r in summed)


def test_the_tables_say_what_is_stored():
    said = page.headline(None)
    for found in (FRESH, WORKED):
        *_, figures, middle, worst = readings.summary(found)
        (line,) = re.findall(rf"^\| all \| {figures} of {len(found)} \| .*$", said, re.M)
        assert f" of {len(found)} | {middle:.1%} | " in line
        assert line.endswith(f" | {page.signed(worst)} |")
    for found, table in ((FRESH, page.fresh(None)), (WORKED, page.worked(None))):
        assert all(line in said for line in table.splitlines()) and said.count("| all | ") == 2
        for line in table.splitlines()[2:]:
            is_counted(line, found)
    without = Counter(bool(a.reason) for a in ROWS)[True]
    numbers = re.findall(r"(\d+) \| (\d+) \|$", page.refused(None), re.M)
    assert sum(int(n) for pair in numbers for n in pair) == without
    answered = {a.reading.source for a in ROWS if a.counted}
    assert page.examples(None).count("\n$ memlab ") == len(answered)
    assert page.impossible(None).count("`litgpt-hub/") == 3
    assert page.by_source(None).count("https://github.com/") == len(readings.sources())
    assert page.unseen_sources(None).count("https://") == len(readings.sources(readings.UNSEEN))


def is_counted(line, found):
    """A row of the tables, counted anew: how many are answered, near, and too low."""
    group, answered, _, near, far, low, _ = (c.strip() for c in line.strip("|").split("|"))
    answered, every = answered.split(" of ")
    its = [a for a in found if group in (a.reading.group, "all")]
    ratios = [a.bytes / a.reading.bytes for a in its if a.counted]
    assert [int(every), int(answered)] == [len(its), len(ratios)]
    near, far, low = (int(cell.split(" (")[0]) for cell in (near, far, low))
    assert near == sum(0.95 <= r <= 1.05 for r in ratios)
    assert far == sum(0.90 <= r <= 1.10 for r in ratios)
    assert low == sum(r < 0.95 for r in ratios)


def test_every_table_of_the_page_is_printed_by_one_command():
    assert ask.page.tables().count("|---|") > 20


def test_the_own_terms_of_the_page_are_those_that_are_stored():
    table = page.own_terms(None)
    for alone, own in ((FRESH, readings.unseen()[1]), (WORKED, readings.answers())):
        told = [a for a in own if a.counted]
        figures, middle = page.told(own)[:2]
        assert figures == str(len(told))
        assert f"| all | {len([a for a in alone if a.counted])} | " in table
        assert f" | {figures} | {middle} | " in table
    missed = [a for a in readings.unseen()[1] if a.counted and abs(a.error) > page.NEAR]
    kinds = [page._reason(a, OWN_REASONS)[0] for a in missed]
    assert len(set(kinds)) <= page.MOST and {what for _, what, _ in OWN_REASONS} <= set(kinds)
    assert all(what in page.own_misses(None) for what in kinds)


def test_the_table_of_scripts_says_what_is_stored():
    stored = readings.loaded(scripts.STORED)["reserved"]
    assert list(stored) == list(scripts.SCRIPTS)
    rows = scripts.table(None).splitlines()[2:]
    for (answer, size), row in zip(scripts.beside(), rows, strict=True):
        assert "reserved" in answer.reading.counter and stored[answer.reading.id] == size
        error = (size - answer.reading.bytes) / answer.reading.bytes
        assert f" | {size / 2**30:.2f} GiB | {page.signed(error)} | " in row
        assert (" | no answer | " in row) == (answer.bytes is None)
    errors = sorted(size / answer.reading.bytes - 1 for answer, size in scripts.beside())
    assert len(rows) == 4 and errors[0] < -0.05 and all(abs(e) < 0.003 for e in errors[1:])
    said = f"The fourth rehearsal is {-errors[0]:.1%} too low. Every figure of the table is"
    words = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert said in words and "script: three of four within 0.3%" in words


def test_a_checkout_that_is_not_there_is_named(tmp_path):
    commit = scripts.SOURCES[scripts.RASCHKA]
    with pytest.raises(ValueError, match=f"has no checkout; LLMs-from-scratch at commit {commit}"):
        scripts.checked(tmp_path)
    with pytest.raises(ValueError, match="--scripts FOLDER"):
        scripts.main([])


def test_what_stands_in_for_a_text_has_enough_tokens(tmp_path):
    """More than two batches of the largest script on each of its GPUs, and Llama 3's vocabulary."""
    for source in scripts.SOURCES:
        scripts.stand_in(source, tmp_path)
    said: dict = {}
    exec((tmp_path / "tiktoken.py").read_text(), said)
    text = (tmp_path / "middlemarch.txt").read_text()
    assert len(said["get_encoding"]("gpt2").encode(text)) * 9 // 10 > 2 * 4 * 32 * 1024
    lines = (tmp_path / "tokenizer.model").read_bytes().splitlines()
    assert len({line.split()[0] for line in lines}) == 128_256 - 256


def test_what_is_said_of_gemma_s_head_is_its_size():
    """Of two rows that nobody has explained: how much of the gap its head and its tables are."""
    config = readings.FOLDER / "configs" / "gemma-3-270m.json"
    sizes = json.loads(config.read_text(encoding="utf-8"))
    head = 2 * sizes["vocab_size"] * sizes["hidden_size"]
    row = ask._stored()["rows"]["llms-from-scratch/generate/Gemma-3-270M/cache"]
    tables = dict(row["more"])["tables"]
    for found, known, most in ((FRESH, head + tables, 1 / 2), (readings.unseen()[1], head, 1 / 3)):
        gaps = [a.reading.bytes - a.bytes for a in found if a.counted and "Gemma" in a.reading.id]
        assert len(gaps) == 2 and all(known < most * gap for gap in gaps)


def test_every_kind_of_misses_has_its_rows():
    """And a kind that has no sentence is said to be unexplained, so that asking again is enough."""
    for pattern, what, why in REASONS:
        assert what and why and any(re.search(pattern, a.reading.id) for a in ROWS), pattern
    assert "| Not explained yet. |" in page.misses(None)


def test_readme_and_picture_show_the_stored_figures():
    assert page.README.read_text(encoding="utf-8") == page.readme(), AGAIN
    assert page.sentence() in page.readme()
    assert picture.PATH.read_text(encoding="utf-8") == picture.picture(), AGAIN
    powers = [2**picture.LOW, 2**picture.HIGH]
    told = [size for a in ROWS if a.counted for size in (a.bytes, a.reading.bytes)]
    assert powers[0] < min(told) and max(told) < powers[1]


def test_the_page_says_what_the_figures_show():
    words = " ".join((readings.ROOT / "book" / "posted.md").read_text(encoding="utf-8").split())
    for found in (FRESH, WORKED):
        outside = [a.error for a in found if a.counted and abs(a.error) > page.NEAR]
        assert sum(e < 0 for e in outside) > len(outside) / 2
    assert "most of the others lie below it" in words
    training = [a.error for a in FRESH if a.counted and a.reading.group == KINDS[0]]
    low = sum(e < -page.NEAR for e in training)
    answered = [a.error for a in FRESH if a.counted]
    too_low = sum(e < -page.NEAR for e in answered)
    for page_of, sentence in (
        ("accuracy", f"with {len(FRESH)} measurements that other people published"),
        ("accuracy", f"It gave a figure for {len(answered)} of them"),
        ("accuracy", f"{too_low} of them were more than 5% too low"),
        ("accuracy", f"{low} of {len(training)} answers are more than 5% too low"),
        ("accuracy", f"{sum(e < 1 / 1.25 - 1 for e in training)} of the {len(training)} runs"),
        ("accuracy", "8.125 MiB each on Ampere and Ada, and 32 MiB each on Hopper"),
        ("accuracy", "lower here for training on one GPU and for inference, higher for several"),
        ("accuracy", "and about the same overall"),
        ("calculator", "most figures were several per cent too low"),
    ):
        book = readings.ROOT / "book" / f"{page_of}.md"
        assert sentence in " ".join(book.read_text(encoding="utf-8").split()), sentence
    of = {name: [a.error for a in FRESH if a.counted and a.reading.group == name] for name in KINDS}
    assert all(sum(e < 0 for e in errors) > len(errors) / 2 for errors in of.values())
    assert all(0.02 < median(map(abs, errors)) < 0.10 for errors in of.values())
    assert sum(e < -page.NEAR for e in of[KINDS[0]]) > len(of[KINDS[0]]) / 2
    alone = [a for a in FRESH if a.counted and "--ranks 1 --zero 3" in a.command]
    assert {a.reading.what["model"] for a in alone} == {"Qwen-1.8B"} and len(alone) == 6
    assert "the six full fine-tunes of Qwen-1.8B would have no figure here" in words
    own = [a.error for a in readings.unseen()[1] if a.counted and a.reading.group == KINDS[0]]
    fewer = (
        f"it gives fewer, {len(own)} instead of {len(training)}, and their median error is higher"
    )
    now, alone = (f"{median(map(abs, errors)):.1%}" for errors in (own, training))
    assert f"{fewer}, {now} instead of {alone}" in words and len(own) < len(training)
    both = [median(abs(a.error) for a in found if a.counted) for found in (FRESH, WORKED)]
    assert both[1] == pytest.approx(both[0], rel=0.15)
    worked = {
        name: [a.error for a in WORKED if a.counted and a.reading.group == name] for name in KINDS
    }
    lower = [median(map(abs, worked[name])) < median(map(abs, of[name])) for name in KINDS]
    assert lower == [True, True, False]
    configs = {path.stem for path in (readings.FOLDER / "configs").glob("*.json")}
    used = {name for a in ROWS for name in re.findall(r"configs/(.*?)\.json", a.command)}
    assert used == configs and "all these files are in `research/posted/configs`" in words
    assert text(cublas_workspaces(8, threads=1)) == "8.125 MiB"  # as accuracy says, above
    assert text(cublas_workspaces(9, threads=1)) == "32 MiB"
    sizes = {t.name: 2 * t.numel for t in Model.preset("llama-2-13b").tensors()}
    up = next(size for name, size in sizes.items() if name.endswith(".up"))
    assert up == 135 * MiB and allocated([up]) == 136 * MiB
    every = [2 * t.numel for t in Model.preset("llama-2-13b").tensors() for _ in range(t.copies)]
    assert round((allocated(every) - sum(every)) / MiB) == 120 and "add up to 120 MiB" in words
    inside = [t for t in Model.preset("llama-3-8b").tensors() if t.component not in OUTSIDE]
    assert f"{2 * sum(t.count for t in inside) / 2**30:.1f}" == "14.0"
    assert "14.0 GiB more for Llama-3-8B" in words


OUTSIDE = ("embedding", "norm")
KINDS = page.KINDS_OF_RUNS


def allocated(sizes):
    allocator = CachingAllocator()
    for number, size in enumerate(sizes):
        allocator.malloc(number, size)
    return allocator.allocated


def test_a_record_of_memlab_is_a_file_of_this_very_form(tmp_path):
    (record,) = records("cpu")
    path = tmp_path / "memlab.json"
    path.write_text(ask.record(FOLDER / "cpu-x86_64.json"), encoding="utf-8")
    found = json.loads(path.read_text(encoding="utf-8"))
    for row in found["readings"]:
        is_whole(found, row)
    kept = [row for row in record.rows if row.predicted and row.found]
    assert len(found["readings"]) == len(kept) > 100
    said = [ask.own(reading) for reading in readings.read(tmp_path)]
    assert [a.bytes for a in said] == [row.predicted for row in kept]
    assert [a.reading.bytes for a in said] == [row.found for row in kept]
