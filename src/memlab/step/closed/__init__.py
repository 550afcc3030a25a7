"""Closed forms beside the simulation: one layer at work, and a call that keeps nothing."""
