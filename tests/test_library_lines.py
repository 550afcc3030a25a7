"""A chapter of Part II shows the library's own lines: in a cell that runs, or as a listing.

A listing stands where the line needs a GPU, or more of them than one machine has.
"""

import io
import json
import re
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
    "step_in_backward": ["register_post_accumulate_grad_hook(", "bnb.optim.AdamW8bit("],
}
LISTED = {
    "accumulation": ["set_requires_gradient_sync(", "fully_shard("],
    "offloading": ["CPUOffloadOptimizer(", "activation_offloading=True", '"offload_optimizer"'],
    "fp8": ["te.autocast(", "enable_fsdp_float8_all_gather=True"],
    "sharding": ["zero_optimization"],
    "divide_model": ["Schedule1F1B("],
    "small_optimizers": ["galore_torch.GaLoreAdamW("],
    "divide_text": ["ParallelismConfig(cp_size="],
    "choosing": ["CPUOffloadOptimizer(", "BitsAndBytesConfig(", "get_peft_model("],
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


@pytest.mark.parametrize("label", LISTED)
def test_a_chapter_lists_what_needs_a_gpu(label):
    (path,) = (ROOT / "notebooks").glob(f"[0-9][0-9]_{label}.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    listings = "\n".join(re.findall(r"^```\w+\n(.*?)^```", prose, re.M | re.S))
    assert [line for line in LISTED[label] if line not in listings] == []


def test_no_chapter_of_part_two_is_without():
    labels = {path.stem[3:] for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")
              if 14 <= int(path.stem[:2]) <= 28}  # fmt: skip
    assert labels == LINES.keys() | LISTED.keys()


def test_prose_and_folded_cells_do_not_count(tmp_path):
    cell = {"cell_type": "code", "source": '"f("  # f(\ng(1)', "metadata": {}}
    folded = {"cell_type": "code", "source": "h(1)", "metadata": {"tags": ["hide-input"]}}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [cell, folded]}), encoding="utf-8")
    assert "g(" in visible(path) and "f(" not in visible(path) and "h(" not in visible(path)
