"""FSDP2 in a simulated step: its groups, what they gather, and Trainer's own choice of them."""
