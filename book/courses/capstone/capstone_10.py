"""Case 10: no script fits; the least that stands on the GPU in any of them."""

LEAST = "45.8 GiB"
