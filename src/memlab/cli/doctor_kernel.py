"""Start the Jupyter kernel `python3` and ask it for memlab: a program of `memlab doctor`."""

from __future__ import annotations

import json

from jupyter_client.manager import start_new_kernel

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SECONDS = 60
ASKED = """
import json, platform, sys
try:
    from memlab import __version__
except ImportError:
    __version__ = None
print(json.dumps([platform.python_version(), sys.executable, __version__]))
"""


def asked() -> str:
    """What the kernel prints."""
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=SECONDS)
    said: list[str] = []

    def hear(message: Any) -> None:
        if message["msg_type"] == "stream":
            said.append(message["content"]["text"])

    try:
        client.execute_interactive(ASKED, timeout=SECONDS, output_hook=hear)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(said)


if __name__ == "__main__":
    python, program, version = json.loads(asked())
    print("\n" + json.dumps({"python": python, "program": program, "memlab": version}))
