"""Valid configs, drawn at random, against real training steps on this computer's CPU.

A step must be derived to the byte in what it holds, and to 8 bytes at its peak (a number that
autograd wraps); what memlab does not describe it must refuse by name.
"""

import sys
from pathlib import Path

WRAPPED = 8  # bytes of a number that autograd wraps, which the tracker leaves out


def attempt(seed, folder):
    """None, or how a derived step differs from the real one."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    try:
        from real_steps import FAMILIES, random_configs, real_step, simulated
    finally:
        sys.path.pop(0)
    step = random_configs(seed % len(FAMILIES) + 1, seed)[-1]
    real = real_step(step)
    try:
        found = simulated(step)
    except ValueError as error:
        return f"refused: {error}   {step}"
    if found.held != real.held:
        return f"held: {found.held}, really {real.held}   {step}"
    if abs(found.peak.bytes - real.peak.bytes) > WRAPPED:
        return f"peak: {found.peak.bytes}, really {real.peak.bytes}   {step}"
    return None
