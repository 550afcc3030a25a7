"""Readings that other people posted, and what memlab says of the same runs."""
