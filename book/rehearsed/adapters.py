"""LoRA on a model in bf16 with gradient checkpointing and padded texts."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import Qwen3Config, Qwen3ForCausalLM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
config = Qwen3Config(
    vocab_size=1000,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
)
base = Qwen3ForCausalLM(config).to(DEVICE, torch.bfloat16)
base.gradient_checkpointing_enable()
base.enable_input_require_grads()
lora = LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
model = get_peft_model(base, lora).train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 1000, (4, 64), device=DEVICE)
    mask = torch.ones_like(ids)
    mask[0, 40:] = 0
    labels = ids.masked_fill(mask == 0, -100)
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
