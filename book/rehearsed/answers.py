"""No training at all: a prompt is read and 24 tokens are generated."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(
    vocab_size=1000,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
)
model = LlamaForCausalLM(config).to(DEVICE, torch.bfloat16).eval()
prompt = torch.randint(3, 1000, (2, 200), device=DEVICE)
with torch.no_grad():
    model.generate(prompt, max_new_tokens=24, min_new_tokens=24, do_sample=False)
