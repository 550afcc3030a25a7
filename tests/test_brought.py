"""Words of other programs: each is refused with the word that is meant, and that one is taken."""

import argparse

import pytest

from memlab.cli import COMMANDS, main, parser
from memlab.cli.brought import FLAGS, NEAREST, SAME, VALUES, count, flag_meant, taken, value_meant
from memlab.recipe import recipes
from memlab.run.recipe_choice import PRECISIONS
from memlab.terms.optimizer import OPTIMIZERS

TAKEN = {name: parser(name).of._option_string_actions for name in COMMANDS}
E = "estimate gpt2"


def refused(capsys, words):
    try:
        status = main(words if isinstance(words, list) else words.split())
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    assert status == 2 and out == "" and err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (f"{E} --batch-size 4", "did you mean --batch?"),
        (
            f"{E} --batch-size 4 --seq-len 2k --dtype bf16",
            "did you mean --batch, --tokens, --precision?",
        ),
        (f"{E} --seq-len 2048", "did you mean --tokens?"),
        (f"{E} --tokens 64 --loop ppo", "say `memlab rehearse -- python train.py`, which runs"),
        ("serve gpt2 --on H100 --ctx-size 2048", "did you mean --max-model-len?"),
        (f"{E} --dtype bf16", "did you mean --precision?"),
        (f"{E} --load-in-4bit", "did you mean --lora-rank R --lora-base nf4?"),
        (f"{E} --gradient_checkpointing", "did you mean --checkpoint?"),
        (f"{E} --tensor-parallel-size 2", "did you mean --tensor-parallel?"),
        (f"{E} --device H100", "has --on, memlab estimate does not"),
        (f"{E} --precision nf4", "say --lora-rank R --lora-base nf4"),
        (f"{E} --precision int8", "say `memlab serve CONFIG --on CARD --quantization gptq-int8`"),
        (f"{E} --precision mixed", "say --precision autocast-bf16"),
        (f"{E} --recipe QLoRA", "say --lora-rank R --lora-base nf4"),
        (f"{E} --optimizer adam", "say --optimizer adamw"),
        (f"{E} --lora-targets all-linear", "say --lora-targets q,k,v,out,gate,up,down"),
        (f"{E} --tokens 2k", "not a whole number; say 2000 or 2048"),
        (f"{E} --tokens 1e3", "say 1000;"),
        (["fit", "gpt2", "--tokens", "64", "--on", "M2 Max"], "a size stands for any other"),
        (["fit", "gpt2", "--on", "RTX 3080 12GB", "--batch", "1"], "say --on '12 GB'"),
        ("fit gpt2 --tokens 64 --on MI355X", "has no reading of its bytes; say --on '288 GB'"),
        (f"{E} --optimizer ademamix_8bit", "not described; --optimizer amsgrad keeps as many"),
        (f"{E} --on H100 --gpu-memory-utilization 0.9", "ask `memlab serve gpt2 --on H100 --gpu"),
        ("fit gpt2 --tokens 64 --on 2x4090", "say --on '4090' --cards 2, or --fsdp 2"),
        (f"{E} --tokens 64 --posted 3,5GB", "did you mean 3.5GB?"),
        (f"{E} --on H100 --tokens 128", "ask `memlab fit gpt2 --on H100 --tokens 128`"),
    ],
    ids=str,
)
def test_what_people_bring(capsys, words, meant):
    assert meant in refused(capsys, words)


def test_thousands_may_have_commas(capsys):
    assert main([*E.split(), "--tokens", "1,024"]) == 0
    with_commas = capsys.readouterr().out
    assert main([*E.split(), "--tokens", "1024"]) == 0
    assert capsys.readouterr().out == with_commas
    for words in ("1,02", "1.5", "", "x", "0x10"):
        with pytest.raises(argparse.ArgumentTypeError, match="not a whole number"):
            count(words)


def test_every_flag_of_the_table_leads_to_one_that_a_command_has():
    known = {flag for flags in TAKEN.values() for flag in flags}
    for here, theirs in FLAGS.items():
        assert {each.split()[0] for each in here} <= known
        for word in theirs.split():
            assert flag_meant(f"--{word}") == here, "one meaning each"
            assert f"--{word}" not in TAKEN["estimate"]


def test_no_value_of_the_table_is_one_that_is_known():
    known = {"precision": PRECISIONS, "recipe": recipes(), "optimizer": OPTIMIZERS}
    for action in [a for flags in TAKEN.values() for a in flags.values() if a.choices]:
        known.setdefault(action.dest, action.choices)
    for dest in VALUES:
        for value in known.get(dest, ()):
            for spelled in (value, value.upper(), value.replace("_", "-")):
                assert value_meant("--x", dest, spelled) == ""


def test_what_is_meant_is_taken(capsys):
    """Each optimizer, precision and recipe that the table says to type is one."""
    for dest in ("precision", "recipe", "optimizer"):
        for value in VALUES[dest]:
            meant = value_meant(f"--{dest}", dest, value).replace(" R ", " 8 ")
            if meant[0] != "`" and "fsdp" not in meant:
                words = meant.replace("--lora-rank R", "--lora-rank 8").split()
                words += ["--precision", "bf16"] * ("--lora-base" in words)
                assert main(["estimate", "llama-3-8b", "--tokens", "8", *words]) == 0, words
    capsys.readouterr()


def said(capsys, words):
    assert main(words) == 0, words
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        (["--precision", "bfloat16"], ["--precision", "bf16"]),
        (["--precision=BF16"], ["--precision", "bf16"]),
        (["--optimizer", "AdamW"], ["--optimizer", "adamw"]),
        (["--optimizer", "adamw_torch"], ["--optimizer", "adamw"]),
        (
            ["--optimizer", "adamw_torch_fused", "--tokens", "1,024"],
            ["--optimizer", "adamw", "--optimizer-impl", "fused", "--tokens", "1024"],
        ),
        (
            ["--optimizer", "adamw_torch", "--loop", "trainer", "--tokens", "8"],
            ["--optimizer-impl", "foreach", "--loop", "trainer", "--tokens", "8"],
        ),
        (["--optimizer", "paged_adamw_8bit"], ["--optimizer", "bnb_paged_adamw8bit"]),
        (
            ["--lora-rank", "4", "--tokens", "8", "--lora-targets", "q_proj,v"],
            ["--lora-rank", "4", "--tokens", "8", "--lora-targets", "q,v"],
        ),
        (["--posted", "24gib", "--tokens", "8"], ["--posted", "24GiB", "--tokens", "8"]),
    ],
    ids=str,
)
def test_another_spelling_is_taken(capsys, typed, known):
    ask = ["estimate", "llama-3-8b"]
    typed, known = (said(capsys, [*ask, *words]) for words in (typed, known))
    assert typed.replace("24gib", "24GiB") == known


@pytest.mark.parametrize("size", ["24 gb", "24G", "24gb", "24 GB"])
def test_the_size_on_a_box(capsys, size):
    ask = ["fit", "gpt2", "--tokens", "64", "--on"]
    assert said(capsys, [*ask, size]).split("(")[1:] == said(capsys, [*ask, "24GB"]).split("(")[1:]
    assert taken("seen", "13G") == "13G", "of a figure, which may be either's"


def test_what_two_options_say_is_refused(capsys):
    words = f"{E} --optimizer adamw_torch_fused --optimizer-impl foreach"
    assert "unknown optimizer 'adamw_torch_fused'" in refused(capsys, words)


def test_no_spelling_that_is_taken_is_a_word_of_its_own_or_pointed_elsewhere():
    known = {"precision": PRECISIONS, "recipe": recipes(), "optimizer": OPTIMIZERS}
    for action in [a for flags in TAKEN.values() for a in flags.values() if a.choices]:
        known.setdefault(action.dest, action.choices)
    for dest, words in SAME.items():
        assert not {*words} & {*known.get(dest, ())} and not {*words} & {*VALUES.get(dest, {})}


def test_every_optimizer_of_transformers_is_taken_or_refused_by_name(capsys):
    training_args = pytest.importorskip("transformers.training_args")
    for each in training_args.OptimizerNames:
        words = ["estimate", "gpt2", "--optimizer", each.value]
        here = taken("optimizer", each.value).split()[0]
        if here in OPTIMIZERS:
            assert "AdamW" not in each.value and said(capsys, words)
        else:
            assert f"'{each.value}' is not" in refused(capsys, words), each.value
    assert {*NEAREST.values()} - {"galore/128"} <= {*OPTIMIZERS}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_word_of_its_own_is_never_another_spelling(name):
    """adamw8bit is torchao's; adamw_8bit is transformers' word for that of bitsandbytes."""
    assert taken("optimizer", name) == name
