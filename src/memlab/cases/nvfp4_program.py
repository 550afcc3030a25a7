"""What the trainer's own code and its published report say: facts, each under its source.

The program is public: github.com/ingted/Qwen3-4B-Instruct-2507-TorchSharp.fs. Nothing of its code
is here; these are names, defaults and readings.
"""

from ..units import GiB, MiB

# scripts/Train.WhoAmI.AndExportDat.fsx at b0878c4: every option that it looks up. One that it does
# not look up is read from the command line and forgotten.
SCRIPT_READS = frozenset(
    """--compact-each-step --compute-dtype --device --grad-clip --input-dat --log-every --loss --lr
    --model-dir --offload-grad-to-cpu --offload-mv-to-cpu --offload-w-to-cpu --optimizer-state-mode
    --output-dat --sample-mode --seed --seq-len --step-chunk-rows --steps --test-max-tokens
    --train-data --train-last-layers""".split()
)
# The same file, where the optimizer is made (always the packed one), and Types.fs at b0878c4.
DEFAULTS = {"packed": True, "states": "nvfp4", "master": "bf16"}
# Nvfp4Optimizer.fs at 37b3cb0: the step writes a matrix out from its packed copy, updates that, and
# overwrites the master with it; then it lets go of the gradient.
STARTS_FROM, GIVES_BACK = "packed", True
# The script, at 37b3cb0 and b0878c4. For a self-test at the end it loads, before the first step, a
# second embedding in two bytes a value and a head in codes, and lets go of them after the last.
WAITING = {"embedding": "fp16", "lm_head": "nvfp4"}
# Between backward and the step it replaces NaN in each gradient by way of a copy, one at a time.
CLEANS_GRADIENTS = True

# What the note advises to run, as options and values; paths left out.
COMMAND = {
    "--gpu-limit-gb": "108",
    "--gpu-over-secs": "0",
    "--gpu-poll-secs": "0.05",
    "--steps": "6",
    "--loss": "ce",
    "--seq-len": "96",
    "--lr": "0.00005",
    "--use-packed-optimizer": "true",
    "--optimizer-state-mode": "int8",
    "--master-dtype": "bf16",
    "--grad-ckpt-chunk": "8",
    "--step-chunk-rows": "8",
    "--seed": "20260226",
}
# runner-arm64-fp4/run-script-with-guard.fsx at 85b053b: its GB are this many MiB.
GUARD_GB = 1024
GUARD = ("--gpu-limit-gb", "--gpu-over-secs", "--gpu-poll-secs")  # read by the guard's script

# doc/train-step-vram-onestep.json at c18c683, and doc/DevLog.md (2026-02-25): one step of the same
# trainer on 8 tokens, in fp16, without the head; what nvidia-smi gave for the process.
REPORT = {
    "model_loaded": 40807 * MiB,
    "zero_grad_done": 41061 * MiB,
    "backward_done": 64827 * MiB,
    "optimizer_step_done": 54423 * MiB,
}
REPORT_PARAMETERS = 3_633_509_376
# doc/DevLog.md at b0878c4, "compute-dtype A/B": one step with the script of the note, on 24 tokens,
# packed states in nvfp4, 16 rows at a time; the most that nvidia-smi gave for all processes.
PEAKS = {"fp16": 99653 * MiB, "bf16": 92545 * MiB}
# The same file, 2026-02-25: an earlier script of the same program, without the head. Its readings
# of a process after backward, and of the most in the optimizer's step; its packed states; and, with
# the step in 64 rows a time, the allocator's own message when it ran out of memory while rounding:
# living tensors, and blocks that it kept beside them.
EARLIER = {"backward_done": 82602 * MiB, "most in the step": int(117.5 * GiB)}
EARLIER_STATES = int(5847.5 * MiB)
OUT_OF_MEMORY = {"allocated": int(101.31 * GiB), "reserved beside": int(2.25 * GiB)}
# notes/00028.gemini.txt at 85b053b: the next question of the same conversation. Its author sees the
# figure swing between these two while the optimizer's step goes on, 8 rows at a time.
SWING = (48 * 10**9, 65 * 10**9)
# doc/DevLog.md at 8fb9763, 2026-02-26: the script of the note on 192 tokens, 8 rows at a time, all
# projections of 36 layers trained and the head not; the most that the guard saw, "about 83 GB".
SAME_SCRIPT, SAME_SCRIPT_TOKENS = 83 * 10**9, 192


def forgotten(command: dict[str, str]) -> list[str]:
    """Options of a command that the script does not look up, in order; the guard's left out."""
    return [name for name in command if name not in SCRIPT_READS and name not in GUARD]
