"""Import the parts of transformers that build a model without torchao, which loading alone needs.

Where torchao is installed, transformers imports it with the first model of any kind, for the one
function that saves tensors of torchao's. A trace from a config saves nothing, and waits for it.
"""

import sys
from typing import Any

HERE = "transformers.quantizers.quantizer_torchao"


def without_torchao() -> None:
    """Import them so, once; afterwards everything there knows again that torchao is installed.

    Leaves out  in this process, transformers does not save weights that torchao has quantized
    """
    if HERE in sys.modules:
        return
    try:
        import transformers.utils as utils
    except ModuleNotFoundError:  # who needs it says so
        return
    name = "is_torchao_available"
    known: Any = getattr(utils, name, None)
    if known is None:
        return

    def asked(*_: Any) -> bool:
        return False

    setattr(utils, name, asked)
    try:
        import transformers.quantizers.quantizer_torchao  # noqa: F401
    except ImportError:  # another release has it elsewhere, and imports what it likes
        pass
    finally:
        for module in [utils, *sys.modules.values()]:
            if getattr(module, "__dict__", {}).get(name) is asked:
                setattr(module, name, known)
