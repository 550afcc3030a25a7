"""A small U-Net that learns to take noise away, and a slow average of its weights."""

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(32, outputs)

    def forward(self, x, time):
        return self.conv(F.silu(self.norm(x))) + self.time(time)[:, :, None, None]


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.first = nn.Embedding(1000, 32), nn.Conv2d(3, 16, 3, padding=1)
        self.down, self.middle = Down(16, 32), Down(32, 32)
        self.up, self.last = Down(64, 16), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x, steps):
        time = F.silu(self.time(steps))
        high = self.down(self.first(x), time)
        low = self.middle(F.avg_pool2d(high, 2), time)
        joined = torch.cat([high, F.interpolate(low, scale_factor=2)], dim=1)
        return self.last(self.up(joined, time))


model, average = UNet().to(DEVICE), UNet().to(DEVICE)
average.load_state_dict(model.state_dict())
average.requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    clean = torch.rand(8, 3, 32, 32, device=DEVICE)
    noise = torch.randn_like(clean)
    steps = torch.randint(0, 1000, (8,), device=DEVICE)
    share = (steps / 1000)[:, None, None, None]
    loss = F.mse_loss(model(clean * (1 - share) + noise * share, steps), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 0.01)
