"""Whisper with gradient checkpointing, under Seq2SeqTrainer."""

import tempfile

import torch
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

config = WhisperConfig(
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=128,
    decoder_ffn_dim=128,
    vocab_size=1000,
    num_mel_bins=16,
    max_source_positions=100,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)
data = [
    {"input_features": torch.randn(16, 200), "labels": torch.randint(3, 1000, (40,))}
    for _ in range(32)
]
arguments = Seq2SeqTrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=8,
    max_steps=3,
    gradient_checkpointing=True,
    report_to=[],
    optim="adamw_torch",
    disable_tqdm=True,
)
Seq2SeqTrainer(
    model=WhisperForConditionalGeneration(config), args=arguments, train_dataset=data
).train()
