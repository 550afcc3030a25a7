"""A combination of options as the short script that somebody would train with.

Every field of memlab.Run, of a Recipe and of a Sharding stands in one of the tables below or is
refused by its name: none is passed over. Long, because the tables and the text of the script are
read beside each other.

Source      transformers 5.23: training_args.py; trl 1.16; peft 0.21; torch 2.13
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ..adapters.lora import WRAPPED
from ..model import Model
from ..model.module_names import end_names, module_names
from ..recipe import Recipe
from ..run import Run, rules
from ..run.optimizer_loops import loop_of
from ..sharding import DeepSpeed, Sharding
from ..sharding.deepspeed_keys import written
from .trainers import TRAINERS, Trainer

NAME = "train.py"
STEPS = 3  # a rehearsal stops after two
TORCH = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16"}

# Fields of Run that a script says, those of one kind of loop last.
SAID = (
    *("batch", "tokens", "micro_batches", "attention", "checkpoint", "loop", "optimizer_impl"),
    *("clip", "lora", "devices"),
)
OF_TRAINERS = ("eval_batch", "eval_logits")
OF = {
    "sft": ("texts", "loss", "completion", "offload"),
    "dpo": ("loss", "completion", "reference", "offload"),
    "grpo": ("loss", "completion", "reference"),
    "rloo": ("completion", "reference"),
    "reward": ("offload",),
    "kto": ("completion", "offload"),
    "orpo": ("completion",),
}
# What of a scheme a script says, by what divides the run.
FSDP = ("param_dtype", "reduce_dtype", "reshard_after_forward", "gradient_sync", "cpu_offload")
DIVIDED = {"ddp": (), "fsdp": FSDP, "deepspeed": tuple(DeepSpeed.__annotations__)}
# Optimizers: optim= of TrainingArguments, and the class of a loop of one's own.
OPTIM = {
    "sgd": "sgd",
    "hf_adafactor": "adafactor",
    "adamw8bit": "adamw_torch_8bit",
    "adamw4bit": "adamw_torch_4bit",
    "bnb_adamw8bit": "adamw_bnb_8bit",
    "bnb_paged_adamw": "paged_adamw_32bit",
    "bnb_paged_adamw8bit": "paged_adamw_8bit",
}
CLASSES = {
    "adamw": "torch.optim.AdamW",
    "sgd": "torch.optim.SGD",
    "adafactor": "torch.optim.Adafactor",
    "adamw8bit": "torchao.optim.AdamW8bit",
    "adamw4bit": "torchao.optim.AdamW4bit",
    "adamw_fp8": "torchao.optim.AdamWFp8",
    "bnb_adamw": "bitsandbytes.optim.AdamW",
    "bnb_adamw8bit": "bitsandbytes.optim.AdamW8bit",
    "bnb_paged_adamw": "bitsandbytes.optim.PagedAdamW32bit",
    "bnb_paged_adamw8bit": "bitsandbytes.optim.PagedAdamW8bit",
}
BASES = {
    "nf4": {"load_in_4bit": "True", "bnb_4bit_quant_type": '"nf4"'},
    "nf4-dq": {
        "load_in_4bit": "True",
        "bnb_4bit_quant_type": '"nf4"',
        "bnb_4bit_use_double_quant": "True",
    },
    "int8": {"load_in_8bit": "True"},
}
SAY = "no script of a trainer says it"


@dataclass
class Script:
    """The text, and how it is started.

    command     words before the path: ["python"], ["torchrun", "--nproc-per-node", "8"]
    needs       packages without which it is not rehearsed
    """

    text: str
    command: list[str]
    needs: list[str]


def script(
    settings: dict[str, Any], model: Model, recipe: Recipe, run: Run, loop: str | None = None
) -> Script:
    """The script of a run.

    settings    of the model's config, as transformers reads it
    loop        a name of TRAINERS where it is no loop of Run: reward, kto, ...
    Raises      ValueError for a field that the script cannot say, by name
    """
    return _Writer(settings, model, recipe, run, loop or run.loop).script()


class _Writer:
    """One script: what each part of it is told."""

    def __init__(
        self, settings: dict[str, Any], model: Model, recipe: Recipe, run: Run, loop: str
    ) -> None:
        self.settings, self.model, self.recipe = settings, model, recipe
        self.run, self.loop = run, loop
        self.trainer: Trainer | None = TRAINERS.get(loop)
        devices = run.devices
        self.by = "deepspeed" if devices.deepspeed else "fsdp" if devices.fsdp else "ddp"
        self._check()
        self.imports = {"torch": ""}

    def _check(self) -> None:
        run, recipe, what = self.run, self.recipe, f"a script with loop={self.loop!r}"
        if run.phase != "train" or run.tokens is None:
            raise ValueError(f"phase={run.phase!r}, tokens={run.tokens}: a script trains")
        for name in ("backend", "implementation"):
            if (value := getattr(run, name)) != getattr(Run, name):
                raise ValueError(f"{name}={value!r}: {SAY}")
        if self.trainer is None and self.loop != "plain":
            raise ValueError(f"loop={self.loop!r}: {SAY}")
        beside = OF_TRAINERS if self.trainer else ()
        rules.only(run, (*SAID, *beside, *OF.get(self.loop, ())), what, SAY)
        self._check_devices(run.devices)
        alone = (recipe.weights, recipe.autocast, recipe.master)
        known: list[Any] = [(weights, None, None) for weights in TORCH]
        known += [("fp32", "bf16", None), ("fp32", "fp16", None)]
        known += [("bf16", None, "fp32")] * (self.by == "deepspeed")
        plain = recipe.gradients in (None, recipe.weights) and not recipe.accumulator
        if alone not in known or not plain or recipe.states or recipe.tie is not None:
            raise ValueError(f"recipe {recipe.name!r}: {SAY}")
        if run.attention == "flash" or run.kernel != "auto":
            raise ValueError(f"attention={run.attention!r}, kernel={run.kernel!r}: {SAY}")
        if run.loss not in ("plain", "fused_head"):
            raise ValueError(f"loss={run.loss!r}: {SAY}")
        if set(run.offload) - {"saved"}:
            raise ValueError(f"offload of {', '.join(run.offload)}: {SAY}")
        if run.lora is not None and run.lora.keep_wide:
            raise ValueError(f"keep_wide=True: {SAY}")

    def _check_devices(self, devices: Sharding) -> None:
        if devices.ranks > 1 and devices.ranks != devices.data:
            raise ValueError(f"devices={devices}: {SAY}")
        for name, value in devices.told().items():
            if name not in DIVIDED[self.by]:
                raise ValueError(f"{name}={value!r}: {SAY}")
        if self.by == "deepspeed" and self.trainer is None:
            raise ValueError(f"loop='plain' with devices={devices}: {SAY}; with loop='trainer'")
        if devices.policy.gradient_sync == "shards" or devices.policy.cpu_offload == "pageable":
            raise ValueError(f"devices={devices}: {SAY}")

    def script(self) -> Script:
        body = self._data() + self._model() + (self._train() if self.trainer else self._own_loop())
        imports = [f"import {name}" for name, what in self.imports.items() if not what]
        origins: dict[str, list[str]] = {}
        for what, home in self.imports.items():
            if home:
                origins.setdefault(home, []).append(what)
        imports += [f"from {home} import {', '.join(sorted(origins[home]))}" for home in origins]
        command = ["python"]
        if self.run.devices.ranks > 1:
            command = ["torchrun", "--nproc-per-node", str(self.run.devices.ranks)]
        head = [
            '"""Written by memlab: run it as it is, or rehearse it without a GPU.',
            "",
            f"    {' '.join(command)} {NAME}",
            f"    memlab rehearse -- {' '.join(command)} {NAME}",
            "",
            'Weights and texts are made up; put your own where a comment says "yours".',
            '"""',
            "",
        ]
        return Script("\n".join([*head, *sorted(imports), "", *body, ""]), command, self._needs())

    def _needs(self) -> list[str]:
        """What is imported here, by its libraries, and beside what TRL goes another way."""
        homes = {(home or name).partition(".")[0] for name, home in self.imports.items()}
        homes |= {"transformers", "accelerate"}
        if "bnb" in self.recipe.optimizer or (self.run.lora and self.run.lora.base):
            homes.add("bitsandbytes")
        if "trl" in homes and sys.platform == "linux":
            homes.add("triton")
        if self.by == "deepspeed":
            homes.add("deepspeed")
        return sorted(homes - sys.stdlib_module_names, key=lambda name: (name != "torch", name))

    def use(self, name: str, home: str = "") -> str:
        """A name that the script imports."""
        self.imports[name] = home
        return name

    @property
    def narrow(self) -> str | None:
        """The format in which products are computed beside wider weights."""
        if self.recipe.master:
            return self.recipe.weights
        return self.recipe.autocast or (
            self.run.devices.policy.param_dtype if self.trainer else None
        )

    def _data(self) -> list[str]:
        if self.trainer is None:
            return []
        run = self.run
        assert run.tokens is not None
        answer = run.tokens - 1 if run.completion is None else run.completion
        rows = 2 * STEPS * run.batch * run.micro_batches * run.devices.ranks
        sizes = {"tokens": run.tokens, "prompt": run.tokens - answer, "rows": rows}
        sizes |= {"answer": answer - 1, "half": rows // 2}
        if self.trainer.judges:
            sizes["answer"] = run.tokens - 1
        columns = self.trainer.columns.format(**sizes)
        if self.loop == "sft" and run.completion is not None:
            mask = f"[[0] * {run.tokens - answer} + [1] * {answer}]"
            columns += f', "completion_mask": {mask} * {rows}'
        self.use("Dataset", "datasets")
        lines = []
        if "words(" in columns:
            lines += ["", "def words(count):", '    return " ".join(["a"] * count)', "", ""]
        lines += [f"data = Dataset.from_dict({{{columns}}})  # yours"]
        if self.trainer.home != "transformers":
            for name in ("Tokenizer", "models", "pre_tokenizers"):
                self.use(name, "tokenizers")
            self.use("PreTrainedTokenizerFast", "transformers")
            lines += [
                "# yours: AutoTokenizer.from_pretrained(...)",
                'known = {"<unk>": 0, "<pad>": 1, "<eos>": 2, "a": 3}',
                'tokens = Tokenizer(models.WordLevel(known, unk_token="<unk>"))',
                "tokens.pre_tokenizer = pre_tokenizers.Whitespace()",
                "tokens = PreTrainedTokenizerFast(",
                '    tokenizer_object=tokens, unk_token="<unk>", pad_token="<pad>", '
                'eos_token="<eos>"',
                ")",
            ]
        return lines

    def _model(self) -> list[str]:
        run, recipe = self.run, self.recipe
        kind = "AutoModelForCausalLM"
        settings = dict(self.settings)
        if self.trainer is not None and self.trainer.judges:
            kind = "AutoModelForSequenceClassification"
            settings |= {"num_labels": 1, "pad_token_id": 1}
        self.use(kind, "transformers")
        self.use("AutoConfig", "transformers")
        told = {"dtype": TORCH[recipe.weights]}
        if run.attention is not None:
            told["attn_implementation"] = f'"{run.attention}"'
        lines = [f"config = AutoConfig.for_model(**{settings!r})"]
        coded = run.lora is not None and run.lora.base is not None
        if not coded:
            lines += [f"model = {kind}.from_config({_said('config', **told)})  # yours"]
            judged = self.loop in ("dpo", "kto") and run.lora is None
            if judged and run.reference_model == "model":
                lines += [f"reference = {kind}.from_config({_said('config', **told)})  # yours"]
        else:
            lines += self._coded(kind, told)
        if self.trainer is None or (self.trainer.home == "transformers" and run.lora is not None):
            lines += self._adapted(coded)
        return lines

    def _coded(self, kind: str, told: dict[str, str]) -> list[str]:
        """A base of bitsandbytes is read from a folder: made here, in yours it lies on the hub."""
        assert self.run.lora is not None and self.run.lora.base is not None
        self.use("tempfile")
        self.use("BitsAndBytesConfig", "transformers")
        how = dict(BASES[self.run.lora.base])
        if "load_in_4bit" in how:
            how["bnb_4bit_compute_dtype"] = TORCH[self.narrow or "bf16"]
            if self.by == "fsdp":
                how["bnb_4bit_quant_storage"] = TORCH[self.narrow or self.recipe.weights]
        told["quantization_config"] = f"BitsAndBytesConfig({_said(**how)})"
        return [
            "with tempfile.TemporaryDirectory() as folder:  # yours: the name of your model",
            "    config.save_pretrained(folder)",
            f"    {kind}.from_config(config, dtype={told['dtype']}).save_pretrained(folder)",
            f"    model = {kind}.from_pretrained({_said('folder', **told)})",
        ]

    def _adapted(self, coded: bool) -> list[str]:
        """Adapters, where no trainer is told of them."""
        run = self.run
        if run.lora is None:
            return ["model.gradient_checkpointing_enable()"] * (run.checkpointing == "block")
        self.use("get_peft_model", "peft")
        lines = []
        if coded and self.recipe.weights == "fp32":
            self.use("prepare_model_for_kbit_training", "peft")
            checkpoint = f"use_gradient_checkpointing={run.checkpointing == 'block'}"
            if run.checkpointing == "block":
                checkpoint = 'gradient_checkpointing_kwargs={"use_reentrant": False}'
            lines += [f"model = prepare_model_for_kbit_training(model, {checkpoint})"]
        elif run.checkpointing == "block":
            lines += ["model.enable_input_require_grads()"]
            lines += ["model.gradient_checkpointing_enable()"] * (self.trainer is None)
        own = run.adapters_in(self.recipe.weights)
        cast = "" if own == "fp32" or run.lora.dtype is None else ", autocast_adapter_dtype=False"
        return [*lines, f"model = get_peft_model(model, {self._lora()}{cast})"]

    def _lora(self) -> str:
        lora = self.run.lora
        assert lora is not None
        self.use("LoraConfig", "peft")
        inside = module_names(self.model, lora.targets)
        wrapped = [path for name, path in inside.items() if name in WRAPPED]
        kind = "SEQ_CLS" if self.trainer is not None and self.trainer.judges else "CAUSAL_LM"
        said: dict[str, Any] = {"r": lora.rank, "lora_alpha": 2 * lora.rank}
        said["target_modules"] = [path for path in inside.values() if path not in wrapped]
        if wrapped:
            said["target_parameters"] = wrapped
        if lora.ranks:
            said["rank_pattern"] = {inside[name]: rank for name, rank in lora.ranks}
        if lora.saved:
            ends = end_names(self.model)
            said["modules_to_save"] = [ends[name].split(".")[-1] for name in lora.saved]
        if lora.dropout:
            said["lora_dropout"] = lora.dropout
        if lora.dora:
            said["use_dora"] = True
        if self.model.conv1d:
            said["fan_in_fan_out"] = True
        said["task_type"] = kind
        return f"LoraConfig({_said(**{name: _text(value) for name, value in said.items()})})"

    def _arguments(self) -> dict[str, Any]:
        """What TrainingArguments, or TRL's class in their place, is told."""
        run, recipe, trainer = self.run, self.recipe, self.trainer
        assert trainer is not None and run.tokens is not None
        said: dict[str, Any] = {
            "per_device_train_batch_size": run.batch,
            "gradient_accumulation_steps": run.micro_batches,
            "gradient_checkpointing": run.checkpointing == "block",
            "bf16": self.narrow == "bf16",
            "fp16": self.narrow == "fp16",
            "optim": self._optim(),
            "max_grad_norm": 1.0 if run.clips else 0.0,
        }
        said |= dict.fromkeys(trainer.lengths, run.tokens)
        if run.eval_batch is not None:
            said |= {"eval_strategy": "steps", "eval_steps": 1}
            said["per_device_eval_batch_size"] = run.eval_batch
            if run.eval_logits:
                said["eval_accumulation_steps"] = run.eval_logits
        if "saved" in run.offload:
            said["activation_offloading"] = True
        if run.texts == "packed":
            said |= {"padding_free": True, "max_length": None}
        elif run.texts == "padded":
            said["pad_to_multiple_of"] = run.tokens
        if run.reference == "precomputed":
            said["precompute_ref_log_probs"] = True
        if trainer.rolls_out:
            said["max_completion_length"] = run.completion or run.tokens - 1
            said["num_generations"] = max(2, run.batch)
            said["beta"] = 0.1 if run.reference == "model" else 0.0
            if run.batch * run.micro_batches * run.devices.ranks % said["num_generations"]:
                raise ValueError("batch=1: answers of one prompt are compared; 2 or more are")
        said |= self._divided(recipe)
        said |= {"max_steps": STEPS, "save_strategy": "no", "report_to": []}
        return said

    def _optim(self) -> str:
        name, how = self.recipe.optimizer, loop_of(self.recipe, self.run)
        if name == "adamw":
            own = {"fused": "adamw_torch_fused", "foreach": "adamw_torch"}
            if how not in own:
                raise ValueError(f"optimizer_impl={how!r}: {SAY}")
            return own[how]
        if name not in OPTIM:
            raise ValueError(f"optimizer={name!r}: {SAY}")
        return OPTIM[name]

    def _divided(self, recipe: Recipe) -> dict[str, Any]:
        devices = self.run.devices
        config: dict[str, Any] = {}
        if self.by == "deepspeed":
            config = {"zero_optimization": written(devices)}
            sizes = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
            config |= {name: "auto" for name in (*sizes, "gradient_clipping")}
            if self.narrow == "bf16":
                config["bf16"] = {"enabled": True}
            return {"deepspeed": config}
        if self.by == "ddp":
            return {"ddp_find_unused_parameters": False} if devices.ranks > 1 else {}
        if devices.policy.cpu_offload:
            config["cpu_offload"] = True
        if not devices.policy.reshard_after_forward:
            config["reshard_after_forward"] = False
        return {"fsdp": True} | ({"fsdp_config": config} if config else {})

    def _train(self) -> list[str]:
        run, trainer = self.run, self.trainer
        assert trainer is not None
        self.use(trainer.config, trainer.home)
        self.use(trainer.name, trainer.home)
        self.use("tempfile")
        lines = [f"arguments = {trainer.config}("]
        lines += ["    tempfile.mkdtemp(),  # yours: where checkpoints go"]
        lines += [f"    {name}={_text(value)}," for name, value in self._arguments().items()]
        told = {"model": "model", "args": "arguments", "train_dataset": "data"}
        if run.eval_batch is not None:
            count = run.eval_batch * (run.eval_logits or 2) * run.devices.ranks
            told["eval_dataset"] = f"data.select([0] * {count})"
            if run.eval_logits:
                told["compute_metrics"] = "lambda _: {}"
        if trainer.home != "transformers":
            told["processing_class"] = "tokens"
            if run.lora is not None:
                told["peft_config"] = self._lora()
        if self.loop in ("dpo", "kto") and run.lora is None and run.reference_model == "model":
            told["ref_model"] = "reference"
        lines += [")"]
        if trainer.rolls_out:
            told["reward_funcs"] = "reward"
            lines += self._rollout()
            if self.loop == "grpo":
                told["rollout_func"] = "rollout"
        return [*lines, f"{trainer.name}({_said(**told)}).train()"]

    def _rollout(self) -> list[str]:
        run = self.run
        assert run.tokens is not None
        answer = run.completion or run.tokens - 1
        lines = ["", "", "def reward(completions, **_):  # yours"]
        lines += ["    return [float(len(text) % 3) for text in completions]", "", ""]
        if self.loop != "grpo":
            return lines
        return [
            *lines,
            "def rollout(prompts, trainer):  # yours: leave it out, and answers are generated",
            "    return {",
            f'        "prompt_ids": [[3] * {run.tokens - answer}] * len(prompts),',
            f'        "completion_ids": [[3] * {answer}] * len(prompts),',
            '        "logprobs": None,',
            "    }",
            "",
            "",
        ]

    def _own_loop(self) -> list[str]:
        """A loop that is written by hand, as PyTorch's guides write it."""
        run, devices = self.run, self.run.devices
        name, how = self.recipe.optimizer, loop_of(self.recipe, run)
        if name not in CLASSES:
            raise ValueError(f"optimizer={name!r}: {SAY}")
        made = CLASSES[name]
        if not made.startswith("torch."):
            self.use(made.rpartition(".")[0])
        told = "lr=1e-4"
        if made.startswith("torch."):
            told += {"fused": ", fused=True", "foreach": ", foreach=True"}.get(
                how, ", foreach=False"
            )
        device = '"cuda"' if devices.ranks == 1 else "device"
        lines = [*self._placed(), "model.train()"]
        lines += [
            "trained = [each for each in model.parameters() if each.requires_grad]",
            f"optimizer = {made}(trained, {told})",
            f"for step in range({STEPS}):",
        ]
        inside = []
        if run.micro_batches > 1:
            inside += [f"for micro in range({run.micro_batches}):"]
        pad = "    " * (1 + len(inside))
        if devices.fsdp and devices.policy.gradient_sync == "last" and run.micro_batches > 1:
            inside += [f"    model.set_requires_gradient_sync(micro == {run.micro_batches - 1})"]
        lines += [f"    {line}" for line in inside]
        size = f"({run.batch}, {run.tokens})"
        lines += [f"{pad}ids = torch.randint(0, 3, {size}, device={device})  # yours"]
        share = f" / {run.micro_batches}" * (run.micro_batches > 1)
        loss = f"loss = model(input_ids=ids, labels=ids).loss{share}"
        if self.recipe.autocast:
            dtype = TORCH[self.recipe.autocast]
            lines += [f'{pad}with torch.autocast("cuda", dtype={dtype}):', f"{pad}    {loss}"]
        else:
            lines += [f"{pad}{loss}"]
        lines += [f"{pad}loss.backward()", f"{pad}del loss"]
        if run.clips:
            lines += ["    torch.nn.utils.clip_grad_norm_(trained, 1.0)"]
        return [*lines, "    optimizer.step()", "    optimizer.zero_grad()"]

    def _placed(self) -> list[str]:
        """The model on the card, or on this rank's."""
        devices = self.run.devices
        if devices.ranks == 1:
            return ['model = model.to("cuda")']
        self.use("os")
        self.use("torch.distributed")
        lines = [
            'device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))',
            "torch.cuda.set_device(device)",
            'torch.distributed.init_process_group("nccl")',
        ]
        if self.by == "ddp":
            self.use("DistributedDataParallel", "torch.nn.parallel")
            wrapped = "DistributedDataParallel(model.to(device), device_ids=[device.index])"
            return [*lines, f"model = {wrapped}"]
        self.use("fully_shard", "torch.distributed.fsdp")
        how: dict[str, str] = {}
        policy = {n: getattr(devices.policy, n) for n in ("param_dtype", "reduce_dtype")}
        if any(policy.values()):
            self.use("MixedPrecisionPolicy", "torch.distributed.fsdp")
            said = {name: TORCH[value] for name, value in policy.items() if value}
            how["mp_policy"] = f"MixedPrecisionPolicy({_said(**said)})"
        if devices.policy.cpu_offload:
            self.use("CPUOffloadPolicy", "torch.distributed.fsdp")
            how["offload_policy"] = "CPUOffloadPolicy()"
        if not devices.policy.reshard_after_forward:
            how["reshard_after_forward"] = "False"
        layers = "[each for each in model.modules() if type(each).__name__.endswith(LAYERS)]"
        last = {name: value for name, value in how.items() if name != "reshard_after_forward"}
        return [
            *lines,
            'LAYERS = ("DecoderLayer", "Block")',
            *["model.to(device)"] * (not devices.policy.cpu_offload),
            f"for layer in {layers}:",
            f"    fully_shard({_said('layer', **how)})",
            f"fully_shard({_said('model', **last)})",
        ]


def _text(value: Any) -> str:
    """A value of the script; text in double quotes, as the rest of it."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _said(*first: str, **named: str) -> str:
    return ", ".join([*first, *(f"{name}={value}" for name, value in named.items())])
