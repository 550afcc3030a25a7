"""The capstone: ten cases, reference solutions, and a judge that goes by what was run."""

import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import capstone as pages
import lay
import pytest
import status

from memlab.base.message import is_message
from memlab.capstone import cases, judge, judged
from memlab.capstone.cases import Case, script
from memlab.capstone.judge import stated
from memlab.cli import check_capstone, main
from memlab.cli.schema import schema
from memlab.estimate import at_peak, peak
from memlab.recipe import Recipe
from memlab.units import text
from memlab.verdict import DOES_NOT_FIT, room_on

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / pages.SOLUTIONS
SOLVABLE = [number for number, case in cases().items() if not case.cannot]
TEMPORARIES = {"optimizer": 1 << 39, "other": 1 << 38}
SAID = {"PEAK": "", "PHASE": "", "LARGEST": "", "LEAST": ""}
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="rehearsed on Linux")


def seen(case, **changes):
    """What a script that keeps all rules ran."""
    usual = {
        "failure": None,
        "peak": room_on(case.gpu).surely,
        "reserved": None,
        "phase": "backward",
        "terms": {"weights": 3, "logits": 4},
        "updates": 2,
        "calls": [[case.sequences, case.tokens, 2]],
        "lost": [],
        "bits": case.weights,
        "trained": case.trained,
        "states": case.states * case.trained,
        "forward": 2 * case.forward,
        "backward": 2 * case.forward * (case.plain - 1),
        "moved": 0,
    }
    assert changes.keys() <= usual.keys()
    return usual | changes


def broken(found):
    return [rule.name for rule in found.rules if not rule.kept]


# The cases --------------------------------------------------------------------------------------


def test_there_are_ten_from_one_option_to_none():
    assert list(cases()) == list(range(1, 11))
    assert [number for number, case in cases().items() if case.cannot] == [10]


@pytest.mark.parametrize("number", cases())
def test_what_a_case_begins_with_does_not_fit_for_the_stated_reason(number):
    case = cases()[number]
    model, recipe, run = pages.begins(case)
    ledger = at_peak(model, Recipe.named(recipe), run)
    sizes = {row.term: row.derived for row in ledger.rows}
    assert room_on(case.gpu).verdict(ledger.total()).word == DOES_NOT_FIT
    assert max(sizes, key=sizes.get) == case.largest
    where = re.search("the peak, in (\\w+)", ledger.title)[1]
    assert case.phase == {"loss": "backward"}.get(where, where)


def test_no_change_that_the_rules_leave_makes_the_last_case_fit():
    case = cases()[10]
    model, recipe, run = pages.begins(case)
    room = room_on(case.gpu)
    tried = 0
    for ckpt, loss, impl, inside in itertools.product(
        ("none", "block"), ("plain", "chunked"), ("foreach", "fused", "forloop"), (False, True)
    ):
        how = {"checkpoint": ckpt, "loss": loss, "optimizer_impl": impl}
        found = peak(model, recipe, run.replace(step_in_backward=inside, **how))
        assert room.verdict(found).word == DOES_NOT_FIT, how
        assert found > sum(case.least.values())
        tried += 1
    assert tried == 24
    assert sum(case.least.values()) > room.at_most, "a proof without any program"
    bits = case.weights + case.states
    assert sum(case.least.values()) >= bits // 8 * model.parameter_count


# The judge --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", SOLVABLE)
def test_what_keeps_all_rules_and_fits_solves_a_case(number):
    case = cases()[number]
    found = judged(case, seen(case), SAID)
    assert found.solved and broken(found) == [] and found.points == 6 and not found.advice


@pytest.mark.parametrize(
    ("number", "changes", "rule", "words"),
    [
        (1, {"updates": 1}, judge.UPDATES, "two are needed"),
        (1, {"lost": [[2048, 2048, 7]]}, judge.MODEL, "7 of its matrices are missing"),
        (1, {"calls": [[2, 1024, 2]]}, judge.SEQUENCES, "2 sequences per update; the case asks"),
        (1, {"calls": [[6, 512, 2]]}, judge.LENGTH, "sequences of 512 tokens; the case asks for 1"),
        (1, {"calls": []}, judge.LENGTH, "no sequence of tokens"),
        (
            1,
            {"trained": 5},
            judge.TRAINED,
            "5 weights are trained; the case asks for 1,235",
        ),
        (7, {"trained": 5}, judge.TRAINED, "5 weights are trained; the case asks for 41,943,040"),
        (1, {"bits": 8}, judge.STORED, "a weight is stored in 8 bits; the case asks for 16"),
        (1, {"states": 0}, judge.STATES, "0 bits of optimizer state"),
        (1, {"forward": cases()[1].forward}, judge.WORK, "forward passes computed 50%"),
        (1, {"backward": cases()[1].forward}, judge.WORK, "passes 25% of what a plain one"),
        (2, {"backward": 6 * cases()[2].forward}, judge.DEADLINE, "computes 4.00 times"),
        (1, {"moved": 2 << 30}, judge.MOVED, "1 GiB per update cross"),
        (9, {"moved": 20 << 30}, judge.MOVED, "10 GiB per update cross"),
    ],
)
def test_each_rule_that_is_broken_is_found(number, changes, rule, words):
    case = cases()[number]
    found = judged(case, seen(case, **changes), SAID)
    assert rule in broken(found) and not found.solved and found.points == 0
    assert any(words in each.said for each in found.rules if each.name == rule)


def test_copies_and_recomputation_are_left_where_the_case_leaves_them():
    for number, changes in ((9, {"moved": 8 << 30}), (1, {"backward": 6 * cases()[1].forward})):
        assert judged(cases()[number], seen(cases()[number], **changes), SAID).solved


def test_what_is_tight_is_half_and_what_does_not_fit_nothing():
    case = cases()[1]
    room = room_on(case.gpu)
    tight = judged(case, seen(case, peak=room.surely + 1), SAID)
    assert tight.tight and not tight.solved and tight.points == 3 and tight.advice
    over = judged(case, seen(case, peak=room.at_most + 1), SAID)
    assert broken(over) == [judge.FIT] and over.points == 0 and not over.tight
    small = judged(case, seen(case, peak=room.surely + 1, bits=8), SAID)
    assert not small.tight and small.points == 0


@pytest.mark.parametrize(
    ("words", "points"),
    [
        ({"PEAK": "20 GiB"}, 2),
        ({"PEAK": "18 GiB"}, 1),
        ({"PEAK": "15 GiB"}, 0),
        ({"PHASE": "backward", "LARGEST": "logits"}, 2),
        ({"PHASE": "optimizer", "LARGEST": "weights"}, 0),
    ],
)
def test_statements_earn_points(words, points):
    case = cases()[1]
    found = judged(case, seen(case), SAID | words)
    assert found.points == 6 + points and len(found.statements) == 3


@pytest.mark.parametrize(
    ("number", "changes", "helps", "not_left"),
    [
        (1, {"terms": {"activations": 9}, "phase": "forward"}, [judge.CHECKPOINT], judge.OFFLOAD),
        (2, {"terms": {"activations": 9}}, [judge.MICRO_BATCHES], judge.CHECKPOINT),
        (3, {"phase": "optimizer", "terms": TEMPORARIES}, [judge.FUSED], judge.EIGHT_BITS),
        (4, {"terms": {"logits": 9}}, [judge.CHUNKS], judge.MICRO_BATCHES),
        (6, {"terms": {"gradients": 9}}, [judge.IN_BACKWARD], judge.ADAPTERS),
        (8, {"terms": {"weights": 9}, "bits": 16}, [judge.FOUR_BITS], judge.CHUNKS),
        (9, {"terms": {"activations": 9}}, [judge.OFFLOAD], judge.MICRO_BATCHES),
    ],
)
def test_advice_is_what_lowers_the_largest_term_and_the_rules_leave(
    number, changes, helps, not_left
):
    case = cases()[number]
    found = judged(case, seen(case, peak=1 << 40, **changes), SAID)
    largest = max(changes["terms"], key=changes["terms"].get)
    assert f"the largest term is {largest}" in found.advice[0]
    assert all(each in found.advice[1] for each in helps) and not_left not in found.advice[1]


def test_where_the_rules_leave_nothing_that_is_said():
    case = cases()[1]
    found = judged(case, seen(case, peak=1 << 40, terms={"weights": 9}), SAID)
    assert found.advice[1] == judge.NO_RULE_LEFT


def test_the_last_case_takes_a_figure_and_no_program():
    case = cases()[10]
    for said, points in (("45.8 GiB", 10), ("50 GiB", 6), ("61 GiB", 0), ("15.3 GiB", 0)):
        found = judged(case, None, SAID | {"LEAST": said})
        assert found.points == points and found.solved == (points == 10)
        assert "45.77 GiB" in found.rules[0].said
    assert judged(cases()[1], None, SAID | {"LEAST": "1 GiB"}).points == 0


def test_statements_are_read_and_never_run(tmp_path):
    source = 'PEAK = "1 GiB"\nopen("x", "w")\nif True:\n    PHASE = "forward"\nLARGEST = str(5)\n'
    assert stated(source) == {"PEAK": "1 GiB", "PHASE": "", "LARGEST": "", "LEAST": ""}
    with pytest.raises(SyntaxError):
        stated("PEAK = ")


@pytest.mark.parametrize("module", [judge, check_capstone])
def test_a_translator_is_given_every_sentence(module):
    texts = {one for name, one in vars(module).items() if name.isupper() and isinstance(one, str)}
    assert {one for one in texts if is_message(one)} <= set(check_capstone.SENTENCES)


# The page ---------------------------------------------------------------------------------------


def test_the_page_s_tables_have_every_case():
    rows = pages.table(ROOT).splitlines()
    assert len(rows) == 12 and all(row.count("|") == 9 for row in rows)
    assert f"| {text(peak(*pages.begins(cases()[10])))}, in `optimizer`, most" in rows[-1]
    named = [row.split("|")[1].split(", ") for row in pages.quality(ROOT).splitlines()[2:]]
    assert sorted(int(number) for row in named for number in row) == list(cases())


def test_the_worked_case_is_solved_with_all_points():
    assert "10 of 10 points" in pages.answer(ROOT) and "✗" not in pages.answer(ROOT)
    assert "gradient_checkpointing_enable()" in pages.worked(ROOT)


@pytest.mark.parametrize(
    ("language", "says", "points"),
    [
        ("pt-BR", "o pico é de 16,18 GiB", "10 de 10 pontos"),
        ("zh-TW", "峰值為 16.18 GiB", "10 分中得 10 分"),
    ],
)
def test_the_page_prints_the_answer_in_its_own_language(tmp_path, language, says, points):
    english = status.fill((ROOT / "book" / "capstone.md").read_text(encoding="utf-8"), ROOT)
    answer = pages.answer(ROOT)
    assert answer in english and "the peak is 16.18 GiB" in answer
    (tmp_path / "capstone.md").write_text(english, encoding="utf-8")
    for name in ("_toc.yml", "_config.yml"):
        shutil.copy(ROOT / name, tmp_path)
    lay.lay(language, tmp_path)
    shown = (tmp_path / "capstone.md").read_text(encoding="utf-8")
    assert says in shown and points in shown and "10 of 10 points" not in shown
    assert shown.count("\n✓ ") == english.count("\n✓ ") == 14
    assert pages.answer(ROOT) == answer  # English again, whatever was laid out between


# What was run ------------------------------------------------------------------------------------

TINY = Case(
    number=1,
    title="",
    gpu="RTX 4090",
    model="tiny-llama",
    sequences=2,
    tokens=64,
    forwards=3.5,
    base={"batch": 2, "tokens": 64},
    recipe="fp32",
    weights=32,
    states=64,
    phase="",
    largest="",
)
LOSS = "loss = model(input_ids=ids, labels=ids).loss"
PLACED = 'model = model.to("cuda")\n'
CHUNKED = """rows = model.model(input_ids=ids).last_hidden_state[:, :-1].flatten(0, 1)
    loss = 0
    for part, labels in zip(rows.chunk(4), ids[:, 1:].flatten().chunk(4)):
        logits = torch.nn.functional.linear(part, model.lm_head.weight)
        loss = loss + torch.nn.functional.cross_entropy(logits, labels, reduction="sum")"""
TWICE = """ids = torch.randint(0, 3, (2, 64), device="cuda")[:1]
    model(input_ids=ids, labels=ids).loss.backward()"""


@pytest.fixture
def runs(tmp_path):
    """What the tiny case's script runs with one piece of it replaced."""
    pytest.importorskip("transformers")
    from memlab.capstone.observed import observed

    def run(old="", new=""):
        source = script(TINY)
        assert not old or source.count(old) == 1, old
        path = tmp_path / "train.py"
        path.write_text(source.replace(old, new) if old else source)
        return observed(str(path), TINY)

    return run


@needs_linux
@pytest.mark.parametrize(
    ("old", "new"), [("", ""), (LOSS, CHUNKED), ("foreach=True", "fused=True"), (LOSS, TWICE)]
)
@pytest.mark.filterwarnings("ignore")
def test_what_keeps_the_rules_in_its_own_way_is_accepted(runs, old, new):
    new = f"{new}\n    ids = ids[:1]\n    {LOSS}" if new == TWICE else new
    found = judged(TINY, runs(old, new), SAID)
    assert broken(found) == [] and found.solved


@needs_linux
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("range(3)", "range(1)", judge.UPDATES),
        ("'num_hidden_layers': 4", "'num_hidden_layers': 3", judge.MODEL),
        ("(2, 64)", "(1, 64)", judge.SEQUENCES),
        ("(2, 64)", "(2, 32)", judge.LENGTH),
        (PLACED, f"{PLACED}model.model.layers[0].requires_grad_(False)\n", judge.TRAINED),
        ("float32", "bfloat16", judge.STORED),
        ("AdamW(trained, lr=1e-4, foreach=True)", "SGD(trained, lr=1e-4)", judge.STATES),
        (PLACED, f"{PLACED}model.config.num_hidden_layers = 2\n", judge.WORK),
        (LOSS, "loss = model(input_ids=ids, logits_to_keep=8).logits.sum()", judge.WORK),
        (PLACED, f"{PLACED}model.gradient_checkpointing_enable()\n", judge.DEADLINE),
        (LOSS, f"torch.zeros(1 << 26, device='cuda').cpu()\n    {LOSS}", judge.MOVED),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_script_that_breaks_a_rule_is_found_by_what_it_ran(runs, old, new, rule):
    found = judged(TINY, runs(old, new), SAID)
    assert rule in broken(found) and found.points == 0


@needs_linux
@pytest.mark.filterwarnings("ignore")
def test_looking_on_changes_no_byte(runs, tmp_path):
    from memlab import rehearse

    found = runs()
    alone = rehearse(tmp_path / "train.py", on=TINY.gpu)
    assert found["peak"] == alone.peak and sum(found["terms"].values()) == alone.peak


@needs_linux
def test_products_that_torch_has_no_formula_for_are_counted():
    """A linear layer inside of an autograd function of a library's own, and its narrow matrices."""
    torch = pytest.importorskip("torch")
    from memlab.capstone.observed import PRODUCTS, Observer

    observer = Observer(8)
    a, b = torch.empty(2, 5, 16, device="meta"), torch.empty(32, 16, device="meta")
    observer.sees(torch.ops.aten.linear.default, (a, b), {}, torch.empty(2, 5, 32, device="meta"))
    assert observer.forward == 2 * (2 * 5 * 16 * 32)
    pytest.importorskip("bitsandbytes")
    for name in sorted(PRODUCTS):
        namespace, _, op = name.partition("::")
        assert hasattr(getattr(torch.ops, namespace), op), name


@needs_linux
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", SOLVABLE)
@pytest.mark.filterwarnings("ignore")
def test_the_reference_solution_solves_its_case_with_all_points(number):
    pytest.importorskip("transformers"), pytest.importorskip("peft")
    case = cases()[number]
    (entry,) = check_capstone.person("", [str(SOLUTIONS / case.name)]).entries.values()
    assert broken(entry.judged) == [] and entry.judged.points == 10
    if number == 1:
        assert check_capstone._observed(str(SOLUTIONS / case.name), 1) == json.loads(
            (SOLUTIONS / "observed_01.json").read_text()
        )


@needs_linux
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", SOLVABLE)
@pytest.mark.filterwarnings("ignore")
def test_the_script_that_a_case_begins_with_breaks_no_rule_and_does_not_fit(number, tmp_path):
    pytest.importorskip("transformers"), pytest.importorskip("peft")
    case = cases()[number]
    path = tmp_path / case.name
    path.write_text(script(case))
    (entry,) = check_capstone.person("", [str(path)]).entries.values()
    assert broken(entry.judged) == [judge.FIT] and entry.judged.points == 0
    assert f"in {case.phase}, the largest term is {case.largest}" in entry.judged.advice[0]


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def judge_reads(monkeypatch):
    """Scripts are not rehearsed: each ran what its first line says."""

    def observed(file, number):
        return seen(cases()[number], **json.loads(Path(file).read_text().splitlines()[0][1:]))

    monkeypatch.setattr(check_capstone, "_observed", observed)


def hand_in(path, **changes):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"#{json.dumps(changes)}\nPEAK = '20 GiB'\n")
    return str(path)


def test_a_learner_s_scripts_rule_by_rule(judge_reads, tmp_path, capsys):
    hand_in(tmp_path / "capstone_01.py")
    hand_in(tmp_path / "deep" / "Capstone 2.py", bits=8)
    (tmp_path / "train.py").write_text("")
    assert main(["check", "--capstone", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "case 1: llama-3.2-1b on RTX 4090, 8 of 10 points" in said
    assert re.search(r"✗ +weights +a weight is stored in 8 bits; the case asks for 16", said)
    assert "points: 10 of 20" in said and "train.py" not in said
    assert main(["check", "--capstone", str(tmp_path / "capstone_01.py")]) == 0


def test_a_room_of_scripts_and_the_rules_that_several_break(judge_reads, tmp_path, capsys):
    hand_in(tmp_path / "ana" / "capstone_01.py", bits=8)
    hand_in(tmp_path / "Bo" / "capstone_1 (2).py", bits=4)
    hand_in(tmp_path / "capstone_02-chen.py")
    (tmp_path / "dora").mkdir()
    page = tmp_path / "room.html"
    assert main(["check", "--capstone", "--class", str(tmp_path), "--out", str(page)]) == 1
    said = capsys.readouterr().out.split("\n\n")
    rows = [line.split() for line in said[0].splitlines()]
    assert rows == [
        *(["learner", "1", "2", "points"], ["ana", "2", "2"], ["Bo", "2", "2"]),
        *(["chen", "8", "8"], ["dora", "0"]),
    ]
    assert re.search(r"^ *2 +1 +weights$", said[1], re.M)
    assert "dora: no script of the capstone is in it" in said[2]
    assert page.read_text().startswith("<!doctype html>")


def test_the_document_is_of_its_schema(judge_reads, tmp_path, capsys):
    jsonschema = pytest.importorskip("jsonschema")
    hand_in(tmp_path / "capstone_03.py", peak=1 << 40)
    (tmp_path / "capstone_10.py").write_text('LEAST = "45.8 GiB"\n')
    main(["check", "--capstone", str(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, schema("check --capstone"))
    (one,) = found["learners"]
    assert [(each["case"], each["points"]) for each in one["cases"]] == [(3, 0), (10, 10)]
    assert len(one["cases"][0]["advice"]) == 2 and one["points"] == 10


def test_of_two_scripts_of_a_case_the_better_one_counts_and_odd_files_are_named(
    judge_reads, tmp_path, capsys
):
    paths = [hand_in(tmp_path / "capstone_01.py"), hand_in(tmp_path / "b_capstone_1.py", bits=1)]
    for name, words in (("capstone_77", ""), ("capstone_05", "PEAK ="), ("none", "")):
        (tmp_path / f"{name}.py").write_text(words)
        paths.append(str(tmp_path / f"{name}.py"))
    latin = tmp_path / "capstone_04.py"
    latin.write_bytes('PEAK = "situação"'.encode("latin-1"))
    paths.append(str(latin))
    assert main(["check", "--capstone", *paths, str(tmp_path / "capstone_06.py")]) == 1
    said = capsys.readouterr().out
    assert "8 of 10" in said
    for words in (
        "there is no case 77; the last one is 10",
        "capstone_05.py: it is no Python: line 1",
        "capstone_04.py: it is no Python: line 1",
        "none.py: its name says which case it is",
        "capstone_06.py: No such file",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--capstone", "--run"], "--run runs notebooks; --capstone rehearses"),
        (["--capstone"], "this folder: no script of the capstone (capstone_01.py) is there"),
        (["--begin", "x", "--json"], "--begin x writes scripts and judges nothing: no --json"),
        (["--begin", "x", "--class", "."], "judges nothing: no --class"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["check", *words]) == 2 and message in capsys.readouterr().err


@needs_linux
def test_a_script_that_fails_is_told_by_its_last_line(tmp_path, capsys):
    pytest.importorskip("transformers")
    path = tmp_path / "capstone_01.py"
    path.write_text("import torch\nprint('{}')\nraise RuntimeError('of mine')\n")
    assert main(["check", "--capstone", str(path)]) == 1
    said = capsys.readouterr().out
    assert "it was not run to its end: RuntimeError: of mine" in said and "0 of 10 points" in said


def test_the_scripts_to_begin_with_are_written_once(tmp_path, capsys):
    pytest.importorskip("torch")
    folder = tmp_path / "capstone"
    assert main(["check", "--begin", str(folder)]) == 0
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == [case.name for case in cases().values()]
    for path, case in zip(files, cases().values(), strict=True):
        compile(path.read_text(), path.name, "exec")
        assert case.gpu in path.read_text() and stated(path.read_text()) == SAID
    files[0].write_text("mine")
    assert main(["check", "--begin", str(folder)]) == 0 and files[0].read_text() == "mine"
    assert "has all of them already" in capsys.readouterr().out
