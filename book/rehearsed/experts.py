"""A mixture of experts: which rows each expert gets is in the values."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
config = MixtralConfig(
    vocab_size=1000,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_local_experts=4,
    num_experts_per_tok=2,
)
model = MixtralForCausalLM(config).to(DEVICE).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 1000, (4, 64), device=DEVICE)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
