"""DeepSpeed's ZeRO in a simulated step: stages 1 and 2, and stage 3 with its order of fetches."""
