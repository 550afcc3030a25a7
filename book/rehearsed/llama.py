"""A decoder with the sizes of Llama-3-8B, trained as the first word says."""

import json
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    BitsAndBytesConfig,
    LlamaConfig,
    Trainer,
    TrainingArguments,
)

HOW, TOKENS = sys.argv[1], 2048
SIZES = dict(
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    vocab_size=128256,
    max_position_embeddings=8192,
)


def made(dtype=torch.bfloat16):
    return AutoModelForCausalLM.from_config(LlamaConfig(**SIZES), dtype=dtype)


def loop(optimizer):
    model = made().cuda()
    optimizer = optimizer(model.parameters(), lr=1e-5)
    for _ in range(3):
        ids = torch.randint(0, 1000, (1, TOKENS), device="cuda")
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()


def trainer(model, **more):
    data = [{"input_ids": torch.randint(0, 1000, (TOKENS,))} for _ in range(8)]
    data = [each | {"labels": each["input_ids"]} for each in data]
    how = dict(per_device_train_batch_size=1, max_steps=3, report_to=[], disable_tqdm=True)
    arguments = TrainingArguments(tempfile.mkdtemp(), **how, **more)
    Trainer(model=model, args=arguments, train_dataset=data).train()


def adapted(base):
    base.enable_input_require_grads()
    lora = LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return get_peft_model(base, lora)


if HOW == "loop":
    loop(torch.optim.AdamW)
elif HOW in ("AdamW8bit", "PagedAdamW32bit"):
    import bitsandbytes

    loop(getattr(bitsandbytes.optim, HOW))
elif HOW == "trainer":
    trainer(made())
elif HOW == "autocast":
    trainer(made(torch.float32), bf16=True)
elif HOW == "adapters":
    trainer(adapted(made()), gradient_checkpointing=True)
elif HOW == "nf4":
    folder = Path(tempfile.mkdtemp())
    config = SIZES | {"model_type": "llama", "dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config))
    four = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
    base = AutoModelForCausalLM.from_pretrained(folder, quantization_config=four, dtype="auto")
    trainer(adapted(base), gradient_checkpointing=True)
else:
    sys.exit(f"{HOW!r} is not known here")
