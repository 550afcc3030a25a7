"""The inverse of the estimate: an answer fits, and the next larger one does not."""

import json

import pytest

from memlab import GiB, Model, Recipe, Run, Sharding, estimate
from memlab.adapters import Lora
from memlab.cli import main
from memlab.explain.flags import FLAGS
from memlab.explain.last_changes import (
    EVERY,
    FEWEST,
    INSIDE,
    LAST,
    LIGERS,
    OF_MEMLAB,
    TORCHS,
    every,
    last_of,
    line_of,
)
from memlab.explain.other_flags import LOSSES, OTHERS
from memlab.fit import CannotFit, cheapest_change, largest_batch, longest_sequence
from memlab.run.recipe_choice import recipe_for
from memlab.step import simulate
from memlab.terms.context import CONTEXT
from memlab.terms.workspaces import LARGE
from memlab.units import MOST
from memlab.verdict import FITS, room_on

QWEN, LLAMA = Model.preset("qwen3-0.6b"), Model.preset("llama-3-8b")
QWEN_4B, TINYLLAMA = Model.preset("qwen3-4b"), Model.preset("tinyllama-1.1b")


def peak(model, recipe, **said):
    return simulate(model, recipe, Run(**said)).peak.bytes


@pytest.mark.parametrize("device", ["RTX 4090", "rtx4090", "24 GiB", 24 * GiB])
def test_the_largest_batch_is_the_largest(device):
    fit = largest_batch(QWEN, "bf16", Run(tokens=1024), on=device)
    assert peak(QWEN, "bf16", batch=fit.value, tokens=1024) == fit.peak <= fit.limit
    assert peak(QWEN, "bf16", batch=fit.value + 1, tokens=1024) > fit.limit


def test_the_longest_sequence_is_the_longest():
    fit = longest_sequence(QWEN, "bf16", Run(), on="RTX 3090")
    assert peak(QWEN, "bf16", batch=1, tokens=fit.value) == fit.peak <= fit.limit
    assert peak(QWEN, "bf16", batch=1, tokens=fit.value + 1) > fit.limit
    assert "largest sequence on RTX 3090" in str(fit)


def test_positions_bound_a_sequence():
    tiny = Model.preset("tiny-llama")
    longest = longest_sequence(
        tiny, "bf16", Run.cpu(implementation="memlab", optimizer_impl="foreach"), on="H100"
    )
    assert longest.value == tiny.positions


def test_a_sequence_leaves_a_position_to_the_token_that_is_read():
    """Its answer was a refusal where positions are learned, a token too long where they turn."""
    for name in ("tiny-gpt", "tiny-llama"):
        tiny = Model.preset(name)
        found = longest_sequence(tiny, "bf16", Run(phase="decode", tokens=1), on="H100")
        assert (found.value, found.ended_by) == (tiny.positions - 1, "positions")


def test_the_bound_of_a_search_is_not_called_an_answer():
    found = largest_batch(Model.preset("tiny-llama"), "bf16", Run(tokens=64), on="999999999 TB")
    assert (found.value, found.ended_by) == (MOST, "bound")
    assert "the model's positions" not in str(found) and "no larger one is described" in str(found)


def test_what_is_spared_is_left_free():
    generous = largest_batch(QWEN, "bf16", Run(tokens=1024), on="24 GiB", spare=0)
    careful = largest_batch(QWEN, "bf16", Run(tokens=1024), on="24 GiB", spare=8 * GiB)
    assert generous.limit - careful.limit == 8 * GiB
    assert generous.value > careful.value


def test_nothing_fits_says_by_how_much():
    fit = largest_batch(LLAMA, "bf16", Run(tokens=2048), on="RTX 4090")
    assert fit.value == 0 and fit.peak > fit.limit
    assert "no batch fits RTX 4090: the smallest step is" in str(fit)


@pytest.mark.parametrize(
    ("asked", "then"),
    [("--tokens 2048", "--batch 1"), ("--batch 2", f"--tokens {FEWEST}")],
)
def test_where_nothing_fits_the_next_question_is_named_and_answered(asked, then, capsys):
    words = ["fit", "llama-3-8b", "--on", "RTX 4090", "--precision", "bf16", *asked.split()]
    assert main(words) == 1
    assert f"with {then} beside the rest" in capsys.readouterr().out
    assert main([*words, *then.split()]) == 1
    assert "the cheapest changes that make it fit" in capsys.readouterr().out


def test_changes_come_in_the_order_of_their_cost_and_end_with_one_that_fits():
    run = Run(attention="eager", batch=64, tokens=4096)
    made = cheapest_change(QWEN, "bf16", run, on="RTX 4090")
    names = [name for name, *_ in made]
    order = [change.name for change in EVERY]
    assert [name for name in order if name in names] == names[:-1]
    assert names[-1].endswith("micro-batches")
    peaks = [size for _, _, size, _ in made]
    assert peaks == sorted(peaks, reverse=True)
    limit = largest_batch(QWEN, "bf16", Run(tokens=1024), on="RTX 4090").limit
    assert peaks[-1] <= limit < peaks[-2]


@pytest.mark.parametrize(
    ("model", "recipe", "on", "batch", "tokens"),
    [
        (QWEN, "bf16", "RTX 4090", 8, 1024),
        (QWEN, "fp32", "RTX 3090", 8, 4096),
        (LLAMA, "fp32", "H100", 4, 4096),
        (LLAMA, "bf16", "RTX 4090", 1, 4096),
    ],
)
def test_no_change_is_made_that_is_not_needed(model, recipe, on, batch, tokens):
    made = cheapest_change(model, recipe, Run(batch=batch, tokens=tokens), on=on)
    limit = largest_batch(model, "bf16", Run(tokens=64), on=on).limit
    known = {change.name: change for change in (*EVERY, LIGERS, *LAST)}
    changes = [known[name] for name, *_ in made]

    def size(chosen):
        at = recipe_for(model, recipe), Run(batch=batch, tokens=tokens)
        for change in chosen:
            at = change.turn(*at)
        return simulate(model, *at).peak.bytes

    assert size(changes) == made[-1][2] <= limit
    for i in range(len(changes)):
        assert size(changes[:i] + changes[i + 1 :]) > limit, made[i]


def test_a_change_that_another_replaces_is_not_listed():
    names = [
        name for name, *_ in cheapest_change(LLAMA, "fp32", Run(batch=4, tokens=4096), on="H100")
    ]
    assert "pure bf16" in names and "autocast" not in names


def test_adapters_are_the_last_resort():
    """Of two micro-batches: gradients that leave for a host cannot be added to."""
    two = Run(batch=1, tokens=4096, micro_batches=2)
    made = cheapest_change(LLAMA, "bf16", two, on="RTX 4090")
    assert made[-1][0].startswith("LoRA") and "another result" in made[-1][1]
    alone = cheapest_change(LLAMA, "bf16", Run(batch=1, tokens=4096), on="RTX 4090")
    assert alone[-1][0] == "states and gradients on the host"


def test_several_cards_are_used_by_a_reader_who_has_them():
    """Eight cards train all weights, where one had to take adapters; two do not suffice."""
    two = Run(batch=2, tokens=4096, micro_batches=2)
    alone = cheapest_change(LLAMA, "bf16", two, on="RTX 4090")
    made = cheapest_change(LLAMA, "bf16", two, on="RTX 4090", cards=8)
    name, cost, size, line = made[-1]
    assert name == "FSDP2 over 8 cards" and "weights travel" in cost
    assert "fully_shard" in line and "torchrun --nproc-per-node 8; of accelerate: " in line
    flags = "--parallelism.data_parallel_shard_degree 8 --training.dtype bfloat16"
    assert line.endswith(f"; of torchtitan: {flags}")
    assert not any("LoRA" in other for other, *_ in made)
    how = dict(batch=1, tokens=4096, checkpoint="block", micro_batches=4)
    assert size == peak(LLAMA, "bf16", **how, devices=Sharding(data=8, zero=3))
    # Two alone do not suffice, but with their hosts.
    name, _, size, line = cheapest_change(LLAMA, "bf16", two, on="RTX 4090", cards=2)[-1]
    assert name.endswith("weights and states on their hosts") and "CPUOffloadPolicy()" in line
    how = dict(batch=2, tokens=4096, checkpoint="block", micro_batches=2)
    devices = Sharding.of(data=2, zero=3, cpu_offload="pinned")
    assert size == peak(LLAMA, "bf16", **how, devices=devices)
    assert any("LoRA" in other for other, *_ in alone)


def test_as_few_cards_as_fit_and_a_trainer_is_told_of_its_own_flag():
    run = Run(batch=1, tokens=4096)
    large = Model.preset("llama-3-70b")
    made = cheapest_change(large, "bf16", run, on="H100 80GB", spare=CONTEXT, cards=48)
    # Checkpointing alone saves nothing of 70 billion parameters; beside FSDP2 it does.
    assert [name for name, *_ in made][-2:] == ["block checkpointing", "FSDP2 over 8 cards"]
    assert made[0][0] == "fused AdamW"
    how = dict(batch=1, tokens=4096, checkpoint="block", optimizer_impl="fused")
    assert made[-1][2] == peak(large, "bf16", **how, devices=Sharding(data=8, zero=3))
    trainer = run.replace(loop="trainer")
    made = cheapest_change(LLAMA, "bf16", trainer, on="RTX 4090", spare=CONTEXT, cards=8)
    name, _, size, line = made[-1]
    assert name == "FSDP2 over 4 cards" and "TRL" not in made[0][0]
    assert line.startswith("TrainingArguments(fsdp=True); torchrun --nproc-per-node 4; of acc")
    how = dict(loop="trainer", batch=1, tokens=4096, checkpoint="block")
    assert size == peak(LLAMA, "bf16", **how, devices=Sharding(data=4, zero=3))
    hosts = cheapest_change(LLAMA, "bf16", trainer, on="RTX 4090", cards=2)[-1]
    assert hosts[0].endswith("weights and states on their hosts")
    assert 'TrainingArguments(fsdp=True, fsdp_config={"cpu_offload": True}); torchrun' in hosts[3]
    devices = Sharding.of(data=2, zero=3, cpu_offload="pinned")
    assert hosts[2] == peak(LLAMA, "bf16", **how | {"devices": devices})
    sft = run.replace(loop="sft")
    alone = cheapest_change(LLAMA, "bf16", sft, on="RTX 4090")
    assert cheapest_change(LLAMA, "bf16", sft, on="RTX 4090", cards=8) == alone


def test_the_flag_for_bf16_is_a_policy_where_trainer_shards():
    """Under FSDP2 accelerate turns it into MixedPrecisionPolicy over fp32 weights."""
    change = next(c for c in last_of(2) if c.name.startswith("FSDP2"))
    recipe, run = change.turn(Recipe.named("autocast"), Run(tokens=64, loop="trainer"))
    assert (recipe.weights, recipe.autocast) == ("fp32", None)
    how = {"param_dtype": "bf16", "gradient_sync": "last"}
    assert run.devices == Sharding.of(data=2, zero=3, **how)
    alone = run.replace(devices=Sharding())
    one, two = (simulate(LLAMA, r, how) for r, how in (("autocast", alone), (recipe, run)))
    assert two.peak.bytes < one.peak.bytes


def test_deepspeed_divides_for_those_who_have_it():
    """Stage 2 where it suffices, stage 3 with its own way to make the model where it does not."""
    run = Run(batch=1, tokens=4096, micro_batches=2)
    here = dict(on="A100 40GB", spare=CONTEXT, cards=8, library="deepspeed")
    made = cheapest_change(LLAMA, "zero", run, **here)
    name, cost, size, line = made[-1]
    assert name == "DeepSpeed's ZeRO 2 over 8 cards" and "gradients and states" in cost
    assert '"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}' in line
    assert line.startswith("deepspeed.initialize(") and line.endswith("deepspeed --num_gpus 8")
    how = dict(batch=1, tokens=4096, micro_batches=2, checkpoint="block")
    assert size == peak(LLAMA, "zero", **how, devices=Sharding(data=8, zero=2))
    third = cheapest_change(LLAMA, "zero", run, **here | {"on": "28 GiB"})
    assert third[-1][0] == "DeepSpeed's ZeRO 3 over 8 cards" and "zero.Init" in third[-1][3]
    begun = run.replace(devices=Sharding(data=8, zero=2))
    assert cheapest_change(LLAMA, "zero", begun, on="28 GiB", spare=CONTEXT)[-1] == third[-1]
    trainer = run.replace(loop="trainer")
    name, _, size, line = cheapest_change(LLAMA, "autocast", trainer, **here)[-1]
    assert name == "DeepSpeed's ZeRO 2 over 8 cards"
    assert size == peak(LLAMA, "zero", **how, loop="trainer", devices=Sharding(data=8, zero=2))
    assert line.startswith('TrainingArguments(deepspeed={"zero_optimization": {"stage": 2}, "bf16"')
    assert line.endswith("bf16=True); deepspeed --num_gpus 8")
    least = cheapest_change(LLAMA, "autocast", trainer, **here | {"on": "20 GiB"})[-1]
    there = Sharding.of(data=8, zero=3, library="deepspeed", offload_optimizer="cpu")
    assert least[0] == "DeepSpeed's ZeRO 3 over 8 cards, the optimizer on their hosts"
    assert least[2] == peak(LLAMA, "zero", **how, loop="trainer", devices=there)
    away = '"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": True}}'
    assert away in least[3] and "then AutoModelForCausalLM.from_pretrained(name)" in least[3]
    sft = run.replace(loop="sft")  # whose step under DeepSpeed is not described
    assert not any("DeepSpeed" in each[0] for each in cheapest_change(LLAMA, "bf16", sft, **here))
    with pytest.raises(ValueError, match="library='megatron'; known: deepspeed"):
        cheapest_change(LLAMA, "bf16", run, on="RTX 4090", cards=8, library="megatron")


def test_a_mixture_divides_its_experts_where_gathering_them_is_too_much():
    mixture = Model.preset("gpt-oss-20b")
    run = Run(batch=1, tokens=2048, checkpoint="block")
    how = dict(batch=1, tokens=2048, checkpoint="block")
    ways = [Sharding.of(data=8, zero=3, **more) for more in ({}, {"expert": 8})]
    whole, divided = (peak(mixture, "bf16", **how, devices=way) for way in ways)
    assert divided < whole
    made = cheapest_change(mixture, "bf16", run, on=divided, spare=0, cards=8)
    name, _, size, line = made[-1]
    assert name == "FSDP2 over 8 cards, experts divided among them" and size == divided
    assert "DistributedConfig(fsdp_size=8, ep_size=8)" in line
    assert (
        cheapest_change(mixture, "bf16", run.replace(devices=ways[0]), on=divided, spare=0) == made
    )


def test_a_pipeline_is_told_of_other_schedules(capsys):
    how = "--batch 1 --tokens 512 --pipeline 2 --micro-batches 4 --schedule gpipe --precision bf16"
    run = Run(batch=1, tokens=512, micro_batches=4)

    def size(schedule):
        devices = Sharding.of(pipeline=2, schedule=schedule)
        return estimate(TINYLLAMA, "bf16", run.replace(devices=devices)).total()

    gpipe, other = size("gpipe"), size("1f1b")
    assert other < gpipe
    assert main(["fit", "tinyllama-1.1b", "--on", f"{other} B", "--spare", "0", *how.split()]) == 1
    out = capsys.readouterr().out
    assert "after the schedule 1F1B" in out and "Schedule1F1B(stage, n_microbatches=4)" in out
    assert "--parallelism.pipeline_parallel_schedule 1F1B" in out


def test_the_command_says_what_it_takes_and_what_is_there(capsys):
    words = "fit qwen3-0.6b --batch 1 --tokens 512 --precision bf16 --on"
    assert main([*words.split(), "H100"]) == 0
    assert "it fits H100 80GB: " in capsys.readouterr().out
    asked = "fit llama-3-8b --precision bf16 --batch 1 --tokens 4096 --on A100-40GB --cards 8"
    assert main([*asked.split(), "--deepspeed"]) == 1
    assert "are there\nthe cheapest changes" in capsys.readouterr().out
    assert main([*asked.split(), "--ranks", "8", "--zero", "2"]) == 2
    assert "--cards 8 beside --ranks 8; give one of them" in capsys.readouterr().err


def test_no_cards_are_refused():
    run = Run(batch=1, tokens=4096)
    with pytest.raises(ValueError, match="cards=0; between 1 and 65,536"):
        cheapest_change(LLAMA, "bf16", run, on="RTX 4090", cards=0)


@pytest.mark.parametrize("flags", ["--cards 4 --tokens 64", "--cards 4 --batch 1"])
def test_cards_mean_something_only_where_a_change_is_asked_for(flags, capsys):
    assert main(["fit", "gpt2", "--on", "RTX 4090", *flags.split()]) == 2
    assert "--cards 4 beside a search for the" in capsys.readouterr().err


def test_the_largest_batch_of_one_rank_of_fsdp2(capsys):
    asked = "fit llama-3-8b --on 24GiB --precision bf16 --checkpoint block --tokens 4096 --fsdp 8"
    assert main([*asked.split(), "--spare", f"{CONTEXT} B", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == 2 and found["run"]["devices"]["data"] == 8
    devices = Sharding(data=8, zero=3)
    how = dict(tokens=4096, checkpoint="block", devices=devices)
    assert found["peak"] == peak(LLAMA, "bf16", batch=2, **how) <= found["limit"]
    assert peak(LLAMA, "bf16", batch=3, **how) > found["limit"]


def test_all_weights_of_qwen3_4b_are_trained_on_a_card_of_24_gb():
    """States in 8 bits, or states on a host: both have their peak, and both fit."""
    run = Run(batch=8, tokens=2048)
    made = cheapest_change(QWEN_4B, "fp32", run, on="RTX 4090", spare=CONTEXT)
    assert "8-bit states" in [name for name, *_ in made]
    assert not any("LoRA" in name for name, *_ in made)
    how = dict(loss="linear_cross_entropy", checkpoint="block", batch=8, tokens=2048)
    eight = recipe_for(QWEN_4B, "bf16").replace(optimizer="bnb_adamw8bit")
    assert made[-1][2] == peak(QWEN_4B, eight, **how, step_in_backward=True)
    two = run.replace(micro_batches=2)
    away = cheapest_change(QWEN_4B, "bf16", two, on="RTX 4090", spare=CONTEXT)
    assert away[-1][0] == "states on the host"
    assert away[-1][2] == peak(QWEN_4B, "bf16", **how, micro_batches=2, offload=("optimizer",))


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("plain", ["model.gradient_checkpointing_enable()", "bitsandbytes.optim.AdamW8bit("]),
        ("trainer", ["TrainingArguments(gradient_checkpointing=True)", "SFTTrainer in place of"]),
        ("sft", ["SFTConfig(gradient_checkpointing=True)", 'SFTConfig(optim="adamw_torch_8bit")']),
    ],
)
def test_each_change_is_a_line_of_the_readers_library(loop, lines):
    run = Run(batch=4, tokens=4096, loop=loop, checkpoint="none")  # sft checkpoints by itself
    recipe = recipe_for(QWEN, "bf16")
    known = (*EVERY, LIGERS, *LAST)
    said = [line_of(change.name, recipe, run) for change in known]
    assert {*FLAGS, *OTHERS, *LOSSES, INSIDE} == {c.name for c in (*OF_MEMLAB, *known)}
    for line in lines:
        assert any(line in each for each in said if each), (line, said)
    made = cheapest_change(QWEN, "bf16", run, on="10 GiB")
    assert made and all(line and "{" not in line for *_, line in made)
    if loop != "plain":
        others = [each for each in said if each and not each.startswith("trl.")]
        assert loop != "sft" or not any("Arguments" in each for each in others)
        assert line_of(INSIDE, recipe, run) is None
    else:
        assert not any("memlab" in line for line in said if line), said


def test_a_loss_in_chunks_is_torchs_and_ligers_only_where_that_is_not_enough():
    """torch's goes backward with zeros as large as both gradients, Liger's is a package more."""
    run = Run(batch=1, tokens=8192)
    sizes = {}
    for on in ("20 GiB", "19.1 GiB"):
        made = cheapest_change(LLAMA, "bf16", run, on=on, spare=0)
        assert made[-1][0] == "states and gradients on the host"
        loss = next(name for name, *_ in made if name in (TORCHS.name, LIGERS.name))
        sizes[loss] = made[-1][2]
    assert list(sizes) == [TORCHS.name, LIGERS.name]
    how = {"batch": 1, "tokens": 8192, "checkpoint": "block", "offload": ("optimizer", "gradients")}
    for loss, name in (("linear_cross_entropy", TORCHS.name), ("liger", LIGERS.name)):
        assert sizes[name] == peak(LLAMA, "bf16", loss=loss, **how)


def test_memlabs_own_models_have_memlabs_own_loss():
    mine = Run(batch=4, tokens=512, implementation="memlab")
    assert every(mine) == OF_MEMLAB
    line = line_of("a loss in chunks", recipe_for(QWEN, "fp32"), mine)
    assert line and line.startswith("memlab.lab.models.")


def test_fewer_tokens_come_last_and_not_below_what_is_one_training():
    run = Run(tokens=32_768, lora=Lora(16))
    made = cheapest_change(QWEN, "bf16", run, on="3 GiB")
    assert made[-1][0].startswith("sequences of") and made[-1][0].endswith("tokens")
    tokens = int(made[-1][0].split()[2].replace(",", ""))
    assert FEWEST <= tokens < 32_768 and f"max_length={tokens}" in made[-1][3]
    with pytest.raises(CannotFit):
        cheapest_change(QWEN, "bf16", run, on="1200 MiB")


def test_a_call_is_not_advised_what_is_for_training():
    run = Run(phase="prefill", batch=4, tokens=8192, attention="eager")
    made = cheapest_change(QWEN, "bf16", run, on="16 GiB")
    assert [name for name, *_ in made] == ["SDPA attention"]


def test_adapters_leave_room_for_micro_batches_to_help():
    made = cheapest_change(LLAMA, "bf16", Run(batch=16, tokens=2048), on="RTX 4090")
    assert made[-2][0].endswith("micro-batches") or made[-1][0].endswith("micro-batches")
    assert any(name.startswith("LoRA") for name, *_ in made)


def test_micro_batches_pay_for_their_gradients():
    made = cheapest_change(QWEN, "bf16", Run(batch=64, tokens=4096), on="RTX 4090")
    assert [name for name, *_ in made[:-1]] == [TORCHS.name, "block checkpointing"]
    parts = int(made[-1][0].split()[0])
    said = dict(checkpoint="block", loss="linear_cross_entropy", batch=64 // parts, tokens=4096)
    assert made[-1][2] == peak(QWEN, "bf16", **said, micro_batches=parts)


def test_micro_batches_of_a_run_are_cut_further():
    run = Run(batch=64, tokens=4096, micro_batches=4)
    made = cheapest_change(QWEN, "bf16", run, on="RTX 4090")
    parts = int(made[-1][0].split()[0])
    assert parts % 4 == 0 and parts > 4


def test_a_step_that_fits_needs_no_change():
    assert cheapest_change(QWEN, "bf16", Run(batch=1, tokens=512), on="H100") == []


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="llama-3-8b needs .* with every change known here"):
        cheapest_change(LLAMA, "bf16", Run(batch=4, tokens=1024), on="6 GiB")
    with pytest.raises(ValueError, match="RTX 9999"):
        largest_batch(QWEN, "bf16", Run(tokens=64), on="RTX 9999")
    with pytest.raises(ValueError, match="nanochat"):
        largest_batch(Model.preset("nanochat-d26"), "bf16", Run(tokens=64), on="H100")


def test_under_ddp_each_card_has_the_buckets_beside():
    run = Run(tokens=64, devices=Sharding(data=8))
    alone, one_of_8 = (largest_batch(QWEN, "fp32", r, on="H100") for r in (Run(tokens=64), run))
    assert one_of_8.value < alone.value
    assert one_of_8.peak == peak(QWEN, "fp32", batch=one_of_8.value, tokens=64, devices=run.devices)


def test_several_devices_are_refused():
    run = Run(tokens=64, devices=Sharding(data=8, pipeline=2))
    with pytest.raises(ValueError, match="the step of one device alone"):
        largest_batch(QWEN, "fp32", run, on="H100")


def test_no_cap_ends_the_search_for_a_batch():
    """Tiny steps on a large card: memory ends it, far beyond any power of two that one may cap."""
    tiny = Model.preset("tiny-llama")
    fit = largest_batch(tiny, "fp32", Run(tokens=64), on="A100 80GB")
    assert fit.value > 4096 and fit.ended_by == "memory"
    assert peak(tiny, "fp32", batch=fit.value, tokens=64) == fit.peak <= fit.limit
    assert peak(tiny, "fp32", batch=fit.value + 1, tokens=64) > fit.limit


def test_what_stands_beside_tensors_is_left_free_unless_a_size_is_said():
    plain = largest_batch(QWEN, "bf16", Run(tokens=1024), on="24 GiB")
    room = room_on("24 GiB")
    assert plain.limit == room.surely and plain.verdict.word == FITS
    assert room.beside == CONTEXT + 2 * LARGE  # of a card that nobody names the larger ones
    assert largest_batch(QWEN, "bf16", Run(tokens=1024), on="24 GiB", spare=0).limit == 24 * GiB


def test_what_fits_in_no_way_says_the_least():
    with pytest.raises(CannotFit) as caught:
        cheapest_change(LLAMA, "bf16", Run(batch=4, tokens=1024), on="6 GiB")
    assert caught.value.least > 6 * GiB
    # At least the weights in NF4, and with every change known less than the step as it was.
    assert caught.value.least >= LLAMA.parameter_count // 2
    assert caught.value.least < peak(LLAMA, "bf16", batch=4, tokens=1024)


def test_the_longest_sequence_says_what_ended_it():
    tiny = Model.preset("tiny-llama")
    by_positions = longest_sequence(tiny, "bf16", Run(), on="H100")
    assert (by_positions.value, by_positions.ended_by) == (tiny.positions, "positions")
    assert "positions end it" in str(by_positions)
    assert longest_sequence(QWEN, "bf16", Run(), on="RTX 3090").ended_by == "memory"


def test_a_mixture_is_told_of_adapters_beside_attention_alone():
    """Its experts are no linear layers, and a base in nf4 leaves them as they are."""
    mixture = Model.preset("qwen3-30b-a3b")
    made = cheapest_change(mixture, "bf16", Run(batch=8, tokens=2048), on="H100")
    name, _, size, line = made[-1]
    assert name == "LoRA of rank 16 on the linear layers of attention"
    assert '["q_proj", "k_proj", "v_proj", "o_proj"]' in line
    said = Run(batch=8, tokens=2048, checkpoint="block", loss="linear_cross_entropy")
    run = said.replace(lora=Lora(16, ("q", "k", "v", "out")))
    assert estimate(mixture, "bf16", run).total() == size
