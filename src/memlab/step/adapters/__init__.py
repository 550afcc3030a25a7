"""Adapters in a simulated step: what each kind adds to a layer, and what its backward keeps."""
