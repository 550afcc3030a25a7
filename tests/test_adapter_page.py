"""Steps that train adapters alone: the page answers their peak as the package does, to the byte."""

import json
import random
import shlex
from collections import Counter
from pathlib import Path

import adapter_peaks
import code_key
import peak_compare
import peaks
import pytest
from calculator_states import ADAPTED, SERVED, adapted, config
from depth import DEPTH
from test_calculator import agree, folder, lookup, step_of  # noqa: F401  fixtures
from test_one_answer_page import PACKAGE_ONLY

from memlab.cli import main
from memlab.estimate import estimate
from memlab.families import proven, record_of, tabled
from memlab.fit import CannotFit, cheapest_change
from memlab.model import Model
from memlab.page import adapters_resident, words
from memlab.page.adapter_tables import kind_of, table_of
from memlab.page.answer import answered, outcome
from memlab.page.controls import OPTIMIZERS, checked
from memlab.page.peak_files import moments, unfolded
from memlab.page.question import model_of, recipe_of, run_of
from memlab.run import Run
from memlab.sharding import Sharding
from memlab.step.adapters import dora, lora
from memlab.step.ops import nf4_linear
from memlab.units import text

FAMILIES = tabled("adapters")
MANY = 60 * DEPTH
DRAW = random.Random(adapter_peaks.key())
# Of each file a kind of step, another one for other code.
KINDS = [
    (each, DRAW.choice(list(adapter_peaks.kinds_of(*each[:2])))) for each in adapter_peaks.files()
]


def test_they_were_made_by_the_code_as_it_is():
    assert adapter_peaks.stands(), "run python tools/adapter_peaks.py"


def test_the_key_covers_all_that_steps_are_made_from():
    mine = set(code_key.reached(Path(adapter_peaks.__file__)))
    assert set(code_key.reached(Path(peaks.__file__))) < mine
    assert {Path(module.__file__) for module in (lora, dora, nf4_linear)} < mine


def test_there_is_a_file_of_each_and_no_other():
    wanted = {adapter_peaks.path_of(*each).name for each in adapter_peaks.files()}
    kept = {path.name for path in peaks.TARGET.glob("*.*.*.json")}
    kept = {name for name in kept if name.split(".")[0] in FAMILIES}
    assert wanted == kept and len(wanted) == 12 * len(FAMILIES)


def test_one_file_is_made_again_byte_for_byte():
    small = DRAW.choice([each for each in adapter_peaks.files() if each[0] == "gemma2"])
    kept = adapter_peaks.path_of(*small).read_text(encoding="utf-8")
    assert adapter_peaks.text_of(*small) == kept, "run python tools/adapter_peaks.py"


@pytest.mark.sample(29)
@pytest.mark.parametrize(("file", "kind"), KINDS, ids=lambda each: ".".join(map(str, each)))
def test_a_kind_of_step_of_each_file_is_made_again(file, kind):
    kept = unfolded(adapter_peaks.path_of(*file).read_text(encoding="utf-8"))
    told = [tuple(each) for each in moments(kept, kind_of(".".join(kind)))]
    assert told == adapter_peaks.moments_of(*[file[0], kind], *file[2:])


def test_tied_tables_change_nothing_where_nobody_trains_them():
    for family in ("llama", "qwen2", "qwen3"):
        tied = [k for k in peaks.kinds_of(family, "bf16") if k[6] == "tied"]
        for kind in DRAW.sample(tied, 3):
            kept = adapter_peaks.path_of(family, "bf16", "nf4", "all").read_text(encoding="utf-8")
            kept = moments(unfolded(kept), kind_of(".".join(kind))) if kind[5] != "single" else None
            if kept is not None:
                made = adapter_peaks.moments_of(family, kind, "nf4", "all")
                assert [tuple(each) for each in kept] == made


@pytest.fixture(scope="module")
def asked(lookup):  # noqa: F811
    """(state, the page's answer in CPython) for random questions that have a peak."""
    found: list = []
    seen: Counter = Counter()
    for state in adapted(40 * MANY):
        try:
            told = answered(state, lookup, advise=False)
        except (ValueError, TypeError):
            continue
        whole = checked(state)
        kind = (model_of(whole).family, whole["trained"], whole["precision"])
        if told["peak"] and seen[kind] < MANY // 20:
            seen[kind] += 1
            found.append((whole, answered(state, lookup)))
        if len(found) == MANY:
            break
    assert len(found) == MANY
    return found


def test_the_questions_are_of_many_kinds(asked):
    for of, wanted in (
        (lambda state: model_of(state).family, set(FAMILIES)),
        (lambda state: state["optimizer"], set(OPTIMIZERS)),
        (lambda state: state["precision"], {"own", "bf16", "fp32", "autocast"}),
        (lambda state: (state["trained"], state["targets"]), set(map(tuple, PAIRS))),
        (lambda state: run_of(state).checkpointing, {"none", "block"}),
        (lambda state: run_of(state).micro_batches > 1, {True, False}),
    ):
        assert {of(state) for state, _ in asked} == wanted


PAIRS = [(trained, targets) for trained in ("lora", "qlora") for targets in ("all", "qv")]


def test_the_peak_is_that_of_the_simulated_step(asked):
    for state, told in asked:
        peak_compare.hold(told, step_of(state), state)


def test_the_pages_engine_answers_the_same(asked, folder, lookup):  # noqa: F811
    agree(folder, lookup, [*ADAPTED, *(state for state, _ in asked)])


def test_the_command_line_and_the_lines_of_python_answer_the_same(
    asked, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for state, told in asked[::6]:
        Path("config.json").write_text(json.dumps(state.get("config", {})))
        assert main([*shlex.split(told["command"])[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == told["total"], state
        known: dict = {}
        exec(compile(told["script"].replace("print(", "found = ("), "script", "exec"), known)
        assert known["found"].total() == told["total"], state


def test_presets_have_their_peak(lookup):  # noqa: F811
    """What a reader asks first: an 8B model with adapters, and over a base in NF4."""
    for trained, base in (("lora", None), ("qlora", "nf4")):
        state = checked({"trained": trained})
        told = answered(state, lookup)
        run = run_of(state)
        assert run.lora.base == base and len(run.lora.targets) == 7
        ledger = estimate(Model.preset("llama-3-8b"), None, run)
        assert told["total"] == ledger.total()
        assert f" + {'Q' * bool(base)}LoRA r=16 · " in told["heading"]
        assert (words.NF4_LEAVES_OUT in told["leaves_out"]) == bool(base)
    assert told["fits"] and told["total"] < answered({}, lookup)["total"]


def test_the_cheapest_changes_are_those_of_the_package(asked, lookup):  # noqa: F811
    seen = 0
    for state, _ in asked:
        state = state | {"optimizer": "adamw", "card": "RTX 4060 Laptop"}
        told = answered(state, lookup)
        if told["fits"] or not told["changes"]:
            continue
        try:
            wanted = cheapest_change(
                model_of(state), recipe_of(state), run_of(state), on=state["card"]
            )
        except CannotFit:
            continue
        names = {name for name, *_ in wanted}
        under = names | {state["precision"]}
        if names & set(PACKAGE_ONLY) or {"torch's loss in chunks", "autocast"} <= under:
            continue  # which the page has no moments for
        by = " micro-batches", " gradient accumulation steps"  # the page has transformers' name
        made = [[n.replace(*by), cost, text(size)] for n, cost, size, _ in wanted]
        assert told["changes"] == made, state
        seen += 1
        if seen == 3:
            break
    assert seen


def test_of_other_families_the_page_says_what_stays(lookup):  # noqa: F811
    """All but the peak; and the command line that it shows has that too."""
    chance = random.Random(5)
    carry = [family for family in proven("adapters") if adapters_resident.carries(family)]
    others = sorted(set(carry) - set(FAMILIES))
    seen = set()
    for number in range(40 * len(others)):
        family = others[number % len(others)]
        state = {"model": "config", "config": config(chance, (family,)), "tokens": 16}
        state |= {"optimizer": chance.choice(sorted(OPTIMIZERS)), "precision": "bf16"}
        state |= {"trained": chance.choice(("lora", "qlora")), "targets": "all"}
        if family in seen:
            continue
        try:
            told = answered(state, lookup)
            held = step_of(checked(state)).held_contents["between_steps"]
        except (ValueError, TypeError):
            continue
        tables = record_of(family).tables is not None  # else it has none of any step
        why = words.NO_ADAPTER_STEP if tables else words.NO_FAMILY_STEP
        assert told["why"] == why.format(family=family)
        rows = {row["term"]: row["bytes"] for row in told["rows"]}
        assert (rows["weights"], rows["optimizer"]) == (held["weights"], held.get("optimizer", 0))
        seen.add(family)
    assert seen == set(others)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({"tensor": 2}, words.ADAPTERS_ALONE),
        ({"data": 2, "zero": 3}, words.ADAPTERS_ALONE),
        ({"precision": "zero"}, words.NO_COPY),
        ({"model": "mixtral-8x7b"}, words.NO_ADAPTERS.format(family="mixtral")),
        ({"model": "gpt2", "tokens": 512}, words.NO_BASE.format(family="gpt2")),
        ({"rank": 0}, "LoRA rank: “0” is no whole number from 1 to 4,096"),
        ({"trained": "dora"}, "Trained parameters: “dora” is not one of the choices"),
    ],
)
def test_what_is_not_described_is_refused_in_one_line(state, line, lookup):  # noqa: F811
    told = outcome(json.dumps({"trained": "qlora"} | state), lookup)
    assert told == {"error": line}


@pytest.mark.parametrize("targets", ["all", "qv"])
@pytest.mark.parametrize(("rank", "tokens"), [(16, 2048), (32, 256)])
def test_adapters_that_do_not_fit_are_told_of_a_base_in_nf4(lookup, targets, rank, tokens):  # noqa: F811
    """The package's last resort for adapters, which the page called "No change helps"."""
    state = {"trained": "lora", "targets": targets, "rank": rank, "tokens": tokens}
    state["card"] = "RTX 3060"
    told = answered(state, lookup)
    assert not told["fits"] and not told["steps"]
    [[said, line, sets]] = told["over"]
    assert 'bnb_4bit_quant_type="nf4"' in line and sets["trained"] == "qlora"
    whole = checked(state | sets)
    run = run_of(whole)
    assert (run.checkpointing == "block") == (tokens == 2048) == ("gradient checkpointing" in said)
    # Only the base is another one: nothing is what peft's preparation would make of it.
    assert sets["precision"] == "bf16" == recipe_of(whole).weights
    assert (run.lora.rank, run.lora.base) == (rank, "nf4")
    peak = estimate(model_of(whole), recipe_of(whole), run).total()
    assert text(peak) in said and peak <= told["limit"]
    assert answered(state | sets, lookup)["fits"]


def test_who_serves_is_not_asked_about_adapters(lookup):  # noqa: F811
    """A choice made under "Train" stays in the form, out of sight."""
    for state in SERVED:
        plain = outcome(json.dumps(state), lookup)
        assert outcome(json.dumps(state | {"trained": "qlora"}), lookup) == plain


def test_all_weights_need_no_file_of_adapters(lookup):  # noqa: F811
    """Nobody who asks about all weights waits for tables of adapters."""
    names = []

    def noted(name, kind):
        names.append(name)
        return lookup(name, kind)

    answered({}, noted, advise=False)
    assert names == ["llama.bf16"]
    answered({}, noted)
    assert set(names) == {"llama.bf16", "torch.llama.bf16", "fsdp.llama.bf16"}
    names.clear()
    answered({"trained": "qlora"}, noted)  # whose layers beside the codes peft makes fp32
    assert names == [table_of("llama", "fp32", "nf4", "all")]


@pytest.mark.parametrize(
    ("state", "width"),
    [({"trained": "lora"}, 4), ({"trained": "qlora"}, 4), ({"trained": "qlora", "loop": "sft"}, 2)],
    ids=str,
)
def test_under_ddp_the_adapters_gradients_are_there_twice(lookup, state, width):  # noqa: F811
    """As tests/test_ddp_steps.py finds it on real ranks: in fp32 by peft, in bf16 by TRL on NF4."""
    alone, told = (answered(state | {"data": n}, lookup, advise=False) for n in (1, 8))
    whole = checked(state | {"data": 8})
    model, run = model_of(whole), run_of(whole)
    assert told["total"] == estimate(model, None, run).total()
    assert told["total"] == alone["total"] + width * run.lora.parameter_count(model)


def test_under_fsdp_what_stays_of_adapters_is_a_ranks_rows(lookup):  # noqa: F811
    """By hand: of 8 rows of an adapter's first matrix 64 ranks have one each, or none."""
    state = {"trained": "lora", "rank": 8, "targets": "qv", "data": 64, "zero": 3}
    told = answered({"model": "tinyllama-1.1b", "precision": "bf16"} | state, lookup)
    assert not told["peak"] and told["counts"] and told["why"] == words.NO_FSDP_ADAPTERS
    rows = {row["term"]: row["bytes"] for row in told["rows"]}
    # q: [2048, 2048], v: [256, 2048]; a is [8, 2048], b is [2048 or 256, 8]; 22 layers.
    values = 22 * (2048 + 32 * 8 + 2048 + 4 * 8)
    steps = 22 * 4  # AdamW counts them in fp32 beside each matrix of an adapter
    assert rows["gradients"] == 4 * values and rows["optimizer"] == 8 * values + 4 * steps
    whole = estimate(Model.preset("tinyllama-1.1b"), "bf16", Run(devices=Sharding(data=64, zero=3)))
    assert rows["weights"] == whole["weights"].derived + 4 * values


def test_a_base_in_nf4_is_told_of_a_config_in_fp16(lookup):  # noqa: F811
    """No control says fp16: what the button leads to is then of what peft's preparation makes."""
    config = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336}
    config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32}
    config |= {"vocab_size": 128256, "torch_dtype": "float16"}
    for trained in ("lora", "all"):
        state = {"model": "config", "config": config, "trained": trained, "tokens": 512}
        state["card"] = "RTX 3060"
        told = answered(state, lookup)
        said, _, sets = told["over"][-1]
        after = answered(state | sets, lookup)
        assert sets["trained"] == "qlora" and "precision" not in sets
        assert after["fits"] and after["total_text"] in said
        whole = checked(state | sets)
        assert after["total"] == estimate(model_of(whole), None, run_of(whole)).total()
