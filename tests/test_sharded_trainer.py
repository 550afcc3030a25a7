"""The step that is derived for Trainer's own FSDP2, against Trainer on real ranks over gloo."""

import inspect

import pytest
import trainer_ranks
from depth import few
from real_trainers import Peaks, derived

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.cli import main
from memlab.lab.ranks import on_ranks
from memlab.lab.trainers import CONFIG
from memlab.step import Lora, simulate
from memlab.terms.host import pinned
from memlab.terms.optimizer import numel
from memlab.units import text

# Of the libraries, about each other.
pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "pad_token_id": 0}
SMALL |= {"intermediate_size": 176, "vocab_size": 1001, "max_position_embeddings": 64}
# No two ranks divide 1,001 words evenly: the last one pads.
CONFIGS = {
    "llama": CONFIG,
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True, "num_key_value_heads": 2}
    | {"head_dim": 16}
    | SMALL,
    "gpt_neox": {"model_type": "gpt_neox"} | SMALL,
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 64}
    | {"vocab_size": 1001, "pad_token_id": 0},
}
BF16 = {"param_dtype": "bf16"}  # TrainingArguments(bf16=True)
THREE = {"micro_batches": 3, "gradient_sync": "last"}
NAMES = ("reshard_after_forward", "gradient_sync", "replicas", "cpu_offload", "reduce_dtype")
LLAMA = Model.preset("llama-3-8b")


def question(family, recipe="fp32", loaded=None, **said):
    """What is derived, and what a rank is asked: the format of its checkpoint, run and config."""
    how = {name: said.pop(name) for name in (*BF16, *NAMES) if name in said}
    devices = Sharding.of(**{"data": 2 * how.get("replicas", 1), "zero": 3} | how)
    run = Run.cpu(**{"batch": 2, "tokens": 32} | said, loop="trainer", devices=devices)
    return recipe, (loaded or recipe, run, CONFIGS[family])


# The first two hold the same, and the third less: a test below says why.
ASKED = (
    question("llama", **BF16),
    question("llama", loaded="bf16", **BF16),
    question("llama", "bf16", micro_batches=2, gradient_sync="last"),
    *few(
        3,
        (
            question("llama"),
            question("qwen3", checkpoint="block", **BF16, **THREE),
            question("qwen3", "bf16"),
            question("gpt2", **THREE),
            question("gpt2", **BF16),
            question("gpt_neox", reshard_after_forward=False, **BF16),
            question("llama", tokens=3, **BF16),  # the peak is the gathered embedding
            question("qwen3", tokens=3, checkpoint="block"),
        ),
    ),
)
# peft's adapters beside a base that is loaded in bf16, and stays so with bf16=True.
EVERY = ("q", "k", "v", "out", "gate", "up", "down")
ADAPTED = few(
    3,
    (
        question("llama", lora=Lora(3)),
        question("llama", "bf16", lora=Lora(3, EVERY, dora=True, dropout=0.1)),
        question("llama", "bf16", lora=Lora(3), reshard_after_forward=False, **BF16),
        question("llama", lora=Lora(3), **BF16, **THREE),
        question("llama", "bf16", lora=Lora(3, dtype="bf16"), tokens=3),
        question("qwen3", "bf16", lora=Lora(3, EVERY), checkpoint="block", **BF16),
        question("gpt2", lora=Lora(3, ("qkv", "down")), **THREE),
        question("gpt_neox", "bf16", lora=Lora(3, ("qkv",)), **BF16),
    ),
)


# FSDP with cpu_offload: the host's bytes are told apart from the device's.
ON_HOST = few(
    3,
    (
        question("llama", cpu_offload="pinned"),
        question("llama", tokens=3, cpu_offload="pinned", **BF16),
        question("qwen3", checkpoint="block", cpu_offload="pinned", **BF16, **THREE),
        question("gpt2", cpu_offload="pinned", **THREE),
        question("gpt_neox", "bf16", cpu_offload="pinned", reshard_after_forward=False),
        question("llama", "bf16", lora=Lora(3), cpu_offload="pinned", **BF16),
    ),
)


# ParallelismConfig(dp_replicate_size=2, dp_shard_size=2): two groups of two ranks. Of many layers
# and few words, so that the reduced gradients that wait for the end of backward are the peak.
CONFIGS |= {
    f"deep {name}": CONFIGS[name] | {"num_hidden_layers": 6, "vocab_size": 101}
    for name in ("llama", "qwen3")
}
REPLICATED = few(
    2,
    (
        question("deep llama", tokens=3, replicas=2, cpu_offload="pinned", **BF16),
        question("deep llama", tokens=3, replicas=2, **BF16),
        question("deep qwen3", tokens=3, checkpoint="block", replicas=2, **BF16, **THREE),
    ),
)


@pytest.fixture(scope="module")
def replicated():
    return on_ranks(4, trainer_ranks.several, [asked for _, asked in REPLICATED], seconds=300)


@pytest.mark.parametrize("number", range(len(REPLICATED)), ids=str)
def test_trainer_on_two_groups_of_real_ranks_holds_what_is_derived(number, replicated):
    recipe, (_, run, config) = REPLICATED[number]
    for rank in replicated[::2]:  # the first of each group, whose part of 1,001 words is larger
        measured = dict(rank[number])
        away = run.devices.policy.cpu_offload is not None
        assert bool(measured.pop("contents").get("weights")) != away
        if away:
            step = simulate(Model.from_config(config), recipe, run)
            assert measured.pop("host") == step.host.bytes
        assert Peaks(**measured) == derived(recipe, run, config)
    alone = run.replace(devices=run.devices.changed(replicas=1, data=2))
    assert derived(recipe, alone, config) != derived(recipe, run, config)


@pytest.fixture(scope="module")
def held():
    asked = [asked for _, asked in (*ASKED, *ON_HOST, *ADAPTED)]
    return on_ranks(2, trainer_ranks.several, asked, seconds=300)


@pytest.mark.parametrize("number", range(len(ASKED)), ids=str)
def test_trainer_on_real_ranks_holds_what_is_derived(number, held):
    recipe, (_, run, config) = ASKED[number]
    measured = dict(held[0][number])
    contents = measured.pop("contents")
    assert Peaks(**measured) == derived(recipe, run, config)
    step = simulate(Model.from_config(config), recipe, run)
    assert contents["weights"] == step.peak.contents["weights"]
    assert max(measured["backward"], measured["elsewhere"]) == step.peak.bytes


@pytest.mark.parametrize("number", range(len(ADAPTED)), ids=str)
def test_trainer_with_adapters_holds_what_is_derived(number, held):
    recipe, (_, run, config) = ADAPTED[number]
    measured = dict(held[0][len(ASKED) + len(ON_HOST) + number])
    contents = measured.pop("contents")
    assert Peaks(**measured) == derived(recipe, run, config)
    assert (
        contents["weights"]
        == simulate(Model.from_config(config), recipe, run).peak.contents["weights"]
    )


@pytest.mark.parametrize("number", range(len(ON_HOST)), ids=str)
def test_a_device_and_its_host_hold_what_is_derived(number, held):
    recipe, (_, run, config) = ON_HOST[number]
    measured = dict(held[0][len(ASKED) + number])
    step = simulate(Model.from_config(config), recipe, run)
    assert measured.pop("host") == step.host.bytes
    assert not {"weights", "gradients", "optimizer"} & set(measured.pop("contents"))
    assert Peaks(**measured) == derived(recipe, run, config)
    assert step.host.moment == "optimizer" and "weights" not in step.peak.contents


def test_a_checkpoint_in_bf16_is_upcast_by_the_flag_that_asks_for_bf16(held):
    """Both hold the same: fp32 parts, whatever the weights were loaded in."""
    wide, narrow = held[0][:2]
    assert wide == narrow
    assert narrow["contents"]["weights"] > held[0][2]["contents"]["weights"]


@pytest.mark.parametrize(
    "more",
    [
        *({}, BF16, {"checkpoint": "block"} | BF16, THREE, BF16 | {"replicas": 2}),
        BF16 | {"lora": Lora(3)},
    ],
    ids=str,
)
def test_layers_that_are_counted_are_like_those_that_are_simulated(more):
    for family in ("llama", "qwen3"):
        recipe, (_, run, config) = question(family, **more)
        model = Model.from_config(config | {"num_hidden_layers": 9})
        short, whole = simulate(model, recipe, run), simulate(model, recipe, run, every_layer=True)
        assert short.log.repeats and not whole.log.repeats
        assert short.peak == whole.peak
        assert short.held_contents == whole.held_contents


def gpu(loop, **said):
    how = {name: said.pop(name) for name in ("gradient_sync",) if name in said}
    devices = Sharding.of(data=8, zero=3, **BF16, **how)
    return simulate(LLAMA, "fp32", Run(tokens=512, loop=loop, devices=devices, **said))


def test_embedding_and_head_are_groups_of_their_own():
    """In the other loop one group has both, and is whole in both passes from end to end."""
    trainer, plain = gpu("trainer"), gpu("plain")
    table = 2 * LLAMA.vocab * LLAMA.d_model

    def gathered(step):
        """Whole weights as the first layer runs forward, and as backward begins."""
        log = step.log
        return [log.contents(log.marks[f"second.{at}"], key)[True] for at in ("loss", "backward")]

    def key(record):
        return record.category == "gathered weights"

    assert [a - b for a, b in zip(gathered(plain), gathered(trainer), strict=True)] == [table] * 2
    assert trainer.peak.bytes < plain.peak.bytes


def test_the_sources_say_so():
    from accelerate import Accelerator
    from accelerate.utils import FullyShardedDataParallelPlugin, fsdp_utils

    source = inspect.getsource(fsdp_utils.fsdp2_prepare_model)
    assert "tail_modules = (final_norm, input_embed, output_embed)" in source
    assert 'fully_shard(tail, **{**fsdp2_kwargs, "reshard_after_forward": False})' in source
    assert "param.data = param.data.to(torch.float32)" in source
    policy = inspect.getsource(FullyShardedDataParallelPlugin.set_mixed_precision)
    assert '"param_dtype": dtype, "reduce_dtype": dtype' in policy
    assert "set_requires_gradient_sync(False)" in inspect.getsource(Accelerator.no_sync)


@pytest.mark.parametrize(
    ("said", "recipe", "message"),
    [
        ({}, "autocast-bf16", "bf16=True is no autocast there; say param_dtype='bf16'"),
        ({"micro_batches": 2}, "fp32", "Trainer reduces after the last one; say gradient_sync="),
        (BF16 | {"reduce_dtype": "fp32"}, "fp32", "reduce_dtype='fp32' with loop='trainer'"),
        ({"param_dtype": "fp16"}, "fp32", "param_dtype='fp16' is not described .* known: bf16"),
        (BF16, "bf16", "accelerate upcasts all weights; say fp32"),
        ({"cpu_offload": "pageable"}, "fp32", "cpu_offload='pageable' .* accelerate's policy pins"),
        ({"holds": ("model",)}, "fp32", "holds=.* is not described beside"),
        ({"texts": "padded"}, "fp32", "texts='padded' is not described beside FSDP2"),
        ({"eval_batch": 2}, "fp32", "eval_batch=2 is not described beside FSDP2"),
        ({}, Recipe(optimizer="muon"), "muon is not described on FSDP2's parts"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, recipe, message):
    recipe, (_, run, config) = question("llama", recipe, **said)
    with pytest.raises(ValueError, match=message):
        estimate(Model.from_config(config), recipe, run)


def test_on_a_gpus_host_parts_of_weights_and_gradients_lie_in_pinned_blocks():
    devices = Sharding.of(data=8, zero=3, cpu_offload="pinned", **BF16)
    run = Run(tokens=512, loop="trainer", devices=devices)
    away, near = simulate(LLAMA, "fp32", run), gpu("trainer")
    blocks = sum(
        pinned(4 * numel(devices.shape(tensor, "weights"))) * tensor.copies
        for tensor in LLAMA.tensors()
    )
    assert away.host.contents["weights"] == away.host.contents["gradients"] == blocks
    assert near.rows["weights"] and not away.rows["weights"]
    assert away.peak.bytes < near.peak.bytes - 3 * near.rows["weights"]


def test_other_families_and_trainers_are_refused():
    two = Sharding(data=2, zero=3)
    opt = Model.from_config(
        {"model_type": "opt"} | SMALL | {"ffn_dim": 176, "word_embed_proj_dim": 64}
    )
    with pytest.raises(ValueError, match="'opt' is not described beside Trainer's own FSDP2"):
        estimate(opt, "fp32", Run(tokens=32, loop="trainer", devices=two))
    with pytest.raises(ValueError, match="loop='sft' is not described beside FSDP2"):
        estimate(LLAMA, "fp32", Run(tokens=64, loop="sft", devices=two))


def test_the_shell_answers_with_trainers_peak(capsys):
    words = "llama-3-8b --fsdp 8 --tokens 512 --recipe fp32 --param-dtype bf16 --loop trainer"
    assert main(["estimate", *words.split()]) == 0
    said = capsys.readouterr().out
    assert text(gpu("trainer").peak.bytes) in said
    assert main(["estimate", *words.split(), "--micro-batches", "4"]) == 2
    assert "say --gradient-sync last" in capsys.readouterr().err
    assert (
        main(["estimate", *words.split(), "--micro-batches", "4", "--gradient-sync", "last"]) == 0
    )
    later = gpu("trainer", micro_batches=4, gradient_sync="last")
    assert text(later.peak.bytes) in capsys.readouterr().out
