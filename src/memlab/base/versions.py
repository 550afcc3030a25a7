"""The version of memlab, and of the libraries that its answers were proven with: here, once.

A `Source` in a docstring names a library's file and symbol as they are in these versions.
"""

VERSION = "0.2.0"
# Those of constraints.txt; deepspeed is no dependency, its runs are stored (tests/deepspeed*.json).
PROVEN = {
    "torch": "2.13.0",
    "transformers": "5.23.0",
    "trl": "1.16.0",
    "peft": "0.21.2",
    "accelerate": "1.15.0",
    "bitsandbytes": "0.50.2",
    "torchao": "0.18.0",
    "deepspeed": "0.19.8",
}
# Trainers whose source was read for their defaults, and that were not run here.
READ = {"axolotl": "0.18.0", "LLaMA-Factory": "0.9.6.dev0", "torchtune": "0.7.0"}


def told() -> str:
    """Both as `memlab --version` prints them, in two lines."""
    proven = ", ".join(f"{name} {version}" for name, version in PROVEN.items())
    return f"memlab {VERSION}\nproven with {proven}"
