"""Case 1 of the capstone: llama-3.2-1b on RTX 4090.

memlab rehearse --on 'RTX 4090' -- python capstone_01.py
memlab check --capstone capstone_01.py
"""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

PEAK = "16.2 GiB"  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = "backward"  # of the peak: forward, backward or optimizer
LARGEST = "logits"  # there: weights, gradients, optimizer, activations, logits or other

config = AutoConfig.for_model(
    model_type="llama",
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
    num_hidden_layers=16,
    hidden_size=2048,
    num_attention_heads=32,
    vocab_size=128256,
    intermediate_size=8192,
    num_key_value_heads=8,
    head_dim=64,
    tie_word_embeddings=True,
    attention_bias=False,
    mlp_bias=False,
    max_position_embeddings=131072,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # yours
model = model.to("cuda")
model.train()
model.gradient_checkpointing_enable()
trained = [each for each in model.parameters() if each.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4, foreach=True)
for step in range(3):
    ids = torch.randint(0, 3, (6, 1024), device="cuda")  # yours
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
