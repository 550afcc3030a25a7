"""The table of what programs do by themselves, and the same read from the installed libraries."""

import inspect
import json
from pathlib import Path

import pytest
from real_steps import quiet

from memlab import Model, Run, estimate
from memlab.cli import main
from memlab.run.loops import LOOPS, TRL
from memlab.run.program_defaults import PREPARED, of, taken, told
from memlab.run.recipe_choice import PRECISIONS, recipe_for
from memlab.step import Lora

# Of the libraries, about each other.
pytestmark = pytest.mark.filterwarnings("ignore")
QLORA = Lora(16, base="nf4")
LLAMA = Model.preset("llama-3-8b")


def configs():
    """The configuration of each trainer, made with nothing but a folder."""
    with quiet():
        import transformers
        import trl
        from trl.experimental import gkd
    homes = {"trainer": transformers, "gkd": gkd}
    names = {loop: one.config for loop, one in LOOPS.items() if one.config}
    return {loop: getattr(homes.get(loop, trl), name) for loop, name in names.items()}


def test_every_loop_has_its_row():
    assert set(configs()) == {loop for loop in LOOPS if LOOPS[loop].trainer}
    assert {loop for loop in LOOPS if LOOPS[loop].defaults.clip} == {*configs(), "nanogpt"}


@pytest.mark.parametrize("loop", ["trainer", *TRL])
def test_a_row_is_what_the_library_takes_by_itself(loop, tmp_path):
    config, own = configs()[loop](str(tmp_path), use_cpu=True), LOOPS[loop].defaults
    assert bool(config.bf16) == bool(own.autocast) and not config.fp16
    assert bool(config.gradient_checkpointing) == (own.checkpoint == "block")
    assert (config.max_grad_norm == 1.0) == own.clip
    assert (config.optim == "adamw_torch_fused") == (own.fused == ("cuda", "cpu"))
    assert config.eval_strategy == "no" and Run().eval_batch is None
    assert not getattr(config, "packing", False) and Run().texts == "full"
    assert not config.use_liger_kernel and not getattr(config, "activation_offloading", False)


def test_formats_are_those_of_the_libraries_own_lines():
    with quiet():
        import peft
        import trl
        from trl.experimental import gkd
        from trl.trainer import utils
    assert 'kwargs.get("dtype", "float32")' in inspect.getsource(utils.create_model_from_path)
    cast = "param.data = param.data.to(torch.bfloat16)"
    for name in ("SFT", "DPO", "GRPO", "Distillation"):
        source = Path(inspect.getfile(getattr(trl, f"{name}Trainer"))).read_text(encoding="utf-8")
        assert "create_model_from_path(model, **model_init_kwargs)" in source
        assert "if _is_quantized_model:" in source and cast in source
    assert issubclass(gkd.GKDTrainer, trl.SFTTrainer)
    prepared = inspect.signature(peft.prepare_model_for_kbit_training).parameters
    assert prepared["use_gradient_checkpointing"].default is True
    assert "to(torch.float32)" in inspect.getsource(peft.prepare_model_for_kbit_training)


def test_a_teacher_that_is_named_is_loaded_in_its_own_format():
    with quiet():
        import trl
        from trl.experimental import gkd
    source = inspect.getsource(trl.DistillationTrainer.__init__)
    assert 'dtype = teacher_model_init_kwargs.get("dtype")' in source
    assert "AutoModelForCausalLM.from_pretrained(teacher_model" in inspect.getsource(gkd.GKDTrainer)


@pytest.mark.parametrize(
    ("said", "precision", "checkpoint", "adapters"),
    [
        ({}, "bf16", "none", None),
        ({"loop": "trainer"}, "bf16", "none", None),
        ({"loop": "sft"}, "autocast-bf16", "block", None),
        ({"loop": "dpo"}, "autocast-bf16", "block", None),
        ({"loop": "gkd"}, "autocast-bf16", "block", None),
        ({"loop": "nanogpt"}, "autocast-bf16", "none", None),
        ({"loop": "nanogpt", "backend": "cpu"}, "fp32", "none", None),
        ({"lora": QLORA}, "fp32", "block", "fp32"),
        ({"lora": QLORA, "loop": "trainer"}, "fp32", "block", "fp32"),
        ({"lora": QLORA, "loop": "sft"}, "autocast-bf16", "block", "bf16"),
        ({"lora": QLORA, "implementation": "memlab"}, "bf16", "none", "bf16"),
        ({"lora": Lora(16), "loop": "sft"}, "autocast-bf16", "block", "fp32"),
    ],
)
def test_what_is_not_said_is_the_programs_own(said, precision, checkpoint, adapters):
    run = Run(tokens=64, **said)
    recipe = recipe_for(LLAMA, None, run)
    assert recipe == PRECISIONS[precision] and run.checkpointing == checkpoint
    assert adapters is None or run.adapters_in(recipe.weights) == adapters


def test_what_is_said_wins_and_is_kept_apart_from_what_is_not():
    own, said = Run(tokens=64, loop="sft"), Run(tokens=64, loop="sft", checkpoint="none")
    assert (own.checkpoint, own.checkpointing) == (None, "block")
    assert (said.checkpoint, said.checkpointing) == ("none", "none")
    assert own != said and "checkpoint" not in own.said() and said.said()["checkpoint"] == "none"
    for run in (own, said):
        assert Run.from_dict(json.loads(run.to_json())) == run
    assert own.replace(loop="plain").checkpointing == "none"
    assert said.replace(batch=2).checkpointing == "none"
    assert recipe_for(LLAMA, "fp32", own) == PRECISIONS["fp32"]
    wide = Run(tokens=64, loop="sft", lora=Lora(16, base="nf4", dtype="fp32"))
    assert wide.adapters_in("fp32") == "fp32"


def test_the_line_names_the_program_and_only_what_it_took():
    run = Run(tokens=64, loop="sft")
    recipe = recipe_for(LLAMA, None, run)
    assert told(run, recipe, chosen=False) == (
        "SFTTrainer's defaults: fp32 weights under bf16 autocast, gradient checkpointing, clipping "
        "at 1.0, fused AdamW, logits in tiles"
    )
    every = run.replace(checkpoint="none", optimizer_impl="foreach", clip=True, loss="fused_head")
    assert taken(every, recipe, chosen=True) == [] and told(every, recipe, chosen=True) == ""
    assert taken(Run(tokens=64), recipe, chosen=False) == []  # a loop that is written by hand
    qlora = Run(tokens=64, lora=QLORA)
    line = told(qlora, recipe_for(LLAMA, None, qlora), chosen=False)
    assert line == f"{PREPARED}'s defaults: fp32 weights, gradient checkpointing"
    assert of(qlora).checkpoint == "block"


def test_the_shell_takes_the_same_and_says_so(capsys):
    words = "estimate llama-3-8b --tokens 64 --loop sft"
    assert main([*words.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["peak"]["bytes"] == estimate(LLAMA, None, Run(tokens=64, loop="sft")).total()
    assert found["recipe"]["autocast"] == "bf16" and found["run"]["checkpoint"] is None
    assert found["defaults"]["checkpoint"] == "block" and found["defaults"]["clip"] is True
    assert main(words.split()) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("SFTTrainer's defaults: fp32 weights under bf16 autocast")
    assert line.endswith("; --precision, --checkpoint, --optimizer-impl change them")
    said = f"{words} --precision bf16 --checkpoint none"
    assert main([*said.split(), "--json"]) == 0
    assert "precision" not in json.loads(capsys.readouterr().out)["defaults"]


def test_a_preset_has_the_format_of_its_published_config(capsys):
    assert recipe_for(LLAMA) == PRECISIONS["bf16"]
    for name, precision in {"gpt2": "fp32", "pythia-160m": "fp16", "tiny-llama": "fp32"}.items():
        assert recipe_for(Model.preset(name)) == PRECISIONS[precision]
    assert recipe_for(LLAMA.replace(layers=2)) == PRECISIONS["bf16"]
    assert recipe_for(LLAMA.replace(config={"dtype": "float32"})) == PRECISIONS["fp32"]
    assert main("estimate llama-3-8b --phase decode --tokens 8192".split()) == 0
    assert "llama-3-8b · bf16 · decode" in capsys.readouterr().out


def test_a_named_teacher_is_in_the_format_of_its_config():
    rows = {row.term: row.derived for row in estimate(LLAMA, None, Run(tokens=64, loop="gkd")).rows}
    assert rows["weights"] == 4 * LLAMA.parameter_count
    assert rows["reference"] - 2 * LLAMA.parameter_count < 1024  # and its rotary frequencies
