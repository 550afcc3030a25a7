"""Fits, tight or does not fit: runs that ended out of memory, runs that did not, one function."""

import json
import random
import re
import shlex
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memlab import GiB, Model, Run
from memlab.cli import main
from memlab.devices import device, devices
from memlab.explain import advice as advised
from memlab.explain.changes import Found
from memlab.fit import advice, largest_batch
from memlab.page.answer_rows import SIGNS, summed
from memlab.terms.context import CONTEXT, NCCL
from memlab.terms.workspaces import CUBLAS, LARGE, SMALL
from memlab.verdict import BAND, DOES_NOT_FIT, FITS, MEDIAN, RUNS, TIGHT, percent, room_for, room_on

sys.path.insert(0, str(Path(__file__).parent.parent / "research" / "posted"))
import ask
from posted import readings

QWEN = Model.preset("qwen3-0.6b")
# Of LLaMA-Factory's ds_z2_config.json and ds_z3_config.json what says something about memory.
AUTO = {"bf16": {"enabled": "auto"}, "gradient_clipping": "auto"}
AUTO |= {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
ZERO = {
    2: {"stage": 2, "overlap_comm": False, "contiguous_gradients": True, "reduce_scatter": True}
    | {"allgather_bucket_size": 5e8, "reduce_bucket_size": 5e8},
    3: {"stage": 3, "overlap_comm": False, "contiguous_gradients": True, "sub_group_size": 1e9}
    | {"reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto"}
    | {"stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9}
    | {"stage3_max_reuse_distance": 1e9},
}
FULL = "--recipe zero --batch 1 --checkpoint block --loop trainer"
# The thread, the question in the words of `memlab fit`, its DeepSpeed file, GiB that it names.
OUT_OF_MEMORY = (
    ("LLaMA-Factory#8642", f"qwen3-32b --on H200 --ranks 8 --tokens 1024 {FULL}", 2, 137.7),
    ("LLaMA-Factory#6999", f"qwen2.5-32b --on A100-80GB --ranks 7 --tokens 1024 {FULL}", 3, 75.5),
    ("LLaMA-Factory#5977", f"llama-3-8b --on RTX3090 --ranks 8 --tokens 1024 {FULL}", 3, 20.6),
    ("LLaMA-Factory#6752", f"qwen2.5-3b --on RTX3090 --ranks 4 --tokens 512 {FULL}", 2, 20.2),
    (
        "trl#3168",
        "qwen2.5-0.5b --on A100-80GB --precision fp32 --loop dpo --tokens 1024 --batch 8 "
        "--checkpoint none",
        None,
        72.3,
    ),
)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("thread", "words", "stage", "held"), OUT_OF_MEMORY)
def test_what_ended_out_of_memory_is_not_told_to_fit(
    thread, words, stage, held, tmp_path, capsys, monkeypatch
):
    """The five questions that were answered with "it fits as it is"; nothing to change is asked."""
    monkeypatch.setattr(advised._Search, "within", lambda *_: Found([], 0))
    if stage:
        (tmp_path / "ds.json").write_text(json.dumps(AUTO | {"zero_optimization": ZERO[stage]}))
        words += f" --deepspeed-config {tmp_path / 'ds.json'}"
    assert main(["fit", *shlex.split(words)]) == 3
    told = capsys.readouterr().out
    assert told.startswith("tight on ")
    assert float(re.search(r"([\d.]+) GiB allocated", told)[1]) == pytest.approx(held, abs=0.1)
    assert ("NCCL" in told) == bool(stage)
    assert main(["fit", *shlex.split(words), "--spare", "0"]) == 0  # what it said before


def test_the_band_is_what_posted_runs_show():
    """Each row again, from the readings and what memlab derives of them."""
    stored = readings.loaded(ask.BAND)
    found = ask.band_rows()
    assert stored == {"band": ask.band(found), "rows": found}
    told = {"runs": RUNS, "median": MEDIAN, "three_in_four": BAND}
    assert stored["band"] == told


def card_of(name):
    """The card that a reading names, or None."""
    name = re.sub(r"^\d+x ?|DGX | torch.*| DDP|, 8 ranks.*", "", name)
    try:
        return device(name)
    except ValueError:
        return None


def test_what_ran_is_not_told_that_it_does_not_fit():
    """Readings of training on a card that is known, whose tensors memlab derives."""
    seen = Counter()
    for reading in (*readings.read(), *readings.read(readings.UNSEEN)):
        card = card_of(reading.device)
        if card is None or reading.kind not in ("train-1gpu", "fsdp/ddp"):
            continue
        if reading.group == "several GPUs" and "the sum" in reading.counter:
            continue
        try:
            said = ask.described(reading)
            if said.figure not in ask.PEAKS or said.floor() > reading.bytes:  # its own recipe's
                continue
            held = said if said.figure == "step" else replace(said, figure="peak")
            size = held.bytes()
        except ValueError:
            continue
        room = room_on(card, ranks=1 + (reading.group == "several GPUs"))
        seen[room.verdict(size).word] += 1
    assert seen[DOES_NOT_FIT] == 0 and seen[FITS] > 4 * seen[TIGHT] > 0, seen


def test_a_card_has_a_capability_and_its_workspaces():
    for card in devices():
        assert card.capability is None or card.capability in (6, *CUBLAS)
    sizes = {"RTX 4090": SMALL, "H100 80GB": LARGE, "MI300X": LARGE, "24 GiB": LARGE}
    for name, size in sizes.items():
        assert room_on(name).beside == CONTEXT + 2 * size
        assert room_on(name, threads=1).beside == CONTEXT + size
    assert room_on("H100", ranks=2).nccl == NCCL and room_on("H100").nccl == 0


def test_the_edges_of_each_verdict():
    room = room_on("H100 80GB", ranks=8)
    assert room.verdict(room.surely).word == FITS and room.verdict(room.surely + 1).word == TIGHT
    assert room.verdict(room.at_most).word == TIGHT
    assert room.verdict(room.at_most + 1).word == DOES_NOT_FIT
    # What a replay reserves decides where it is more than the band; less takes nothing off it.
    small = room.surely // 2
    assert room.verdict(small, room.of_allocator).word == FITS
    assert room.verdict(small, room.of_allocator + 1).word == TIGHT
    assert room.verdict(room.surely + 1, small).word == TIGHT
    told = str(room.verdict(small, room.of_allocator + 1).told())
    assert f"{percent(BAND)}% that {RUNS} posted runs show" in told and "by the replay" in told
    plain = room_on("H100 80GB", spare=GiB)
    assert plain.surely == plain.at_most == device("H100 80GB").limit - GiB


def test_every_door_says_the_same(capsys):
    """Shell, Python and the sums that the page makes: one verdict, random questions."""
    chance, seen = random.Random(7), Counter()
    while len(seen) < 3 or sum(seen.values()) < 8:
        run = Run(batch=chance.choice((1, 4, 16)), tokens=chance.choice((256, 1024, 2048)))
        card = chance.choice(("RTX 3060", "RTX 4090", "GTX 1080 Ti", "A100 40GB", "RTX 4080"))
        room = room_for(run, card)
        words = f"fit qwen3-0.6b --precision bf16 --batch {run.batch} --tokens {run.tokens} --json"
        status = main([*words.split(), "--on", card])
        told = json.loads(capsys.readouterr().out)
        found = advice(QWEN, "bf16", run, on=card)
        assert told["verdict"] == found.now.word and told["then"] == found.then.word
        assert status == {FITS: 0, DOES_NOT_FIT: 1, TIGHT: 3}[found.now.word]
        assert told["fits"] == (status == 0) and (not told["changes"]) == told["fits"]
        page = {"limit": room.at_most, "why": ""}
        summed(page, {"weights": (found.now.peak, "")}, room)
        assert page["state"] == SIGNS[room.verdict(found.now.peak).word]
        if page["state"] != SIGNS[found.now.word]:  # a replay, which the page has not
            assert (page["state"], found.now.word) == ("yes", TIGHT)
            seen["page differs"] += 1
        seen[found.now.word] += 1
    assert seen["page differs"] <= 1


def test_the_largest_batch_leaves_the_band():
    run = Run(tokens=1024)
    careful = largest_batch(QWEN, "bf16", run, on="RTX 4090")
    bold = largest_batch(QWEN, "bf16", run, on="RTX 4090", spare=0)
    assert careful.verdict.fits and careful.value < bold.value
    room = room_for(run, "RTX 4090")
    assert room.verdict(bold.peak).word != FITS
