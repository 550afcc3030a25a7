"""No option is ignored: each one that is given changes the answer, or is refused by name.

One table says of every option of the command line a question in which it counts. Each is asked at
each door, of families with a closed form and of one without; what leaves an answer as it was has to
stand in STILL, with the reason. A field of Run or of Sharding that no option of the table sets, and
an option that is not in the table, fail here. That the net holds is tried by dropping each option.
"""

import contextlib
import functools
import io
import json
import shlex

import pytest

from memlab import Model, Run, Sharding, cli
from memlab.cli import arguments, asked, estimate_json, main
from memlab.cli import explain as cli_explain
from memlab.estimate import estimate
from memlab.run.fields import BETWEEN
from memlab.run.run import DEVICES, FIELDS

_SIZES = {"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 128, "vocab_size": 300}
_SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512}
_MOE = {"moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 16}
CONFIGS = {
    "llama": {"model_type": "llama"} | _SIZES,
    "gpt2": {"model_type": "gpt2", "n_layer": 4, "n_embd": 64, "n_head": 4, "vocab_size": 300},
    "qwen3_moe": {"model_type": "qwen3_moe"} | _SIZES | _MOE,
    "mistral": {"model_type": "mistral", "sliding_window": 32} | _SIZES,
    "exaone4": {"model_type": "exaone4"} | _SIZES | {"num_key_value_heads": 4},
}
CONFIGS["wide"] = CONFIGS["llama"] | {"vocab_size": 4000}
DESCRIBED = ("llama", "gpt2", "qwen3_moe")
T = "--tokens 64"
LORA = f"{T} --precision bf16 --lora-rank 4"
FSDP = f"{T} --fsdp 4"
ZERO2 = f"{T} --recipe zero --ranks 4 --zero 2"
ZERO3 = "--tokens 2 --recipe zero --ranks 4 --zero 3 --deepspeed --param-persistence-threshold 10"
PIPE = f"{T} --pipeline 2 --micro-batches 4"
# Option: the question, and what is said beside it. FILES stand for what the fixture writes.
TABLE = {
    "recipe": (T, "--recipe zero"),
    "precision": (T, "--precision bf16"),
    "optimizer": (T, "--optimizer sgd"),
    "batch": (T, "--batch 3"),
    "tokens": ("", "--tokens 64"),
    "completion": (f"{T} --loop sft", "--completion 5"),
    "eval_batch": (f"{T} --loop trainer", "--eval-batch 64"),
    "eval_logits": (f"{T} --loop trainer --eval-batch 64", "--eval-logits 4"),
    "micro_batches": (T, "--micro-batches 2"),
    "loss_chunks": (f"{T} --precision bf16 --loss chunked", "--loss-chunks 2"),
    "dropout": (T, "--dropout 0.2"),
    "window": (T, "--window 8"),
    "attention": (f"{T} --precision bf16", "--attention eager"),
    "kernel": (T, "--kernel math"),
    "backend": (f"{T} --precision bf16", "--backend cpu"),
    "implementation": (T, "--implementation memlab"),
    "optimizer_impl": ("--tokens 2", "--optimizer-impl fused"),
    "loop": (T, "--loop dpo"),
    "texts": (f"{T} --batch 2", "--texts packed"),
    "reference": (f"{T} --loop grpo", "--reference model"),
    "checkpoint": (f"{T} --batch 8", "--checkpoint block"),
    "loss": (T, "--loss chunked"),
    "compile": (T, "--compile"),
    "frozen": (T, "--frozen embedding"),
    "offload": (T, "--offload saved"),
    "holds": (T, "--holds graph"),
    "teacher": (f"{T} --loop gkd", "--teacher TEACHER"),
    "teacher_weights": (f"{T} --loop gkd --teacher TEACHER", "--teacher-weights bf16"),
    "step_in_backward": (T, "--step-in-backward"),
    "clip": ("--tokens 2 --precision bf16 --optimizer sgd", "--clip"),
    "adapter": (T, "--adapter ADAPTER"),
    "lora_rank": (T, "--lora-rank 4"),
    "lora_targets": (LORA, "--lora-targets up,down"),
    "lora_base": (LORA, "--lora-base nf4"),
    "lora_dtype": (LORA, "--lora-dtype bf16"),
    "lora_saved": (LORA, "--lora-saved lm_head"),
    "lora_dropout": (LORA, "--lora-dropout 0.2"),
    "lora_dora": (LORA, "--lora-dora"),
    "ia3": (T, "--ia3 k,v"),
    "vera_rank": (T, "--vera-rank 8"),
    "prompt_tokens": (T, "--prompt-tokens 5"),
    "phase": (f"{T} --precision bf16", "--phase prefill"),
    "logits": (f"{T} --precision bf16 --phase prefill", "--logits last"),
    "inference_mode": (f"{T} --phase prefill --precision autocast-bf16", "--inference-mode"),
    "fsdp": (T, "--fsdp 4"),
    "param_dtype": (FSDP, "--param-dtype bf16"),
    "reduce_dtype": ("--tokens 2 --fsdp 4 --precision bf16", "--reduce-dtype fp32"),
    "no_reshard": (FSDP, "--no-reshard"),
    "replicas": (FSDP, "--replicas 2"),
    "cpu_offload": (FSDP, "--cpu-offload"),
    "gradient_sync": (f"{FSDP} --micro-batches 2", "--gradient-sync last"),
    "expert": (f"{FSDP} --precision bf16", "--expert 2"),
    "routing": (f"{FSDP} --precision bf16 --expert 2", "--routing fullest"),
    "ranks": (T, "--ranks 2"),
    "zero": (f"{T} --recipe zero --ranks 4", "--zero 2"),
    "deepspeed": (f"{T} --recipe zero --ranks 4 --zero 3", "--deepspeed"),
    "deepspeed_config": (f"{T} --ranks 4", "--deepspeed-config DEEPSPEED"),
    "trainer_config": (T, "--trainer-config TRAINER"),
    "reduce_bucket_size": (ZERO2, "--reduce-bucket-size 1000"),
    "overlap_comm": (ZERO2, "--overlap-comm"),
    "no_contiguous_gradients": (ZERO2, "--no-contiguous-gradients"),
    "offload_optimizer": (ZERO2, "--offload-optimizer cpu"),
    "offload_param": (ZERO3, "--offload-param cpu"),
    "prefetch_bucket_size": (ZERO3, "--prefetch-bucket-size 100"),
    "param_persistence_threshold": (
        f"{T} --recipe zero --ranks 4 --zero 3 --deepspeed --reduce-bucket-size 1000",
        "--param-persistence-threshold 10",
    ),
    "max_live_parameters": (ZERO3, "--max-live-parameters 100"),
    "max_reuse_distance": (ZERO3, "--max-reuse-distance 10"),
    "sub_group_size": (ZERO3, "--sub-group-size 1000"),
    "no_memory_efficient_linear": (
        ZERO3.replace("--tokens 2", T) + " --reduce-bucket-size 1000",
        "--no-memory-efficient-linear",
    ),
    "tensor_parallel": (f"{T} --optimizer-impl forloop", "--tensor 2"),
    "pipeline_parallel": (f"{T} --micro-batches 4", "--pipeline 2"),
    "context_parallel": (f"{T} --precision bf16 --zero 3 --ranks 4", "--context-parallel 2"),
    "sequence": (f"{T} --optimizer-impl forloop --tensor 2", "--sequence"),
    "plan": (f"{T} --optimizer-impl forloop --tensor 2", "--plan transformers"),
    "schedule": (PIPE, "--schedule gpipe"),
    "stages_per_rank": (f"{PIPE} --schedule interleavedzerobubble", "--stages-per-rank 2"),
    "no_outputs": (PIPE, "--no-outputs"),
    "against": (T, "--against fp32"),
    "posted": (T, "--posted 1MB"),
}
# The same of `serve`, whose --precision is the engine's.
OF_ENGINE = {
    "engine": ("--on 24GB", "--engine sglang"),
    "on": ("--on 24GB", "--on 40GB"),
    "precision": ("--on 24GB", "--precision fp32"),
    "tensor_parallel": ("--on 24GB", "--tensor-parallel 2"),
    "gpu_memory_utilization": ("--on 24GB", "--gpu-memory-utilization 0.5"),
    "mem_fraction_static": ("--engine sglang --on 24GB", "--mem-fraction-static 0.5"),
    "kv_dtype": ("--on 24GB", "--kv-dtype fp8"),
    "quantization": ("--on 24GB", "--quantization fp8"),
    "sampler": ("--on 24GB", "--sampler sort"),
    "max_model_len": ("--on 24GB", "--max-model-len 128"),
    "block_size": ("--on 24GB", "--block-size 32"),
    "max_num_batched_tokens": ("--on 24GB", "--max-num-batched-tokens 4096"),
    "max_num_seqs": ("--on 24GB", "--max-num-seqs 2048"),
    "shared_prefix": ("--on 24GB --max-model-len 128", "--shared-prefix 64"),
    "loaded": ("--on 24GB", "--loaded 1GiB"),
    "activation_peak": ("--on 24GB", "--activation-peak 1GiB"),
    "non_torch": ("--on 24GB", "--non-torch 1GiB"),
    "cuda_graphs": ("--on 24GB", "--cuda-graphs 1GiB"),
    "parallel": ("--engine llama.cpp --on 24GB", "--parallel 2"),
}
# The questions of `fit`, where an option has to count at the peak, its one figure.
OF_FIT = {
    "checkpoint": "--tokens 512",
    "step_in_backward": "--tokens 2",
    "no_outputs": f"{T} --pipeline 2 --micro-batches 8",
}
# How an answer is shown, not what is asked.
SHOWN = {"help", "json", "plot"}
# Where an option leaves an answer as it was, and why it has to: (family or door, option).
STILL = {
    ("*", "max_reuse_distance"): "a weight of these sizes is used again before ten values",
    ("gpt2", "loss_chunks"): "the rows of two chunks are fewer bytes than the peak, in backward",
    ("gpt2", "dropout"): "its class drops out already; another probability takes as many bytes",
    ("fit", "clip"): "its norms are blocks of the allocator, which a fit replays, not prints",
    ("fit", "no_memory_efficient_linear"): "it is the first step that takes more, the second not",
    ("fit", "logits"): "of 300 words they are fewer bytes than a layer takes; of 4,000 they count",
    ("gpt2", "clip"): "its norms are fewer bytes than the peak takes at another moment",
}
# What is refused of a llama, by name; all else is answered.
REFUSED = {"window", "kernel", "compile", "expert", "routing"}
# What an answer repeats of the question, and sentences about it.
ECHOES = ("run", "recipe", "config", "leaves_out", "engine", "model", "defaults")


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The files that the table names."""
    made = tmp_path_factory.mktemp("a folder of models")
    for name, config in CONFIGS.items():
        (made / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    adapter = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (made / "adapter.json").write_text(json.dumps(adapter), encoding="utf-8")
    deepspeed = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
    (made / "deepspeed.json").write_text(json.dumps(deepspeed), encoding="utf-8")
    trainer = {"per_device_train_batch_size": 2, "output_dir": "there"}
    (made / "trainer.json").write_text(json.dumps(trainer), encoding="utf-8")
    Asking.folder = made
    answer.cache_clear()
    # The allocator's replay takes most of the time of an answer, and is held by tests of its own;
    # what clipping takes shows nowhere else.
    kept = estimate_json._allocator
    estimate_json._allocator = lambda *asked: kept(*asked) if asked[1].optimizer == "sgd" else None
    yield made
    estimate_json._allocator = kept


class Asking:
    """Where the files of this session are."""

    folder = None


def words_of(family, options):
    """What a shell would make of a question."""
    made = []
    for word in shlex.split(options):
        if word == "TEACHER":
            config = CONFIGS[family] | {"num_hidden_layers": 2, "n_layer": 2}
            path = Asking.folder / f"teacher-{family}.json"
            path.write_text(json.dumps(config), encoding="utf-8")
            word = str(path)
        elif word in ("ADAPTER", "DEEPSPEED", "TRAINER"):
            word = str(Asking.folder / f"{word.lower()}.json")
        made.append(word)
    return [str(Asking.folder / f"{family}.json"), *made]


@functools.cache
def answer(door, family, options):
    """The figures of an answer, or what refuses the question."""
    more = {"fit": ["--on", "1 KiB"], "explain": ["--seen", "1 GiB"]}.get(door, [])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([door, *words_of(family, options), *more, "--json"])
        except SystemExit as stopped:
            status = stopped.code
    if status == 2 or not out.getvalue():
        return f"refused: {json.loads(err.getvalue().splitlines()[-1])['message']}"
    found = json.loads(out.getvalue())
    for name in ECHOES:
        if not (name == "leaves_out" and family == "exaone4"):  # which advises a command
            found.pop(name, None)
    if "sharding" in found:
        found["sharding"] = {k: found["sharding"].get(k) for k in ("stages", "fullest")}
    return json.dumps(found)


def ignored(door, family, options=None):
    """The options that leave the answer as it was, though nothing says that they have to."""
    found = []
    for option in options or of_door(door):
        question, said = (OF_ENGINE if door == "serve" else TABLE)[option]
        if door == "fit" and option in ("batch", "tokens"):
            continue  # what a search looks for itself, of which it is asked by leaving it out
        if door == "fit":
            question = OF_FIT.get(option, question)
        before = answer(door, family, question)
        after = answer(door, family, f"{question} {said}")
        if "(rank=" in after or "Sharding(" in after or "Model(" in after:
            found.append(f"{option} is refused with {after}")
        still = {("*", option), (family, option), (door, option)} & set(STILL)
        if after == before and not still and not after.startswith("refused: "):
            found.append(option)
    return found


def of_door(door):
    """The options of the table that a command takes."""
    known = {action.dest for action in cli.parser(door).of._actions}
    return [option for option in (OF_ENGINE if door == "serve" else TABLE) if option in known]


@pytest.mark.parametrize("family", DESCRIBED)
def test_every_option_counts_or_is_refused(family):
    assert ignored("estimate", family) == []
    told = {o: answer("estimate", family, " ".join(TABLE[o])) for o in of_door("estimate")}
    refused = {option for option, said in told.items() if said.startswith("refused")}
    assert refused >= REFUSED - {"expert", "routing"}
    assert refused == REFUSED or family != "llama"


def test_every_option_of_an_engine_counts():
    assert ignored("serve", "llama") == []
    assert not answer("serve", "llama", "--on 24GB").startswith("refused")


def test_every_option_of_an_engine_counts_for_its_figure():
    known = {action.dest for action in cli.parser("explain").of._actions}
    for option in sorted(known & set(OF_ENGINE) - {"engine"}):
        question, said = OF_ENGINE[option]
        question = question if "--engine" in question else f"--engine vllm {question}"
        before = answer("explain", "llama", question)
        assert answer("explain", "llama", f"{question} {said}") != before, option


def test_windows_count_where_a_family_has_them():
    without = answer("estimate", "mistral", f"{T} --window 0")  # any one below T asks for a mask
    assert without != answer("estimate", "mistral", T) and not without.startswith("refused")


def test_every_option_counts_for_fit_too():
    assert ignored("fit", "llama") == []
    question, said = TABLE["logits"]
    assert answer("fit", "wide", question) != answer("fit", "wide", f"{question} {said}")


def test_every_option_reaches_explain(monkeypatch):
    """Whose prediction is that of estimate: the other test holds the figures."""

    class Predicted:
        def __init__(self, model, recipe, run, **seen):
            told = estimate_json.as_json(model, recipe, run, estimate(model, recipe, run), {})
            self.figures = {k: v for k, v in json.loads(told).items() if k not in ECHOES}

        def as_dict(self):
            return {"notes": [], "figures": self.figures}

    monkeypatch.setattr(cli_explain, "explain", Predicted)
    assert ignored("explain", "llama") == []


def test_no_option_is_missing_in_the_table():
    taken = set()
    for door in ("estimate", "fit", "explain"):
        taken |= {action.dest for action in cli.parser(door).of._actions}
    own = {"model", "spare", "cards", "seen", "level", "predicted", "master", "states", "weights"}
    own |= {"pasted", "script"}
    assert taken - SHOWN - own - (set(OF_ENGINE) - set(TABLE)) == set(TABLE)
    taken = {action.dest for action in cli.parser("serve").of._actions}
    assert taken - SHOWN - {"model"} == set(OF_ENGINE)


def test_every_field_of_a_run_is_set_by_an_option():
    """So that a field that is new has an option, and a place in the table."""
    run, shared = set(), set()
    for question, said in TABLE.values():
        for family in ("llama", "qwen3_moe"):
            with contextlib.suppress(ValueError):
                before, after = (
                    run_of(family, words) for words in (question, f"{question} {said}")
                )
                run |= {f for f in FIELDS if getattr(before, f) != getattr(after, f)}
                these = (before.devices.words(), after.devices.words())
                shared |= {f for f in DEVICES if these[0][f] != these[1][f]}
    assert run == set(FIELDS) and shared == set(DEVICES)


def run_of(family, options):
    words = ["estimate", *words_of(family, options)]
    parsed = cli.parser("estimate").parse_args(words)
    return arguments.run_of(parsed, Model.from_config(CONFIGS[family]))


@pytest.mark.parametrize("family", ["llama", "exaone4"])
def test_the_net_holds_what_is_dropped(family, monkeypatch):
    """Each option is dropped on its way, one after the other: the net names it."""
    if family == "exaone4":
        pytest.importorskip("transformers")
    plain = {option: answer("estimate", family, TABLE[option][0]) for option in TABLE}
    whole = {option: answer("estimate", family, " ".join(TABLE[option])) for option in TABLE}
    parse, lost = cli.Parser.parse_args, []

    def dropping(self, *words):
        found = parse(self, *words)
        setattr(found, lost[0], None)
        return found

    monkeypatch.setattr(cli.Parser, "parse_args", dropping)
    caught, escaped = 0, []
    for option in TABLE:
        if plain[option].startswith("refused") or {("*", option), (family, option)} & set(STILL):
            continue  # the question itself is none for this family, or the option has no say
        if option == "trainer_config":
            continue  # read while the words are parsed, into the other options
        lost[:] = [option]
        dropped = answer.__wrapped__("estimate", family, " ".join(TABLE[option]))
        # As the net compares: what comes back is the answer without it, which it was not before.
        if dropped == plain[option] != whole[option]:
            caught += 1
        else:
            escaped.append(option)
    assert escaped == [] and caught > (40 if family == "llama" else 10)


def test_what_nothing_read_is_refused(monkeypatch, capsys):
    """An option that is new, and that no answer knows yet."""
    made = cli.parser

    def with_another(name):
        whole = made(name)
        whole.of.add_argument("--another", type=int)
        return whole

    monkeypatch.setattr(cli, "parser", with_another)
    words = ["estimate", str(Asking.folder / "llama.json"), "--tokens", "64"]
    assert main(words) == 0
    assert main([*words, "--another", "3"]) == 2
    assert "--another 3: nothing in this answer depends on it" in capsys.readouterr().err


# A family without a closed form.


def test_every_option_counts_or_is_refused_without_a_closed_form():
    pytest.importorskip("transformers")
    assert ignored("estimate", "exaone4") == []


def test_what_stays_of_it_takes_what_leaves_it_alone():
    """The Python door: every field of a run, and what a Sharding says."""
    pytest.importorskip("transformers")
    from memlab.lab.causal import Causal
    from memlab.lab.causal_at_rest import at_rest
    from memlab.lab.causal_cache import CALL, after_call
    from memlab.lab.trace_run import TRACED as OF_STEP
    from memlab.recipe import Recipe

    assert set(BETWEEN) <= set(OF_STEP)  # a trace answers the rest
    model, bf16 = Causal(CONFIGS["exaone4"]), Recipe.named("bf16")
    refused = set()
    for question, said in TABLE.values():
        try:
            run = run_of("llama", f"{question} {said}")
        except ValueError:
            continue
        train = run.phase == "train"
        if other := set(run.said()) - set(BETWEEN if train else CALL):
            with pytest.raises(ValueError, match=f"^({'|'.join(other)})="):
                (at_rest if train else after_call)(model, bf16, run)
        refused |= other
    assert refused | {*BETWEEN, *CALL} == set(FIELDS)
    with pytest.raises(ValueError, match="^devices=data 4, ZeRO 3 is not described for what stays"):
        at_rest(model, bf16, Run(tokens=64, devices=Sharding(data=4, zero=3)))


QUESTIONS = (
    "",
    f"{T} --batch 3 --checkpoint block --attention eager --optimizer sgd",
    f"{T} --precision bf16 --loss chunked --loss-chunks 2 --optimizer-impl foreach --backend cpu",
    f"{T} --phase decode --precision bf16 --batch 2 --inference-mode",
    f"{T} --phase prefill --logits last",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_command_that_is_advised_asks_the_same(question):
    """Parsed as a shell would, it says every option that was given, and no other but tokens."""
    pytest.importorskip("transformers")
    told = json.loads(answer("estimate", "exaone4", question))["leaves_out"][0]
    words = shlex.split(told[told.index("memlab trace") :])
    assert words[0] == "memlab"
    theirs = vars(cli.parser("trace").parse_args(words[1:]))
    mine = vars(cli.parser("estimate").parse_args(["estimate", *words_of("exaone4", question)]))
    mine["tokens"] = mine["tokens"] or 512  # as many as the model has positions
    for name in set(theirs) - {"run"}:
        assert theirs[name] == mine.get(name), name
    assert {n for n, v in mine.items() if v} <= set(theirs) | {"json"}


def test_a_command_carries_no_option_that_the_other_does_not_take():
    options = cli.parser("estimate").parse_args(["estimate", "llama-3-8b", "--fsdp", "2"])
    with pytest.raises(ValueError, match="--fsdp 2: memlab trace does not take it"):
        asked.command("trace", options)


# Models of another kind.
WRONG = {
    "BertForMaskedLM is an encoder": {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
    },
    "T5ForConditionalGeneration is an encoder-decoder": {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "is_encoder_decoder": True,
    },
    "CLIPModel is a dual encoder of texts and of images or audio, like CLIP": {
        "model_type": "clip",
        "architectures": ["CLIPModel"],
    },
    "LlamaForSequenceClassification is made for another task": CONFIGS["llama"]
    | {"architectures": ["LlamaForSequenceClassification"]},
    "FluxTransformer2DModel is a part of a diffusers pipeline": {
        "_class_name": "FluxTransformer2DModel",
        "num_layers": 19,
    },
}


# What an architecture says by itself, where a door knows its type too.
BY_ITSELF = {
    "CLIPModel is a dual encoder of texts and of images or audio, like CLIP": (
        "CLIPModel is a model without an output head"
    )
}


@pytest.mark.parametrize("words", WRONG)
def test_a_model_of_another_kind_is_named_as_what_it_is(words, tmp_path, capsys):
    from memlab.page.answer import outcome

    path = tmp_path / "config.json"
    path.write_text(json.dumps(WRONG[words]), encoding="utf-8")
    for door in (["estimate"], ["fit", "--on", "H100"], ["explain", "--seen", "1GB"]):
        assert main([door[0], str(path), *door[1:], "--tokens", "64"]) == 2
        assert words in capsys.readouterr().err
    with pytest.raises(ValueError, match=BY_ITSELF.get(words, words)):
        Model.from_config(path)
    state = json.dumps({"model": "config", "config": WRONG[words]})
    assert words in outcome(state, lambda *asked: "?")["error"]


@pytest.mark.parametrize("words", WRONG)
def test_nor_is_it_traced(words, tmp_path, capsys):
    pytest.importorskip("transformers")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(WRONG[words]), encoding="utf-8")
    assert main(["trace", str(path), "--tokens", "64"]) == 2
    assert words in capsys.readouterr().err


def test_an_encoder_that_is_told_to_decode_is_a_causal_model():
    pytest.importorskip("transformers")
    from memlab.lab.causal import Causal

    bert = {"model_type": "bert"} | {k: v for k, v in _SIZES.items() if k[:3] != "num"}
    bert |= {"num_hidden_layers": 2, "num_attention_heads": 4}
    for more in (
        {"is_decoder": True},
        {"is_decoder": True, "architectures": ["BertForMaskedLM"]},
        {"architectures": ["BertLMHeadModel"]},
    ):
        assert Causal(bert | more).parameter_count > 0
    with pytest.raises(ValueError, match="bert is an encoder"):
        Causal(bert)
    with pytest.raises(ValueError, match="bart is an encoder-decoder"):
        Causal({"model_type": "bart"})
