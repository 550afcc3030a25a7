"""A vision transformer of transformers under autocast."""

import torch
from transformers import ViTConfig, ViTForImageClassification

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
config = ViTConfig(
    hidden_size=96,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=384,
    image_size=64,
    patch_size=8,
    num_labels=10,
)
model = ViTForImageClassification(config).to(DEVICE).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(4):
    pictures = torch.rand(8, 3, 64, 64, device=DEVICE)
    labels = torch.randint(0, 10, (8,), device=DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        loss = model(pixel_values=pictures, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
