"""Files from strangers, whole and damaged: hypothesis draws what is changed in them."""

import json
import pickle

from hypothesis import strategies as st

from memlab.families import config_types
from memlab.files import adapter_config, deepspeed_config
from memlab.files.records import FOLDER
from memlab.files.records import read as read_record
from memlab.files.snapshots import read_snapshot
from memlab.files.timelines import read_timeline
from memlab.model import Model

FRAMES = [{"filename": "train.py", "line": 7, "name": "main"}]
BLOCK = {"address": 0, "size": 1024, "requested_size": 1000, "state": "active_allocated"}
SNAPSHOT = {
    "segments": [
        {
            "device": 0,
            "address": 0,
            "total_size": 2048,
            "segment_type": "small",
            "blocks": [BLOCK | {"frames": FRAMES}, BLOCK | {"state": "inactive"}],
        }
    ],
    "device_traces": [
        [
            {"action": "alloc", "addr": 0, "size": 1024, "stream": 0, "frames": FRAMES},
            {"action": "free_requested", "addr": 0, "size": 1024, "stream": 0, "frames": []},
            {"action": "free_completed", "addr": 0, "size": 1024, "stream": 0, "frames": []},
        ]
    ],
    "allocator_settings": {"expandable_segments": False},
    "external_annotations": [],
}
CONFIG = {
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "hidden_act": "silu",
}
TIMELINE = {
    "memlab_timeline": 1,
    "command": ["python", "train.py"],
    "started": "2026-01-01T00:00:00+00:00",
    "source": "process",
    "device": None,
    "total_bytes": 2**34,
    "samples": [[0.0, 1000, None], [0.1, 2000, None]],
    "events": [{"at": 0.1, "kind": "exit", "code": 0}],
    "peak_bytes": 2000,
    "exit": 0,
}
ADAPTER = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "r": 8,
    "target_modules": [r"q_proj", "v_proj"],
    "exclude_modules": r".*\.mlp\..*",
    "layers_to_transform": [0, 1, 2, 3],
    "layers_pattern": "layers",
    "rank_pattern": {"v_proj": 4, "^model.*k_proj": 2},
    "modules_to_save": ["lm_head"],
    "lora_dropout": 0.1,
}
DEEPSPEED = {
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": True},
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
}
ODD: list = [None, True, -1, 0, 1, 3, 2**70, -(2**63), 1e308, 0.5, "", "x" * 50, "\ud800", "\x00"]
ODD += [[], {}, [[]], {"a": {}}, "1 GiB", "NaN", [None]]
# Every family finds its own keys in it; the others are as if a config had been edited by hand.
SHAPE = CONFIG | {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 256, "ffn_dim": 128}
SHAPE |= {"word_embed_proj_dim": 128, "rotary_pct": 0.25, "head_dim": 32, "sliding_window": 64}
configs = st.sampled_from([*config_types(), "unknown"]).map(
    lambda name: SHAPE | {"model_type": name}
)


def _record():
    """The smallest record that the package brings."""
    return json.loads(min(FOLDER.glob("*.json"), key=lambda path: path.stat().st_size).read_text())


# What a file holds, and who reads it.
TARGETS = {
    "snapshot": (st.just(SNAPSHOT), read_snapshot),
    "config": (configs, Model.from_config),
    "timeline": (st.just(TIMELINE), read_timeline),
    "adapter": (
        st.just(ADAPTER),
        lambda path: adapter_config.read(path, Model.preset("tiny-llama")),
    ),
    "deepspeed": (st.just(DEEPSPEED), lambda path: deepspeed_config.read_file(path, 64)),
    "record": (st.builds(_record), read_record),
}


@st.composite
def changed(draw, value, odd=tuple(ODD)):
    """The same value with one place in it replaced, dropped or doubled."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 3:
        return draw(st.sampled_from(odd))
    how = draw(st.integers(0, 4))
    if isinstance(value, dict):
        key = draw(st.sampled_from([*value]))
        if how == 4:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: draw(changed(value[key], odd))}
    place = draw(st.integers(0, len(value) - 1))
    if how == 4:
        return value[:place] + value[place + 1 :] + 2 * value[place : place + 1]
    return [*value[:place], draw(changed(value[place], odd)), *value[place + 1 :]]


@st.composite
def files(draw, kind):
    """The bytes of a file of this kind with some values changed, some bytes overwritten or cut."""
    value = draw(TARGETS[kind][0])
    for _ in range(draw(st.integers(0, 3))):
        value = draw(changed(value))
    if kind == "snapshot":
        data = pickle.dumps(value, draw(st.sampled_from([2, 3, 4, 5])))
    else:
        data = json.dumps(value, indent=draw(st.sampled_from([None, 1]))).encode()
    for _ in range(draw(st.integers(0, 2))):
        first, last = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        last = min(last, first + 6)
        data = (
            data[:first] + draw(st.binary(max_size=6) | st.just(2 * data[first:last])) + data[last:]
        )
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 7)) == 7 else data
