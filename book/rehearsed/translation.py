"""An encoder and a decoder, Adafactor, and two batches for each step, under Trainer."""

import tempfile

import torch
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments

config = T5Config(
    vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.1
)
config.decoder_start_token_id = 0
data = [
    {"input_ids": torch.randint(1, 1000, (48,)), "labels": torch.randint(1, 1000, (32,))}
    for _ in range(64)
]
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    max_steps=4,
    report_to=[],
    optim="adafactor",
    disable_tqdm=True,
)
Trainer(model=T5ForConditionalGeneration(config), args=arguments, train_dataset=data).train()
