"""flash_attention_2, against transformers' own code around what stands in for the package."""

import inspect
import json
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
import real_steps
import real_trainers
from flash2 import standing_in
from real_steps import Question

from memlab import Model, Run, Sharding
from memlab.adapters import Ia3
from memlab.cli import main
from memlab.lab import trainers
from memlab.lab.subject import subject
from memlab.step import Lora, simulate, supported

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, about each other

FLASH_2 = "flash_attention_2"
SMALL = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 101}
SMALL |= {"num_key_value_heads": 2, "intermediate_size": 176, "max_position_embeddings": 512}
PACKED = {"texts": "packed"}
LLAMA = Model.preset("llama-3-8b")
BATCH_OF = real_steps.batch_of


def question(family, precision="bf16", *, config=None, **said):
    run = Run.cpu(**{"batch": 3, "tokens": 32, "optimizer_impl": "forloop"} | said)
    return Question({"model_type": family} | SMALL | (config or {}), precision, run)


ASKED = (
    question("llama"),
    question("llama", batch=1),
    question("llama", **PACKED),
    question("llama", batch=2, checkpoint="block", micro_batches=2),
    question("qwen3", checkpoint="block", config={"head_dim": 16}, **PACKED),
    question("qwen3", config={"head_dim": 8, "num_key_value_heads": 4}, loop="keeps-outputs"),
    question("mistral", "autocast-bf16", config={"sliding_window": 8}, loop="keeps-outputs"),
    question("llama", loop="keeps-outputs", **PACKED),
    question("mistral", config={"sliding_window": 8}, batch=2),
    question("mistral", config={"sliding_window": 8}, **PACKED),
    question("llama", "autocast-bf16", batch=2, **PACKED),
    question("qwen3", "autocast-bf16", batch=2, config={"head_dim": 16}),
    question("qwen2", "fp16", batch=4, tokens=16, lora=Lora(4), **PACKED),
)


@contextmanager
def stood_in(where, name):
    """Every model that this function makes has the stand-in's attention."""
    own = getattr(where, name)
    with ExitStack() as stack:

        def made(*arguments, **named):
            module = own(*arguments, **named)
            stack.enter_context(standing_in(module))
            return module

        stack.enter_context(patch.object(where, name, made))
        yield


def batch_of(run, vocab):
    """As many texts in a packed row as the run says, each of its `tokens`."""
    batch = BATCH_OF(run, vocab)
    if "position_ids" in batch:
        batch["position_ids"] = batch["position_ids"].new_tensor(range(run.length))[None]
        batch["position_ids"] %= run.tokens
    return batch


@pytest.mark.sample(5)
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_real_step_around_the_stand_in_takes_what_is_derived(asked):
    with stood_in(real_steps, "build"), patch.object(real_steps, "batch_of", batch_of):
        real = real_steps.real_step(asked)
    run = asked.run.replace(backend="cuda", attention=FLASH_2)
    found = simulate(asked.model, asked.recipe, run)
    assert found.peak.bytes == real.peak.bytes
    assert found.peak.first_step_bytes == real.first_peak.bytes
    for moment, held in found.held.items():
        assert real.held[moment] == held, moment


@pytest.mark.parametrize(
    "said",
    [
        {"loop": "trainer"} | PACKED,
        {"loop": "trainer", "checkpoint": "block", "micro_batches": 2},
        {"loop": "sft", "checkpoint": "none"} | PACKED,
        {"loop": "sft", "checkpoint": "block"} | PACKED,
    ],
    ids=str,
)
def test_a_trainer_around_the_stand_in_takes_what_is_derived(tmp_path, monkeypatch, said):
    """On this machine's graph: a trainer has the next batch there too."""
    run = Run.cpu(batch=3, tokens=32, **said)
    with stood_in(trainers, "decoder"):
        measured = real_trainers.trained("bf16", run, tmp_path)
    monkeypatch.setattr(supported, "check_flash2", lambda recipe, run: None)
    config = trainers.CONFIG | {"attn_implementation": FLASH_2}
    assert measured == real_trainers.derived("bf16", run, config)


def test_packed_rows_have_no_mask_and_keep_where_texts_begin():
    def step(attention, **more):
        run = Run(batch=4, tokens=2048, attention=attention, **more)
        return simulate(LLAMA, "bf16", run)

    masked, told, full = step("sdpa", **PACKED), step(FLASH_2, **PACKED), step(FLASH_2)
    made = [r for r, change, _ in told.log.events if r and r.dtype == "bool" and change > 0]
    assert max(record.bytes for record in made) == 4 * 2048
    # A mask of numbers in each layer, and one of yes and no; heads that are repeated for it.
    assert masked.peak.bytes - told.peak.bytes > LLAMA.layers * 2 * (4 * 2048) ** 2
    starts, longest = 4 * (4 + 1), 4
    kept = told.held["after_forward"] - full.held["after_forward"]
    angles = 2 * 2 * LLAMA.head_dim * (4 - 1) * 2048  # of a row that is four times as long
    batch = 8 * 2 * 4 * 2048  # labels and positions
    batch += 8  # the labels of one row are a part of a longer one
    assert kept == LLAMA.layers * (starts + longest) + angles + batch


@pytest.mark.parametrize("more", [{}, {"checkpoint": "block"}, {"micro_batches": 3}], ids=str)
def test_layers_that_are_counted_are_like_those_that_are_simulated(more):
    model = question("llama", config={"num_hidden_layers": 9}).model
    run = Run(batch=3, tokens=32, attention=FLASH_2, **PACKED, **more)
    short, whole = simulate(model, "bf16", run), simulate(model, "bf16", run, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak and short.held_contents == whole.held_contents


def test_the_sources_say_so():
    from transformers import masking_utils
    from transformers import modeling_flash_attention_utils as theirs

    found = inspect.getsource(theirs.prepare_fa_kwargs_from_position_ids)
    assert "max_length_q = cu_seq_lens_q.diff().max()" in found
    assert "_is_packed_sequence(position_ids, batch_size)" in inspect.getsource(
        theirs._flash_attention_forward
    )
    assert "return attention_mask" in inspect.getsource(masking_utils.flash_attention_mask)


def test_the_shell_and_a_config_answer_with_the_peak(tmp_path, capsys):
    asked = ASKED[2]
    for config, flags in ((asked.config, ["--attention", FLASH_2]), ({"k": 1}, [])):
        told = asked.config | {"attn_implementation": FLASH_2} if "k" in config else config
        path = tmp_path / "config.json"
        path.write_text(json.dumps(told), encoding="utf-8")
        command = ["estimate", str(path), "--batch", "3", "--tokens", "32", "--precision", "bf16"]
        assert main([*command, "--texts", "packed", *flags, "--json"]) == 0
        peak = json.loads(capsys.readouterr().out)["peak"]["bytes"]
        run = Run(batch=3, tokens=32, attention=FLASH_2, **PACKED)
        assert peak == simulate(asked.model, "bf16", run).peak.bytes


@pytest.mark.parametrize(
    ("said", "precision", "message"),
    [
        ({}, "fp32", "in fp32: the package takes bf16 and fp16"),
        ({"texts": "padded"}, "bf16", "texts='padded' is not described; full and packed are"),
        ({"loop": "sft"}, "bf16", "loop='sft' is not described; plain"),
        ({"loop": "dpo"}, "bf16", "loop='dpo' is not described; plain"),
        ({"adapter": Ia3()}, "bf16", r"\(IA\)³ .* is not described"),
        ({"devices": Sharding(tensor=2)}, "bf16", "is not described for devices=tensor 2"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, precision, message):
    run = Run(batch=2, tokens=32, attention=FLASH_2, **said)
    with pytest.raises(ValueError, match=message):
        simulate(question("llama").model, precision, run)


def test_a_cpu_a_call_and_other_families_are_refused_by_name():
    with pytest.raises(ValueError, match="attention='flash_attention_2' is CUDA's"):
        Run.cpu(tokens=8, attention=FLASH_2)
    llama = question("llama", config={"attn_implementation": FLASH_2}).model
    with pytest.raises(ValueError, match="attention='flash_attention_2' is CUDA's"):
        simulate(llama, "bf16", Run.cpu(tokens=8))
    with pytest.raises(ValueError, match="attention='flash_attention_2' is not described"):
        simulate(Model.preset("gpt2"), "bf16", Run(tokens=8, attention=FLASH_2))
    with pytest.raises(ValueError, match="needs the package flash-attn and CUDA"):
        subject(llama, "bf16", Run(tokens=8, attention=FLASH_2))
