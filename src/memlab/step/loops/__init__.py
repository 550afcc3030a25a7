"""Whose loop runs the steps: what it holds beside them, and the loss that it makes of a batch."""
