"""An encoder that classifies padded texts, under transformers' Trainer."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(
    vocab_size=1000,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    num_labels=3,
)
mask = (torch.arange(64) < 50).long()
data = [
    {"input_ids": torch.randint(0, 1000, (64,)), "attention_mask": mask, "labels": label % 3}
    for label in range(64)
]
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=8,
    max_steps=4,
    logging_steps=1,
    report_to=[],
    optim="adamw_torch",
    disable_tqdm=True,
)
Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=data).train()
