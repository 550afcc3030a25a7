"""Case 7 of the capstone: llama-3-8b on RTX 4090.

memlab rehearse --on 'RTX 4090' -- python capstone_07.py
memlab check --capstone capstone_07.py
"""

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

PEAK = "18.9 GiB"  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = "backward"  # of the peak: forward, backward or optimizer
LARGEST = "weights"  # there: weights, gradients, optimizer, activations, logits or other

config = AutoConfig.for_model(
    model_type="llama",
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
    num_hidden_layers=32,
    hidden_size=4096,
    num_attention_heads=32,
    vocab_size=128256,
    intermediate_size=14336,
    num_key_value_heads=8,
    head_dim=128,
    tie_word_embeddings=False,
    attention_bias=False,
    mlp_bias=False,
    max_position_embeddings=8192,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # yours
model.enable_input_require_grads()
model.gradient_checkpointing_enable()
lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
model = get_peft_model(model, lora)
model = model.to("cuda")
model.train()
trained = [each for each in model.parameters() if each.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4, foreach=True)
for step in range(3):
    ids = torch.randint(0, 3, (1, 2048), device="cuda")  # yours
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
