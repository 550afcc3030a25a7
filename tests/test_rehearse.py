"""Programs run unmodified on a card that is not there, and to the byte as described or as run."""

import contextlib
import io
import json
import sys
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import memlab  # noqa: E402
from memlab.cli import main  # noqa: E402
from memlab.measure.fake_cuda import (  # noqa: E402
    card,
    guard,
    kinds,
    likely,
    methods,
    moving,
    values,
)
from memlab.rehearse import (  # noqa: E402
    ending,
    imports,
    kernels,
    of_command,  # noqa: E402
    ranks,
)
from memlab.rehearse.command import program  # noqa: E402

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="proven on Linux"),
    # those of the libraries that a program uses are its own
    pytest.mark.filterwarnings("ignore"),
]

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 300}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512}
LLAMA = {"model_type": "llama"} | SIZES
MIXTRAL = {"model_type": "mixtral"} | SIZES | {"num_local_experts": 4, "num_experts_per_tok": 2}
STEP_COUNTERS = 4  # bytes of one on the host, which a description counts on the card by choice

MODEL = """
import json, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
def model(dtype=torch.bfloat16, **more):
    config = {config!r} | more
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=dtype)
"""
LOOP = """
device = "cuda" if torch.cuda.is_available() else "cpu"
model = model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(9):
    ids = torch.randint(0, 300, (2, TOKENS), device=device)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
"""
TRAINER = """
from transformers import Trainer, TrainingArguments
data = [{"input_ids": torch.randint(0, 300, (64,))} for _ in range(16)]
data = [each | {"labels": each["input_ids"]} for each in data]
def train(model, **more):
    how = dict(max_steps=9, report_to=[], disable_tqdm=True) | more
    args = TrainingArguments(sys.argv[1], per_device_train_batch_size=2, **how)
    Trainer(model=model, args=args, train_dataset=data).train()
"""
PREFERENCES = """
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
from peft import LoraConfig
words = Tokenizer(models.WordLevel({"<unk>": 0, "<pad>": 1, "<eos>": 2, "a": 3}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words = PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>"
)
how = dict(max_steps=9, report_to=[], disable_tqdm=True, bf16=False)
"""
SFT = """
data = Dataset.from_dict({"input_ids": [[3] * 32] * 16})
lora = LoraConfig(r=16, target_modules=["q_proj", "v_proj"])
args = SFTConfig(sys.argv[1], per_device_train_batch_size=4, max_length=32, **how)
SFTTrainer(
    model=model(), args=args, train_dataset=data, processing_class=words, peft_config=lora
).train()
"""
DPO = """
text = lambda n: " ".join(["a"] * n)
pair = {"chosen": [" " + text(15)] * 16, "rejected": [" " + text(15)] * 16}
data = Dataset.from_dict({"prompt": [text(16)] * 16} | pair)
args = DPOConfig(
    sys.argv[1], per_device_train_batch_size=2, max_length=32, gradient_checkpointing=False, **how
)
DPOTrainer(
    model=model(), ref_model=model(), args=args, train_dataset=data, processing_class=words
).train()
"""


@pytest.fixture
def rehearsed(tmp_path, monkeypatch):
    """Rehearses a program of a few lines in a folder of its own."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))

    def rehearse(text, config=LLAMA, on=None, **more):
        path = tmp_path / "train.py"
        path.write_text((MODEL.format(config=config) + text) if config else text, "utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            found = memlab.rehearse(path, [str(tmp_path / "out")], on=on, **more)
        found.said = said.getvalue()
        return found

    rehearse.folder = tmp_path
    return rehearse


def described(config, words, folder):
    """The peak that `memlab estimate` answers, and that of the first step."""
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["estimate", str(path), *words.split(), "--json"]) == 0
    peak = json.loads(said.getvalue())["peak"]
    return peak["bytes"], peak["first_step_bytes"]


def loop(tokens=64):
    return LOOP.replace("TOKENS", str(tokens))


PARAMETERS = 2 * 9 + 3  # tensors of LLAMA, each with a step counter


@pytest.mark.parametrize("tokens", [64, 2])
def test_a_plain_loop_is_as_described(rehearsed, tokens):
    """With two tokens the peak is the optimizer's, whose temporaries are foreach's."""
    found = rehearsed(loop(tokens))
    words = f"--precision bf16 --batch 2 --tokens {tokens}"
    peak, first = described(LLAMA, words, rehearsed.folder)
    # Its counters come one by one in the first optimizer step, where that holds the peak.
    assert peak - found.peak == STEP_COUNTERS * PARAMETERS
    assert first - found.first in (0, STEP_COUNTERS * PARAMETERS)
    assert len(found.steps) == 2 and found.later == found.peak
    assert found.failure is None and found.status == 0


def test_an_optimizer_that_steps_in_parts_after_a_backward_pass_took_one_step(rehearsed):
    """As DeepSpeed's does for each of its sub-groups."""
    parts = "for part in range(3):\n        optimizer.step()\n"
    found = rehearsed(loop().replace("optimizer.step()\n", parts, 1), steps=3)
    assert len(found.steps) == 3 and len(set(found.steps[1:])) == 1
    assert found.later == rehearsed(loop(), steps=3).later


def test_all_is_put_back(rehearsed):
    rehearsed(loop())  # libraries are imported
    before = (torch.save, torch.compile, torch.Event, dict(vars(torch.cuda)), list(sys.meta_path))
    first = rehearsed(loop())
    after = (torch.save, torch.compile, torch.Event, dict(vars(torch.cuda)), list(sys.meta_path))
    assert before == after and not torch.cuda.is_available()
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(layer.parameters())
    attended = torch.nn.functional.scaled_dot_product_attention(*torch.rand(3, 1, 2, 4, 8))
    layer(attended).sum().backward()
    optimizer.step()
    assert type(layer.weight.data) is torch.Tensor and layer.weight.isfinite().all()
    assert torch.ones(2).pin_memory is not None and torch.device("cpu") == layer.weight.device
    with pytest.raises((AssertionError, RuntimeError)):
        torch.zeros(2, device="cuda")
    assert rehearsed(loop()).peak == first.peak


@pytest.mark.parametrize("precision", ["bf16", "autocast-bf16"])
def test_trainer_is_as_described(rehearsed, precision):
    half = precision == "bf16"
    call = f"train(model(torch.{'bfloat16' if half else 'float32'}), bf16={not half})"
    found = rehearsed(TRAINER + call)
    words = f"--precision {precision} --batch 2 --tokens 64 --loop trainer"
    assert found.peak == described(LLAMA, words, rehearsed.folder)[0]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert (
            main(["estimate", str(rehearsed.folder / "config.json"), *words.split(), "--json"]) == 0
        )
    held, loss = json.loads(said.getvalue())["held"], 4
    assert held["between_steps"] == found.held["between_steps"]
    for moment in ("after_forward", "after_backward"):
        assert found.held[moment] - held[moment] in (0, loss), moment


def test_experts_are_as_described(rehearsed):
    found = rehearsed(TRAINER + "train(model())", MIXTRAL)
    words = "--precision bf16 --batch 2 --tokens 64 --loop trainer"
    assert found.peak == described(MIXTRAL, words, rehearsed.folder)[0]
    assert any("of 4: even routing" in what for what, _ in found.assumed)


def test_preference_pairs_are_as_described(rehearsed):
    pytest.importorskip("trl")
    if find_spec("triton") is None:
        with pytest.raises(ValueError, match="trl takes another path without triton"):
            rehearsed(PREFERENCES + DPO)
        return
    found = rehearsed(PREFERENCES + DPO, LLAMA | {"tie_word_embeddings": True})
    words = "--precision bf16 --batch 2 --tokens 32 --completion 16 --loop dpo --checkpoint none"
    config = LLAMA | {"tie_word_embeddings": True}
    assert found.peak == described(config, words, rehearsed.folder)[0]


def test_lora_under_sft_is_as_described(rehearsed):
    pytest.importorskip("trl")
    if find_spec("triton") is None:
        with pytest.raises(ValueError, match="pip install triton"):
            rehearsed(PREFERENCES + SFT)
        return
    found = rehearsed(PREFERENCES + SFT)
    words = "--precision bf16 --lora-rank 16 --batch 4 --tokens 32 --loop sft --checkpoint block"
    assert found.peak == described(LLAMA, words, rehearsed.folder)[0]


QLORA = """
import os
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import BitsAndBytesConfig
os.makedirs("base", exist_ok=True)
json.dump({config!r} | {{"dtype": "bfloat16"}}, open("base/config.json", "w"))
how = BitsAndBytesConfig(
    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16, **{how}
)
base = AutoModelForCausalLM.from_pretrained("base", quantization_config=how, dtype="auto")
base = {prepared}
lora = LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
made = get_peft_model(base, lora)
train(made, bf16={autocast}, gradient_checkpointing=True)
"""
WIDE = LLAMA | {"hidden_size": 256, "intermediate_size": 512}


def qlora(how=None, prepared="(base.enable_input_require_grads(), base)[1]", autocast=False):
    more = {"config": WIDE, "how": how or {}, "prepared": prepared, "autocast": autocast}
    return TRAINER + QLORA.format(**more)


def test_adapters_over_nf4_are_as_described(rehearsed, monkeypatch):
    """bitsandbytes' own layers and kernels, and its scales are weights."""
    functional = pytest.importorskip("bitsandbytes.functional")
    before = dict(functional.name2qmap)
    monkeypatch.chdir(rehearsed.folder)
    found = rehearsed(qlora(), WIDE)
    words = "--precision bf16 --batch 2 --tokens 64 --lora-rank 16 --lora-targets q,v "
    words += "--lora-base nf4 --checkpoint block --loop trainer"
    assert found.failure is None, found.failure
    assert found.peak == described(WIDE, words, rehearsed.folder)[0]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["estimate", "config.json", *words.split(), "--json"]) == 0
    contents = json.loads(said.getvalue())["peak"]["contents"]
    assert found.contents()["weights"] == contents["weights"]

    # Loading asks for all weights in one block first: half a byte for each number that is packed.
    most = max(event.bytes for event in found.tracker.timeline if event.phase == "start")
    assert most == 2 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512) // 2 + 2 * (
        2 * 300 * 256 + 5 * 256
    )

    with monkeypatch.context() as patched:
        patched.setattr(kernels, "kernels", dict)
        hidden = rehearsed(qlora(), WIDE)
    assert hidden.peak < found.peak, "a layer writes its weight out on the way"

    # Scales in one byte each, theirs in fp32 for 256, an offset and a map of 256 numbers a layer.
    twice = rehearsed(qlora({"bnb_4bit_use_double_quant": True}), WIDE)
    scales = [s // 64 for s in 2 * [256 * 256, 256 * 128, 256 * 128, 256 * 256, *3 * [256 * 512]]]
    less = sum(4 * count - count - 4 * -(-count // 256) - 4 - 4 * 256 for count in scales)
    assert contents["weights"] - twice.contents()["weights"] == less
    assert less > found.peak - twice.peak > 0, "scales are written out again on the way"
    assert not any("tolist" in what for what, _ in twice.assumed)
    kept = functional.name2qmap
    assert kept.keys() == before.keys(), "a map without values was left behind"
    assert all(kept[name] is before[name] for name in before), "another map stands in its place"


def test_the_usual_recipe_of_qlora_keeps_its_head_in_fp32(rehearsed, monkeypatch):
    """peft's prepare_model_for_kbit_training: tables and norms twice as large."""
    pytest.importorskip("bitsandbytes")
    monkeypatch.chdir(rehearsed.folder)
    plain = rehearsed(qlora(autocast=True), WIDE).contents()["weights"]
    usual = rehearsed(qlora(None, "prepare_model_for_kbit_training(base)", True), WIDE)
    assert usual.contents()["weights"] - plain == 2 * (2 * 300 * 256 + 5 * 256)


def test_a_base_in_int8_has_no_outliers_and_says_so(rehearsed, monkeypatch):
    pytest.importorskip("bitsandbytes")
    monkeypatch.chdir(rehearsed.folder)
    four = 'load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16'
    found = rehearsed(qlora().replace(four, "load_in_8bit=True"), WIDE)
    assert found.failure is None, found.failure
    adapters = 2 * 16 * (256 + 256 + 256 + 128) * 4
    codes = 2 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512)
    tables = 2 * (2 * 300 * 256 + 5 * 256)
    assert found.contents()["weights"] == codes + tables + adapters
    rows = 2 * (2 * 256 + 2 * 128 + 2 * 512 + 256)
    scales = [each for each in found.holders() if each.library.where.endswith("ops.py:223")]
    assert sum(each.bytes for each in scales) >= 4 * rows
    assert any("any() of values" in what and "ops.py" in line for what, line in found.assumed)


OPTIMIZED = """
import bitsandbytes
model = model().cuda()
optimizer = bitsandbytes.optim.{name}(model.parameters(), lr=1e-4)
for step in range(9):
    ids = torch.randint(0, 300, (2, 64), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("AdamW8bit", "bnb_adamw8bit"),
        ("PagedAdamW8bit", "bnb_paged_adamw8bit"),
        ("PagedAdamW32bit", "bnb_paged_adamw"),
    ],
)
def test_optimizers_of_bitsandbytes_are_as_described(rehearsed, name, said):
    pytest.importorskip("bitsandbytes")
    config = WIDE | {"vocab_size": 3000}  # pages are for tensors of 100,000 numbers
    found = rehearsed(OPTIMIZED.format(name=name), config)
    words = f"--precision bf16 --batch 2 --tokens 64 --optimizer {said}"
    assert found.failure is None, found.failure
    peak, first = described(config, words, rehearsed.folder)
    assert found.peak == peak
    # Two maps of 256 numbers, which a description has from the start and bitsandbytes makes in the
    # first step of the optimizer.
    assert first - found.first in (0, 2 * 256 * 4)


TORCHAO = """
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig
from torchao.quantization import quantize_
made = model()
quantize_(made, {how}())
with torch.no_grad():
    made(torch.randint(0, 300, (2, 64)))
"""
BASE = """
import os
from transformers import TorchAoConfig
from torchao.quantization import Int8WeightOnlyConfig
os.makedirs("base", exist_ok=True)
json.dump({config!r} | {{"dtype": "bfloat16"}}, open("base/config.json", "w"))
how = TorchAoConfig(Int8WeightOnlyConfig())
made = AutoModelForCausalLM.from_pretrained(
    "base", quantization_config=how, dtype="auto", device_map="cuda"
)
with torch.no_grad():
    made(torch.randint(0, 300, (2, 64), device="cuda"))
"""


@pytest.mark.parametrize("how", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
def test_layers_of_torchao_are_as_run(rehearsed, how):
    pytest.importorskip("torchao")
    from memlab.lab.quiet import quiet
    from memlab.measure.step_tracker import StepTracker

    text = MODEL.format(config=LLAMA) + TORCHAO.format(how=how)
    found = rehearsed(text, None, backend="cpu")
    assert found.failure is None, found.failure
    tracker = StepTracker("cpu")
    with quiet(), tracker:
        exec(compile(text, "run.py", "exec"), {"__name__": "__main__"})
    assert found.peak == tracker.peak


def test_a_base_by_torchao_is_what_torchao_makes(rehearsed, monkeypatch):
    """As many bytes as the same layers of a model that is really here."""
    pytest.importorskip("torchao")
    from torchao.quantization import Int8WeightOnlyConfig, quantize_
    from transformers import AutoConfig, AutoModelForCausalLM

    monkeypatch.chdir(rehearsed.folder)
    found = rehearsed(BASE.format(config=LLAMA))
    assert found.failure is None, found.failure
    real = AutoModelForCausalLM.from_config(AutoConfig.for_model(**LLAMA), dtype=torch.bfloat16)
    head = real.lm_head
    quantize_(real, Int8WeightOnlyConfig(), lambda m, _: type(m) is torch.nn.Linear and m != head)
    size = sum(each.nbytes for weight in real.parameters() for each in flat(weight))
    assert found.contents()["weights"] == size


def flat(tensor):
    """The plain tensors inside of one."""
    inner = getattr(tensor, "__tensor_flatten__", None)
    if inner is None:
        return [tensor]
    return [each for name in inner()[0] for each in flat(getattr(tensor, name))]


def test_a_base_in_another_format_is_refused(rehearsed, monkeypatch):
    monkeypatch.chdir(rehearsed.folder)
    with pytest.raises(ValueError, match="base: a quantized base is rehearsed on a card"):
        rehearsed(qlora(), WIDE, backend="cpu")
    text = qlora().replace("import BitsAndBytesConfig", "import FineGrainedFP8Config")
    text = text.replace("how = BitsAndBytesConfig", "how = FineGrainedFP8Config() or dict")
    with pytest.raises(ValueError, match="quantized by fp8 is not rehearsed yet; bitsandbytes'"):
        rehearsed(text, WIDE)


# One rank of several.

RANKS = """
import os
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
print(dist.get_rank(), dist.get_world_size(), torch.cuda.device_count())
if HOW == "ddp":
    made = DistributedDataParallel(model().cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
else:
    with torch.device("meta"):
        made = model()
    for layer in made.model.layers:
        fully_shard(layer)
    fully_shard(made).to_empty(device="cuda")
optimizer = torch.optim.AdamW(made.parameters(), lr=1e-5)
for step in range(5):
    ids = torch.randint(0, 300, (1, 64), device="cuda")
    loss = made(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SHARDED = """
config = {"fsdp_version": 2, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}
how = dict(bf16=True, fsdp="full_shard auto_wrap", fsdp_config=config)
train(model(torch.float32), **how)
"""
EVEN = LLAMA | {"vocab_size": 304}  # rows that eight ranks divide
OF_RANKS = {"ddp": "--ranks 8 --zero 0", "fsdp": "--fsdp 8"}


@pytest.mark.parametrize("how", OF_RANKS)
def test_one_rank_of_eight_is_as_described(rehearsed, how):
    found = rehearsed(RANKS.replace("HOW", repr(how)), EVEN, on="H100", gpus=8)
    assert found.failure is None, found.failure
    assert found.said == "0 8 8\n" and found.room.nccl > 0 and found.others[0].asked.rank == 7
    assert found.others[0].peak == found.peak
    words = f"--precision bf16 --tokens 64 {OF_RANKS[how]}"
    peak = described(EVEN, words, rehearsed.folder)[0]
    assert peak - found.peak == STEP_COUNTERS * PARAMETERS
    assert not torch.distributed.is_initialized()


COPIES = """
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("copies", "shards"))
shard = fully_shard
fully_shard = lambda module: shard(module, mesh=mesh)
if HOW"""
DIVIDED = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel
from torch.distributed.tensor.parallel import SequenceParallel, PrepareModuleInput
from torch.distributed.tensor.parallel import parallelize_module
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (4,))
made = model().cuda()
columns = [f"self_attn.{name}_proj" for name in "qkv"] + ["mlp.gate_proj", "mlp.up_proj"]
tokens, whole, cut, norms = Shard(1), Replicate(), {}, {}
if SEQUENCE:
    cut = {"output_layouts": tokens, "use_local_output": False}
    norms = {name: SequenceParallel() for name in ("input_layernorm", "post_attention_layernorm")}
    norms["self_attn"] = PrepareModuleInput(
        input_kwarg_layouts={"hidden_states": tokens},
        desired_input_kwarg_layouts={"hidden_states": whole},
    )
    norms["mlp"] = PrepareModuleInput(input_layouts=tokens, desired_input_layouts=whole)
for layer in made.model.layers:
    plan = {name: ColwiseParallel() for name in columns}
    rows = {name: RowwiseParallel(**cut) for name in ("self_attn.o_proj", "mlp.down_proj")}
    parallelize_module(layer, mesh, norms | plan | rows)
ends = {"model.embed_tokens": RowwiseParallel(input_layouts=whole, **cut)}
first = tokens if SEQUENCE else whole
ends["lm_head"] = ColwiseParallel(input_layouts=first, use_local_output=False)
if SEQUENCE:
    ends["model.norm"] = SequenceParallel()
parallelize_module(made, mesh, ends)
optimizer = torch.optim.AdamW(made.parameters(), lr=1e-5, foreach=FOREACH)
with loss_parallel():
    for step in range(3):
        ids = torch.randint(0, 300, (2, 64), device="cuda")
        loss = made(input_ids=ids, labels=ids).loss
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()
"""
HEADS = EVEN | {"num_key_value_heads": 4}


@pytest.mark.parametrize("sequence", [False, True])
def test_matrices_that_are_divided_are_as_described(rehearsed, sequence):
    """Tensor parallel by torch's plan; the last rank has as large a part of each matrix."""
    text = DIVIDED.replace("SEQUENCE", str(sequence)).replace("FOREACH", str(sequence))
    found = rehearsed(text, HEADS, gpus=4)
    assert found.failure is None, found.failure
    words = "--precision bf16 --batch 2 --tokens 64 --tensor 4" + " --sequence" * sequence
    words += "" if sequence else " --optimizer-impl forloop"
    peak = described(HEADS, words, rehearsed.folder)[0]
    assert peak - found.peak == STEP_COUNTERS * PARAMETERS
    assert [(each.asked.rank, each.peak) for each in found.others] == [(3, found.peak)]


BY_THEIR_PLAN = """
import os
from transformers import DistributedConfig
os.makedirs("base", exist_ok=True)
json.dump({config!r}, open("base/config.json", "w"))
how = dict(distributed_config=DistributedConfig(tp_size=4, tp_plan="auto"), dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained("base", **how)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=False)
for step in range(3):
    ids = torch.randint(0, 300, (2, 64), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
"""


def test_transformers_own_plan_is_as_described(rehearsed, monkeypatch):
    monkeypatch.chdir(rehearsed.folder)
    found = rehearsed(BY_THEIR_PLAN.format(config=HEADS), HEADS, gpus=4)
    assert found.failure is None, found.failure
    words = "--precision bf16 --batch 2 --tokens 64 --tensor 4 --plan transformers"
    peak = described(HEADS, words + " --optimizer-impl forloop", rehearsed.folder)[0]
    assert peak - found.peak == STEP_COUNTERS * PARAMETERS


def test_foreach_takes_no_matrix_beside_a_divided_one(rehearsed):
    """As torch says on a card too: norms are whole here, and foreach takes one kind at a time."""
    text = DIVIDED.replace("SEQUENCE", "False").replace("FOREACH", "None")
    assert "got mixed torch.Tensor and DTensor" in rehearsed(text, HEADS, gpus=4, rank=0).failure


SENT = """
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
dist.init_process_group("nccl")
sent = torch.rand(1024, device="cuda")
got = collectives.all_to_all_single(sent, [256] * 4, [256] * 4, dist.group.WORLD)
del sent
print(type(got).__name__, torch.cuda.memory_allocated())
got = got.wait()
print(type(got).__name__, torch.cuda.memory_allocated())
"""


def test_what_is_sent_is_held_until_it_is_waited_for(rehearsed, monkeypatch):
    """As NCCL holds it; without one of three mends the result is waited for, or is a second one."""
    said = "AsyncCollectiveTensor 8192\nFakeTensor 4096\n"
    assert rehearsed(SENT, None, gpus=4, rank=0).said == said
    for name, without in (("wraps", dict), ("divided", lambda changes: None)):
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules["memlab.rehearse.run"], name, without)
            assert rehearsed(SENT, None, gpus=4, rank=0).said != said, name
    monkeypatch.setattr(ranks.PendingCollectives, "leaves", lambda *_: None)
    assert rehearsed(SENT, None, gpus=4, rank=0).said != said


STAGES = """
import os
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from transformers.loss.loss_utils import ForCausalLMLoss
dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
class Part(torch.nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.model, each = whole.model, len(whole.model.layers) // ranks
        self.model.layers = whole.model.layers[rank * each : (rank + 1) * each]
        if rank < ranks - 1:
            self.model.norm = torch.nn.Identity()
        else:
            self.lm_head = whole.lm_head
        if rank:
            self.model.embed_tokens = None
    def forward(self, x):
        given = {"inputs_embeds" if rank else "input_ids": x}
        hidden = self.model(**given).last_hidden_state
        return hidden if rank < ranks - 1 else self.lm_head(hidden)
part = Part(model()).to(device)
stage = PipelineStage(part, rank, ranks, device)
def loss_of(logits, labels):
    return ForCausalLMLoss(logits, labels, vocab_size=300)
schedule = Schedule1F1B(stage, 4, loss_fn=loss_of)
optimizer = torch.optim.AdamW(part.parameters(), lr=1e-5)
ids = torch.randint(0, 300, (8, 64), device=device)
for step in range(3):
    if rank == 0:
        schedule.step(ids)
    elif rank == ranks - 1:
        schedule.step(target=ids, losses=[])
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
"""
DEEP = LLAMA | {"num_hidden_layers": 6}


def test_ranks_of_a_pipeline_are_as_described(rehearsed):
    """Each learns its shapes from the one before; one that was not rehearsed cannot tell."""
    found = rehearsed(STAGES, DEEP, gpus=3, rank="all")
    assert found.failure is None, found.failure
    path = rehearsed.folder / "config.json"
    path.write_text(json.dumps(DEEP), encoding="utf-8")
    words = "--precision bf16 --batch 2 --tokens 64 --micro-batches 4 --pipeline 3 --json"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["estimate", str(path), *words.split()]) == 0
    peaks = [each["bytes"] for each in json.loads(said.getvalue())["sharding"]["stages"]]
    ranks = sorted([found, *found.others], key=lambda each: each.asked.rank)
    counters = [STEP_COUNTERS * (2 * 9 + more) for more in (1, 0, 2)]
    ids = [0, 8 * 64 * 8, 0]  # which this program makes on the middle rank too
    assert [each.asked.rank for each in ranks] == [0, 1, 2]
    peaks = zip(peaks, ids, counters, strict=True)
    assert [each.peak for each in ranks] == [p + more - less for p, more, less in peaks]
    with pytest.raises(ValueError, match="stage 2 of a pipeline asks stage 1 for shapes"):
        rehearsed(STAGES, DEEP, gpus=3, rank=2)


def sharded(rehearsed):
    text = TRAINER.replace("per_device_train_batch_size=2", "per_device_train_batch_size=1")
    return rehearsed(text + SHARDED, EVEN, gpus=8)


def test_trainer_under_fsdp2_is_as_described(rehearsed, monkeypatch):
    pytest.importorskip("accelerate")
    words = "--precision fp32 --param-dtype bf16 --tokens 64 --fsdp 8 --loop trainer"
    right = described(EVEN, words, rehearsed.folder)[0]
    assert sharded(rehearsed).peak == right
    # accelerate knows each parameter again by its address: without one, nothing is stepped
    monkeypatch.setattr(methods, "address", lambda _: 0)
    assert sharded(rehearsed).peak != right


PREPARED = """
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader
given = dict(fsdp_plugin=FullyShardedDataParallelPlugin(
    fsdp_version=2,
    auto_wrap_policy="transformer_based_wrap",
    transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
)) if {said} else dict()
accelerator, made = Accelerator(**given), model()
optimizer = torch.optim.AdamW(made.parameters(), lr=1e-4)
rows = DataLoader([torch.randint(0, 300, (64,)) for _ in range(64)], batch_size=1)
made, optimizer, rows = accelerator.prepare(made, optimizer, rows)
print(type(made).__name__, accelerator.num_processes)
for ids in rows:
    accelerator.backward(made(input_ids=ids, labels=ids).loss)
    optimizer.step()
    optimizer.zero_grad()
"""


def test_accelerate_launch_says_what_a_program_may_say_itself(rehearsed, capsys):
    pytest.importorskip("accelerate")
    found = rehearsed(PREPARED.format(said=True), EVEN, gpus=8, rank=0)
    assert found.failure is None and found.said == "FSDPLlamaForCausalLM 8\n", found.failure
    path = rehearsed.folder / "launched.py"
    path.write_text(MODEL.format(config=EVEN) + PREPARED.format(said=False), "utf-8")
    words = "accelerate launch --use_fsdp --fsdp_version 2 --num_processes 8 --mixed_precision no "
    words += "--num_machines 1 --dynamo_backend no --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP "
    words += "--fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer"
    launched = of_command([*words.split(), str(path)], rank=0)
    assert launched.failure is None, launched.failure
    assert launched.peak == found.peak and launched.held == found.held


def test_without_what_finds_the_card_or_hides_shapes_ranks_are_wrong(rehearsed, monkeypatch):
    text = RANKS.replace("HOW", "'fsdp'").replace("(1, 64)", "(1, 2)")
    other = EVEN | {"vocab_size": 4000}  # DTensor remembers shapes that it has worked out
    with monkeypatch.context() as without:
        without.setattr(ranks, "NO_MEMORY", ())
        wrong = rehearsed(text, other, gpus=8).peak
    right = rehearsed(text, other, gpus=8).peak
    assert wrong > right
    monkeypatch.setattr(card, "BELOW", ("_cuda_getDevice",))
    found = rehearsed(text, other, gpus=8)
    assert found.failure is not None or found.peak != right


TIMED = """
from datetime import timedelta
import torch.distributed as dist
dist.init_process_group("nccl")
dist.distributed_c10d._set_pg_timeout(timedelta(seconds=100), dist.group.WORLD)
print("set", dist.get_world_size())
"""


def test_a_timeout_of_a_group_is_none_here(rehearsed):
    """As torchtitan sets one after its first step: a wheel for the CPU has no NCCL to ask."""
    assert rehearsed(TIMED, None, gpus=4, rank=0).said == "set 4\n"


# Traps: each fails where its mend is taken out.

SCALED = """
import torch
from torch.nn import GELU, Linear, Sequential
model = Sequential(Linear(64, 256), GELU(), Linear(256, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for step in range(4):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.rand(8, 64, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(f"{norm:.2f}", scaler.get_scale())
"""


def test_a_scaler_steps(rehearsed):
    found = rehearsed(SCALED, None)
    weights = found.contents()["weights"]
    assert len(found.steps) == 2 and found.contents()["optimizer"] == 2 * weights
    assert found.said.startswith("1.00 65536.0")


def test_a_scaler_that_forgets_its_flag_does_not(rehearsed, monkeypatch):
    monkeypatch.setattr(kinds, "KEEPS", ())
    kinds.kind_of.cache_clear()
    try:
        assert rehearsed(SCALED, None).steps == []
    finally:
        kinds.kind_of.cache_clear()


def test_without_both_lists_foreach_is_lost(rehearsed, monkeypatch):
    right = rehearsed(loop(2)).peak

    class Half:
        """The first list alone."""

        def __call__(self, name):
            home = __import__(name, fromlist=["x"])
            return home if name.endswith("_foreach_utils") else type("No", (), LISTS)

    LISTS = {"_foreach_supported_types": []}
    monkeypatch.setattr(moving, "import_module", Half())
    assert rehearsed(loop(2)).peak < right


def test_who_holds_a_gradient_counts(rehearsed, monkeypatch):
    """Gradients that meet at a tensor are added in place where nobody else holds the first."""
    right = rehearsed(loop()).tracker
    monkeypatch.setattr("memlab.measure.step_tracker.TENSOR_HOLDERS", 0)
    other = rehearsed(loop()).tracker
    assert len(other.records) > len(right.records)


def test_attention_is_that_of_a_card(rehearsed, monkeypatch):
    right = rehearsed(loop())
    assert any("flash" in record.op for record in right.tracker.records.values())
    monkeypatch.setattr(guard, "attention", guard._none)
    assert "no kernel of CUDA runs here" in rehearsed(loop()).failure


def test_operators_that_only_cuda_keeps_whole_are_asked_of_the_dispatcher():
    from memlab.measure.fake_cuda.undo import Changes

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert not has("aten::silu_backward", "CUDA")
    with Changes() as changes:
        guard.kernels(changes)
        assert has("aten::silu_backward", "CUDA") and has("aten::_fused_rms_norm", "CUDA")
        assert not has("aten::matmul", "CUDA")
    assert not has("aten::silu_backward", "CUDA")


def test_a_step_that_follows_no_backward_pass_is_not_one_of_the_two(rehearsed):
    """DeepSpeed makes the states of its optimizer by a step before the first; later ones count."""
    text = loop().replace("for step in", "optimizer.step()\nfor step in", 1)
    assert "optimizer.step()\nfor step in" in text
    assert rehearsed(text).later == rehearsed(loop()).later


COPIED = """
import copy, torch
x = torch.zeros(1024, device="cuda")
for _ in range(9):
    y = copy.deepcopy({"x": x, "layer": torch.nn.Linear(4, 4)})
print(y["x"].device, y["x"].fake_mode is x.fake_mode)
"""


def test_copies_are_counted_and_go_and_share_what_finds_shapes(rehearsed):
    """A copy of the mode has the addresses of storages, and Python frees each a second time."""
    found = rehearsed(COPIED)
    assert found.said == "cuda:0 True\n"
    assert found.peak == 3 * 4096  # it, its last copy, and the next one


TENSORS = """
import torch
a, b = torch.zeros(4, device="cuda"), torch.zeros(4, device=0)
layer = torch.nn.Linear(4, 4).to(0)
moved = torch.zeros(3).to(0), torch.zeros(3).cuda(0)
at = a.data_ptr()
print(at == b.data_ptr(), a[1:].data_ptr() - at, at == a.detach().data_ptr())
print(layer.weight.is_cuda, moved[0].device, moved[1].device, torch.device(0))
mask = torch.tensor([[1, 1, 0], [1, 0, 0]]).cuda()
rows = torch.rand(2, 3, 5, device="cuda")[mask.bool()]
print(mask.sum(1).tolist(), mask.nonzero().shape[0], rows.shape[0])
mask[0, :] = torch.rand(3, device="cuda") > 0.5
print(mask.nonzero().shape[0])
x, one = torch.rand(9, device="cuda"), torch.ones((), device="cuda")
print(f"{torch.rand((), device='cuda'):.1f}", torch.tensor([one, 2.0]).tolist())
print(x.isfinite().all().item(), x.isnan().any().item(), bool(torch.isfinite(one * x[0])))
print(torch.tensor([1.0, float("inf")]).cuda().isinf().tolist())
lstm = torch.nn.LSTM(3, 4).cuda()(torch.rand(5, 2, 3, device="cuda"))
print(torch.cuda.get_device_name(), torch.cuda.memory_allocated() > 0, torch.cuda.device_count())
"""


def test_tensors_answer_as_on_a_card(rehearsed):
    found = rehearsed(TENSORS, None, on="RTX 4090")
    assert found.failure is None, found.failure
    assert found.said.splitlines() == [
        "False 4 True",
        "True cuda:0 cuda:0 cuda:0",
        "[2, 1] 3 3",
        "6",
        "1.0 [1.0, 2.0]",
        "True False True",
        "[False, True]",
        "NVIDIA RTX 4090 True 1",
    ]
    assert any("recurrent layer" in what for what, _ in found.assumed)


INFERENCE = """
import torch
for mode in (torch.no_grad, torch.inference_mode):
    with mode():
        picked = torch.tensor([2, 1], device="cuda")
        made = torch.zeros(3, 4, device="cuda").index_copy(0, picked, torch.ones(2, 4).cuda())
        print(made.device, picked.tolist(), torch.cuda.memory_allocated())
        del picked, made
"""


def test_numbers_of_the_host_reach_the_card_under_inference_mode(rehearsed):
    """Autograd leaves `to` whole there, and torch would copy them to a card that is not there."""
    found = rehearsed(INFERENCE, None, on="RTX 4090")
    assert found.failure is None, found.failure
    first, second = found.said.splitlines()
    assert first == second and first.startswith("cuda:0 [2, 1] ")


GENERATES = """
model = model(eos_token_id=ENDS).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    ids = torch.randint(3, 300, (2, 8), device="cuda")
    with torch.no_grad():
        longer = model.generate(ids, max_new_tokens=5, do_sample=True, pad_token_id=0)
    print(longer.shape)
    model(input_ids=longer, labels=longer).loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("ends", [1, 2, 299])
def test_generating_ends_where_it_is_told_to(rehearsed, ends):
    """Not at the token that ends a text: no value is known, and that one is not assumed."""
    found = rehearsed(GENERATES.replace("ENDS", str(ends)))
    assert found.failure is None and len(found.steps) == 2, found.failure
    assert found.said == "torch.Size([2, 13])\n" * 2
    assert any("multinomial" in what for what, _ in found.assumed)


def test_what_does_not_end_is_stopped_with_its_line(rehearsed, monkeypatch):
    """Without one rule: no and anything is no."""
    for each in likely.ANDS:
        monkeypatch.delitem(values.RULES, each)
    monkeypatch.setattr(ending, "LIMIT", 2)
    with pytest.raises(ValueError, match=r"no end after 2 seconds .* at train.py:\d+ longer = "):
        rehearsed(GENERATES.replace("ENDS", "2"))


FLASH = """
from flash_attn import flash_attn_func
from flash_attn.bert_padding import unpad_input
q, k, v = (torch.rand(2, 8, heads, 12, device="cuda", dtype=torch.bfloat16) for heads in (4, 2, 2))
print(tuple(flash_attn_func(q, k, v, causal=True).shape))
del q, k, v
"""


@pytest.mark.skipif(find_spec("flash_attn") is not None, reason="the package itself is here")
@pytest.mark.parametrize("tokens", [256, 2])
def test_flash_attention_2_is_as_described(rehearsed, tokens):
    """With the tensors of its package, which is not installed, and that is said."""
    text = loop(tokens).replace("model = model()", "model = model(attention)")
    text = text.replace("model(attention)", "made('flash_attention_2')")
    made = MODEL.replace("def model(dtype=torch.bfloat16, **more)", "def made(attention)")
    made = made.replace("| more", "").replace("dtype=dtype", "dtype=torch.bfloat16")
    made = made.replace("torch.bfloat16)", "torch.bfloat16, attn_implementation=attention)")
    found = rehearsed(made.format(config=LLAMA) + FLASH + text, None)
    assert found.failure is None, found.failure
    assert found.said == "(2, 8, 4, 12)\n"
    words = f"--precision bf16 --batch 2 --tokens {tokens} --attention flash_attention_2"
    peak, _ = described(LLAMA, words, rehearsed.folder)
    assert peak - found.peak == STEP_COUNTERS * PARAMETERS
    assert any("flash_attn, not installed here" in what for what in found.skipped)
    assert "flash_attn" not in sys.modules and not found.missing
    from transformers.utils import is_flash_attn_2_available

    assert not is_flash_attn_2_available()


def test_flash_attention_over_padded_rows_keeps_the_rows_that_are_not(rehearsed):
    """Where each text begins is known, as its mask is; the package takes no row of padding."""
    pytest.importorskip("accelerate")
    text = """
model = AutoModelForCausalLM.from_config(
    AutoConfig.for_model(**{config!r}), dtype=torch.bfloat16, attn_implementation={how!r}
).cuda()
ids = torch.randint(0, 300, (2, 64)).cuda()
mask = torch.ones_like(ids)
mask[1, 16:] = 0
model(input_ids=ids, labels=ids, attention_mask=mask).loss.backward()
"""
    flash, plain = (
        rehearsed(text.format(config=LLAMA, how=how)) for how in ("flash_attention_2", "sdpa")
    )
    assert flash.failure is None, flash.failure
    kept = [r for r in flash.tracker.records.values() if r.shape == (64 + 16, 4, 16)]
    assert kept and not [r for r in plain.tracker.records.values() if r.shape == (64 + 16, 4, 16)]


# Several cards of one process.

SPREAD = """
import os
os.makedirs("base", exist_ok=True)
json.dump({config!r} | {{"dtype": "bfloat16"}}, open("base/config.json", "w"))
made = AutoModelForCausalLM.from_pretrained("base", device_map={places}, dtype="auto")
print(torch.cuda.device_count())
with torch.no_grad():
    out = made(torch.randint(0, 300, (2, 64), device="cuda:0"))
print(out.logits.device)
"""


def test_a_model_over_two_cards_has_its_layers_where_they_are_placed(rehearsed, monkeypatch):
    """By hand, and as accelerate balances them; each card's bytes are counted by themselves."""
    pytest.importorskip("accelerate")
    monkeypatch.chdir(rehearsed.folder)
    layer = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64)
    table = 2 * 300 * 64
    places = {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.norm": 1}
    places |= {"model.rotary_emb": 1, "lm_head": 1}
    path = rehearsed.folder / "train.py"
    weights = {}
    for name, said in (("by hand", places), ("balanced", "auto")):
        text = MODEL.format(config=LLAMA) + SPREAD.format(config=LLAMA, places=repr(said))
        path.write_text(text, "utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            found = of_command(["CUDA_VISIBLE_DEVICES=0,1", "python", str(path)], on="24 GB")
        assert found.failure is None, found.failure
        assert printed.getvalue() == "2\ncuda:0\n"  # accelerate brings the output back
        cards = sorted([found, *found.others], key=lambda each: each.place)
        weights[name] = [each.contents()["weights"] for each in cards]
        assert "peak of card 1 of 2" in str(found) and found.peak == max(e.peak for e in cards)
    assert weights["by hand"] == [table + layer, layer + 2 * 64 + table]
    assert sum(weights["balanced"]) == sum(weights["by hand"])
    path.write_text(text.replace("'auto'", repr(places)), "utf-8")
    with pytest.raises(ValueError, match="one card is seen; CUDA_VISIBLE_DEVICES=0,1 before"):
        of_command(["python", str(path)])
    with pytest.raises(ValueError, match="a tensor on cuda:1, at train.py:.*: one card is seen"):
        rehearsed('import torch\ntorch.zeros(3, device="cuda:1")\n', None)
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES names no card"):
        of_command(["CUDA_VISIBLE_DEVICES=", "python", str(path)])


# Functions of this process.


def in_a_function(rows):
    """Imports and makes all that it uses."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**LLAMA)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(9):
        ids = torch.randint(0, 300, (rows, 64), device="cuda")
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()


def test_a_function_is_rehearsed_as_a_program(rehearsed):
    found = memlab.rehearse(in_a_function, [2], on="H100 80GB")
    assert found.failure is None, found.failure
    assert found.peak == rehearsed(loop()).peak and len(found.steps) == 2
    assert found.holders()[0].reader.where.startswith("test_rehearse.py:")
    assert found.remedies()[0].found.peak < found.peak


def test_a_model_that_was_made_before_keeps_its_values():
    layer = torch.nn.Linear(4, 4)
    before = layer.weight.detach().clone()

    def called():
        layer(torch.rand(2, 4))

    def moved():
        layer.to("cuda")

    for function in (called, moved):
        with pytest.raises(ValueError, match=r"test_rehearse.py:\d+ layer.* made before the rehea"):
            memlab.rehearse(function)
    assert type(layer.weight.data) is torch.Tensor and torch.equal(layer.weight, before)


@pytest.mark.parametrize(
    ("thing", "message"), [(len, "len is not written in Python"), (3, "program is a int; the path")]
)
def test_what_is_no_program_is_refused(thing, message):
    with pytest.raises(TypeError, match=message):
        memlab.rehearse(thing)


# Batches of several lengths.

LOADED = """
from torch.utils.data import DataLoader
model = model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
rows = [torch.arange(length) for length in range(10, 90, 10)]
def padded(rows):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
for ids in DataLoader(rows, batch_size=2, collate_fn=padded, num_workers=2):
    print(tuple(ids.shape))
    model(input_ids=ids.cuda(), labels=ids.cuda()).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_the_longest_batch_comes_each_time_where_somebody_asks(rehearsed):
    first = rehearsed(LOADED)
    assert first.said == "(2, 20)\n(2, 40)\n" and "--longest takes the longest" in str(first)
    assert "2 batches were loaded, of 2 × 20 to 2 × 40" in str(first)
    longest = rehearsed(LOADED, longest=True)
    assert longest.said == "(2, 80)\n" * 2 and "the longest examples: 2 × 80" in str(longest)
    assert longest.peak == rehearsed(LOADED, steps=4).peak > first.peak


def test_trainers_longest_batch_comes_each_time(rehearsed):
    """accelerate makes a loader of its own of the Trainer's."""
    text = TRAINER.replace("(64,))} for _ in range(16)]", "(8 * n,))} for n in range(1, 17)]")
    text = text.replace("per_device_train_batch_size=2", "per_device_train_batch_size=1")
    found = rehearsed(text + "train(model())", longest=True)
    assert found.failure is None, found.failure
    assert set(found.loads.batches) == {(1, 128)}


def test_the_longest_batch_of_no_loader_is_refused(rehearsed):
    with pytest.raises(ValueError, match="longest: this program loads no batch"):
        rehearsed(loop(), longest=True)


def test_a_stream_of_examples_has_no_order(rehearsed):
    text = LOADED.replace("DataLoader(rows", "DataLoader(Stream()")
    stream = """
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(rows)
"""
    found = rehearsed(text.replace("def padded", stream + "def padded"), longest=True)
    assert found.said == "(2, 20)\n(2, 40)\n"
    assert any("not of a loader whose Stream gives no order" in what for what in found.skipped)


# What else would hold less.


def test_remedies_are_rehearsed_and_are_what_the_program_would_be(rehearsed):
    found = rehearsed(LOADED.replace("arange(length)", "arange(80)"), on="1 MB")
    changes = {str(each.words).partition(":")[0]: each.found for each in found.remedies()}
    assert list(changes)[:2] == ["gradient checkpointing", "half the rows of every batch"]
    line = "optimizer = torch.optim"
    checkpointed = "model.gradient_checkpointing_enable()\n" + line
    text = LOADED.replace("arange(length)", "arange(80)")
    assert (
        changes["gradient checkpointing"].peak == rehearsed(text.replace(line, checkpointed)).peak
    )
    halved = rehearsed(text.replace("batch_size=2", "batch_size=1"))
    assert changes["half the rows of every batch"].peak == halved.peak < found.peak
    every = found.remedies()[-1]
    assert "together" in every.words and every.found.peak <= min(
        each.peak for each in changes.values()
    )
    assert "rehearsed with one change" in str(found) and found.to_dict()["remedies"][0]["bytes"]


def test_states_of_eight_bits_and_single_tensors_are_what_the_program_would_be(rehearsed):
    pytest.importorskip("bitsandbytes")
    config = WIDE | {"vocab_size": 3000}
    text = LOOP.replace("(2, TOKENS)", "(1, 2)")
    found = rehearsed(text, config, on="1 GB")
    changes = {str(each.words).partition(":")[0]: each.found for each in found.remedies()}
    narrow = OPTIMIZED.format(name="AdamW8bit").replace("(2, 64)", "(1, 2)")
    assert changes["states of 8 bits"].peak == rehearsed(narrow, config).peak < found.peak
    single = rehearsed(text.replace("lr=1e-4", "lr=1e-4, foreach=False"), config).peak
    assert found.phase == "optimizer"
    assert changes["foreach=False in the optimizer"].peak == single < found.peak


def test_what_only_computes_needs_no_gradients(rehearsed):
    text = 'model = model().cuda()\nmodel(torch.randint(0, 300, (2, 64), device="cuda"))\n'
    (only,) = rehearsed(text, on="1 GB").remedies()
    wrapped = text.replace("model(torch", "with torch.no_grad(): model(torch")
    assert "no_grad" in only.words and only.found.peak == rehearsed(wrapped).peak


# What it says.

SMALL = """
import torch
held = [torch.zeros(2**20, 300, device="cuda")]
for i in range(5):
    held.append(torch.zeros(2**20, 1000, device="cuda"))  # here
"""


def test_where_it_stops_on_a_small_card(rehearsed):
    found = rehearsed(SMALL, None, on="12 GB")
    assert found.verdict.word == "does not fit" and found.peak == 2**22 * 5300
    stopped = found.out_of_memory
    assert stopped.reader.where == "train.py:5" and "# here" in stopped.reader.code
    assert stopped.message.startswith("torch.OutOfMemoryError: CUDA out of memory. Tried to all")
    assert "Tried to allocate 3.91 GiB. GPU 0 has" in stopped.message
    said = str(found)
    assert said.startswith("it does not fit 12 GB") and "torch.OutOfMemoryError: CUDA out" in said
    assert rehearsed(SMALL, None, on="H100").out_of_memory is None


SHAPELESS = """
import torch
library = torch.library.Library("memlab_of_test", "DEF")
library.define("nothing(Tensor x) -> Tensor")
x = torch.zeros(4, device="cuda")
y = torch.ops.memlab_of_test.nothing(x)
"""


def test_an_operator_without_shapes_is_refused_with_its_line(rehearsed):
    with pytest.raises(ValueError, match=r"train.py:6 .*memlab_of_test.nothing"):
        rehearsed(SHAPELESS, None)


def test_a_second_card_of_a_process_is_refused(rehearsed):
    with pytest.raises(ValueError, match=r"a tensor on cuda:1, at train.py:2 x = torch.zeros"):
        rehearsed("import torch\nx = torch.zeros(2, device='cuda:1')", None)


def test_a_program_that_fails_says_so_itself(rehearsed):
    found = rehearsed("def f():\n    raise KeyError('mine')\nf()\n", None)
    assert found.status == 1 and found.failure.endswith("KeyError: 'mine'")
    assert "line 2, in f" in found.failure and "memlab/rehearse" not in found.failure
    assert rehearsed("import sys\nsys.exit(7)\n", None).status == 7


LOOKS = """
try:
    from apex.normalization import FusedRMSNorm
except ImportError:
    pass
import library_of_test
"""


def test_a_package_that_decides_a_path_is_named_where_it_is_missing(rehearsed, monkeypatch):
    assert find_spec("apex") is None
    found = rehearsed(LOOKS.rpartition("import")[0], None)
    assert found.missing == {"apex": ["__main__"]}
    assert "not installed here, and looked for by __main__: apex" in str(found)
    monkeypatch.setitem(imports.OTHERWISE, "apex", ("library_of_test",))
    (rehearsed.folder / "site-packages").mkdir()
    monkeypatch.syspath_prepend(rehearsed.folder / "site-packages")
    (rehearsed.folder / "site-packages" / "library_of_test.py").touch()
    with pytest.raises(ValueError, match="library_of_test takes another path without apex, which"):
        rehearsed(LOOKS, None)
    assert rehearsed(LOOKS, None, backend="cpu").status == 0


WRITES = """
import os, torch
from transformers import AutoModelForCausalLM
base = sys.argv[1] + "-base"
model = AutoModelForCausalLM.from_pretrained(base, dtype="auto", device_map="auto")
print(model.device, model.dtype, model.training, next(model.parameters()).is_cuda)
torch.save(model.state_dict(), sys.argv[1] + "-saved.pt")
model.save_pretrained(sys.argv[1] + "-saved")
print(os.environ["WANDB_MODE"])
"""


def test_no_weight_is_read_and_none_is_written(rehearsed):
    (rehearsed.folder / "out-base").mkdir()
    config = LLAMA | {"dtype": "bfloat16", "architectures": ["LlamaForCausalLM"]}
    (rehearsed.folder / "out-base" / "config.json").write_text(json.dumps(config), "utf-8")
    found = rehearsed(WRITES)
    assert found.failure is None, found.failure
    assert found.said == "cuda:0 torch.bfloat16 False True\ndisabled\n"
    assert sorted(path.name for path in rehearsed.folder.iterdir()) == ["out-base", "train.py"]
    assert len(found.skipped) == 2


def test_a_config_that_is_not_there_is_fetched_by_one_line(rehearsed):
    text = "from transformers import AutoModel\ntry:\n    AutoModel.from_pretrained('some/model')\n"
    with pytest.raises(ValueError, match="some/model: its config.json .* hf download some/model"):
        rehearsed(text + "except Exception:\n    pass\n", None)


def test_the_command_prints_all_of_it(rehearsed, capsys, monkeypatch):
    jsonschema = pytest.importorskip("jsonschema")
    from memlab.cli.schema import schema

    path = rehearsed.folder / "train.py"
    path.write_text(MODEL.format(config=LLAMA) + loop() + "print('theirs')", encoding="utf-8")
    snapshot, picture = rehearsed.folder / "s.pickle", rehearsed.folder / "step.svg"
    words = ["rehearse", "--on", "RTX 4090", "--steps", "1", "--snapshot", str(snapshot), "--json"]
    words += ["--plot", str(picture)]
    assert main([*words, "--", "python", "-u", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, schema("rehearse"))
    assert found["verdict"] == "fits" and len(found["steps"]) == 1 and snapshot.stat().st_size
    assert "backward" in (drawn := picture.read_text(encoding="utf-8")) and "RTX 4090" in drawn
    assert set(found["held"]) == {"after_forward", "after_backward"}
    assert found["lines"][0]["line"]["where"].startswith("train.py:")
    assert found["versions"]["torch"] == torch.__version__
    assert main(["rehearse", "--", str(path)]) == 0
    said = capsys.readouterr().out
    for part in ("no card was named", "2 optimizer steps", "activations", "CUDA context", "holds"):
        assert part in said
    assert main(["rehearse", "--on", "1 GB", "--", str(path), "--epochs", "3"]) == 0
    assert main(["rehearse", "--on", "500 MB", "--", str(path)]) == 1
    path.write_text("raise SystemExit(5)", encoding="utf-8")
    assert main(["rehearse", "--", str(path)]) == 5
    assert "The program itself ended with status 5" in capsys.readouterr().err


HERE = __file__


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "none.py"], "no file 'none.py'"),
        (["--", "mpirun", "x.py"], "mpirun starts processes of its own"),
        (["--on", "MI300X", "--", "x.py"], "MI300X is a card of ROCm"),
        (["--steps", "0", "--", "x.py"], "--steps 0; at least one"),
        (["--assume", "mask=none", "--", "x.py"], "cannot assume 'mask=none'; known: routing="),
        (["--gpus", "2", "--", "torchrun", "--nproc-per-node", "4", HERE], "starts 4 ranks"),
        (["--backend", "cpu", "--on", "H100", "--", "x.py"], "there is nothing to fit"),
        ([], "no program; say it after --"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(capsys, words, message):
    assert main(["rehearse", *words]) == 2
    assert message in capsys.readouterr().err


def test_commands_are_read_as_people_type_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    for line in (
        "train.py --a 1",
        "python3.11 -u train.py --a 1",
        "CUDA_VISIBLE_DEVICES=0 python -W ignore train.py --a 1",
        "python -m train --a 1",
        "torchrun --standalone --nproc-per-node 1 train.py --a 1",
        "python -m torch.distributed.run --nproc_per_node=1 train.py --a 1",
    ):
        found = program(line.split())
        assert found.path.endswith("train.py") and found.arguments == ["--a", "1"], line
        launched = "torchrun" in line or "distributed" in line
        assert found.ranks == (1 if launched else None) and bool(found.module) == (
            " -m train" in line
        )
    assert program("torchrun --nproc-per-node 4 --nnodes 2 train.py".split()).ranks == 8
    with pytest.raises(
        ValueError, match="torchrun: unrecognized arguments|torchrun: the following"
    ):
        program(["torchrun", "--standalone"])


def test_accelerate_launch_is_read_by_accelerate(tmp_path, monkeypatch):
    pytest.importorskip("accelerate")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    line = "accelerate launch --num_processes 1 --mixed_precision bf16 train.py --a 1"
    found = program(line.split())
    assert found.arguments == ["--a", "1"] and found.ranks is None
    assert found.environment["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert program(line.replace("--num", "--use_fsdp --num").split()).environment["FSDP_VERSION"]
    with pytest.raises(ValueError, match="--use_megatron_lm is not rehearsed yet"):
        program(line.replace("--num", "--use_megatron_lm --num").split())


@pytest.mark.skipif(find_spec("deepspeed") is not None, reason="DeepSpeed is here")
def test_deepspeed_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    for line in ("deepspeed --num_gpus 8", "accelerate launch --use_deepspeed --num_processes 8"):
        with pytest.raises(ValueError, match=r"DeepSpeed"):
            program(f"{line} train.py".split())
