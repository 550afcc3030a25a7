"""A chapter of Part II shows the library's own lines in a cell that is not folded and that runs."""

import io
import json
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# What somebody who has the library would type, by the label of its chapter.
LINES = {
    "trainers": ["TrainingArguments(", "Trainer(", "SFTConfig(", "SFTTrainer("],
    "small_optimizers": ["AdamW8bit(", "Muon("],
    "quantization": ["BitsAndBytesConfig(", "quantize_("],
    "checkpointing": ["activation_checkpointing_enable("],
    "mixed_precision": ["torch.autocast("],
    "offloading": ["save_on_cpu("],
    "fp8": ["convert_to_float8_training(", "Float8LinearConfig.from_recipe_name("],
    "lora": ["LoraConfig(", "get_peft_model("],
    "pruning": ["prune."],
    "sharding": ["fully_shard(", "DistributedDataParallel(", "MixedPrecisionPolicy("],
    "divide_model": ["parallelize_module(", "ColwiseParallel(", "RowwiseParallel("],
}


def visible(path):
    """The code of the cells that are not folded, without comments and strings."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", ())
        if cell["cell_type"] == "code" and not any(tag.startswith("hide-") for tag in tags):
            found.append(bare("".join(cell["source"])))
    return "\n".join(found)


def bare(code):
    kinds = (tokenize.COMMENT, tokenize.STRING)
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return "".join(token.string for token in tokens if token.type not in kinds)


@pytest.mark.parametrize("label", LINES)
def test_a_chapter_shows_the_lines_of_its_library(label):
    (path,) = (ROOT / "notebooks").glob(f"[0-9][0-9]_{label}.ipynb")
    code = visible(path)
    assert [line for line in LINES[label] if line not in code] == []


def test_prose_and_folded_cells_do_not_count(tmp_path):
    cell = {"cell_type": "code", "source": '"f("  # f(\ng(1)', "metadata": {}}
    folded = {"cell_type": "code", "source": "h(1)", "metadata": {"tags": ["hide-input"]}}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [cell, folded]}), encoding="utf-8")
    assert "g(" in visible(path) and "f(" not in visible(path) and "h(" not in visible(path)
