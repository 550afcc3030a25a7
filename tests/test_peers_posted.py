"""What other calculators say of posted readings: the stored table follows from its rows."""

import json

import peers_posted
import pytest
from posted import stored, tables

STORED = json.loads(peers_posted.OUT.read_text(encoding="utf-8"))
ROWS = STORED["rows"]
AGAIN = "python benchmarks/peers_posted.py"


@pytest.fixture(scope="module")
def counted():
    return {a.reading.id: a for a in stored.stored() if a.counted}


def test_the_rows_are_those_that_the_page_counts(counted):
    assert {name: a.bytes for name, a in counted.items()} == {
        name: said["memlab"] for name, said in ROWS.items()
    }, AGAIN
    assert STORED["command"] == AGAIN and STORED["readings"] == len(ROWS)
    assert list(STORED["tools"]) == list(peers_posted.TOOLS)


def test_each_line_follows_from_the_rows(counted):
    real = {name: a.reading.bytes for name, a in counted.items()}
    for name, tool in STORED["tools"].items():
        for group, line in tool["groups"].items():
            some = {
                key: said
                for key, said in ROWS.items()
                if name in said and counted[key].reading.group == group
            }
            own = peers_posted.summed(peers_posted.errors(some, real, "memlab"))
            assert line == peers_posted.summed(peers_posted.errors(some, real, name)) | {
                "memlab": own
            }
        answers = sum(line["answers"] for line in tool["groups"].values())
        assert answers + sum(tool["no_answer"].values()) == len(ROWS)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("peft/lora--llama-3.2-3B-rank64/alloc", lambda P: 2 * P + 16 * 18350080),
        ("peft/full-finetuning--llama-3.2-3B-lr_0.00001/max", lambda P: 8 * P),
    ],
)
def test_the_rule_counts_what_a_recipe_trains(counted, name, wanted):
    row = peers_posted.asked(counted[name].reading)
    assert peers_posted.rule(row) == wanted(row.parameters) == ROWS[name]["bytes per parameter"]


def test_a_rank_of_fsdp_has_its_part(counted):
    name = "torchtitan/T3 8B FSDP128 b2/compile"
    row = peers_posted.asked(counted[name].reading)
    P, largest = row.parameters, 128256 * 4096
    assert (row.split, row.largest) == (128, largest)
    assert peers_posted.rule(row) == 16 * P / 128
    assert ROWS[name]["DeepSpeed"] == 18 * P // 128 + 4 * largest
    assert "accelerate" not in ROWS[name]
    hub = peers_posted.asked(counted["litgpt-hub/gemma-2b/full/4xA10G"].reading)
    assert peers_posted.rule(hub) == 8 * hub.parameters / 4
    assert "DeepSpeed" not in ROWS["litgpt-hub/gemma-2b/full/4xA10G"]  # all in 16 bits


def test_a_tool_without_an_option_has_no_answer_and_no_error():
    master = peers_posted.Asked(1000, 16, 1000, master=True, split=2, shards=4)
    assert peers_posted.rule(master) == (6 * 1000 + 12 * 1000 / 4) / 2
    with pytest.raises(ValueError, match="one device alone"):
        peers_posted.accelerate(master)
    with pytest.raises(ValueError, match="no option for adapters"):
        peers_posted.accelerate(peers_posted.Asked(1000, 16, 10))


def test_the_page_has_each_tool():
    assert all(f"| {name}" in tables.peers(None) for name in STORED["tools"])
