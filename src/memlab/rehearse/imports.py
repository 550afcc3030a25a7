"""What a program imports, imported before a card is shown; and what was looked for in vain.

Libraries look at the machine while they are imported: bitsandbytes opens CUDA where torch says that
there is one, and others take another path where a package is missing. So the libraries come first,
and every package that decides a path and is not installed here is written down with who asked.
"""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from types import FrameType
from typing import Any

from .command import Program

# Packages of kernels that libraries use where they are there. Without one the path is another.
DECIDING = (
    *("triton", "flash_attn", "flash_attn_interface", "xformers", "apex", "liger_kernel"),
    *("deepspeed", "transformer_engine", "causal_conv1d", "mamba_ssm", "fla", "unsloth"),
)
# Who has another path where it is missing, and it is known to hold other bytes.
OTHERWISE = {
    "triton": ("trl", "liger_kernel", "fla", "unsloth"),
}
# Who looks for one and is the same without it: what it is for is asked for by name, and refused by
# that library itself where it is missing, or (apex of accelerate) only used with it.
ASKED_FOR = {
    "deepspeed": ("accelerate", "transformers", "trl", "peft"),
    "flash_attn": ("transformers.modeling_flash_attention_utils", "transformers.integrations"),
    "flash_attn_interface": ("transformers.modeling_flash_attention_utils",),
    "transformer_engine": ("accelerate", "peft.tuners.lora"),
    "liger_kernel": ("transformers", "trl"),
    "triton": ("bitsandbytes.backends", "torchao.kernel", "accelerate"),
    "unsloth": ("trl",),
}


def libraries(program: Program) -> list[tuple[str, str]]:
    """What a program imports, and the files of its folder that it imports: (module, name or "").

    Of a function its own lines, and those of its file. DeepSpeed also where it is only named, for
    a trainer imports it by itself.
    """
    folder, seen = Path(program.path).parent, set()
    texts = [textwrap.dedent(inspect.getsource(program.function))] if program.function else []
    todo = [Path(program.path)]
    found: dict[tuple[str, str], None] = {}
    said = [*program.environment, *(each for each in program.arguments if isinstance(each, str))]
    named = any("deepspeed" in word.lower() for word in said)
    while texts or todo:
        try:
            if not texts:
                file = todo.pop()
                if file in seen:
                    continue
                seen.add(file)
                texts.append(file.read_text(encoding="utf-8"))
            text = texts.pop()
            named = named or "deepspeed" in text
            tree = ast.parse(text)
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue  # the program itself will say so
        for module, name in _named(tree):
            beside = folder / Path(*module.split("."))
            local = [f for f in (beside.with_suffix(".py"), beside / "__init__.py") if f.is_file()]
            if local:
                todo += local
            elif not (folder / module.partition(".")[0]).is_dir():
                found[module, name] = None
    if named:
        found["deepspeed", ""] = None
    return list(found)


def _named(tree: ast.AST) -> list[tuple[str, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [(node.module, each.name) for each in node.names]
    return found


def import_all(names: list[tuple[str, str]]) -> None:
    """Import them; what cannot be is left to the program, which may have an answer to that."""
    for module, name in names:
        try:
            found = importlib.import_module(module)
            if name and name != "*":
                getattr(found, name, None)  # a lazy package imports what is asked for
        except Exception:
            continue


class Missing:
    """A finder of modules that finds none: it writes down who looks for a deciding package.

    asked       package -> the modules that looked for it
    """

    def __init__(self) -> None:
        self.asked: dict[str, set[str]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in DECIDING:
            asker = _asker(sys._getframe(1))
            if asker:
                self.asked.setdefault(name, set()).add(asker)

    def decisive(self, used: Iterable[str]) -> list[tuple[str, str]]:
        """(package, library): a library in use takes another path without it."""
        return [
            (package, library)
            for package, libraries in OTHERWISE.items()
            if not _installed(package)
            for library in libraries
            if library in used
        ]

    def others(self) -> dict[str, list[str]]:
        """Deciding packages that are not installed, and what in this program looked for them."""
        found = {}
        for package, askers in self.asked.items():
            same = ASKED_FOR.get(package, ())
            left = sorted(who for who in askers if not who.startswith(same or ("memlab",)))
            if left and not _installed(package):
                found[package] = left
        return found


def _installed(package: str) -> bool:
    return package in sys.modules or PathFinder.find_spec(package) is not None


def _asker(frame: FrameType | None) -> str:
    """The module that looks; "" for a package itself, torch, and code that only looks around."""
    while frame is not None:
        home = frame.f_globals.get("__name__", "")
        name = frame.f_code.co_name
        if home.startswith("memlab."):
            return ""  # that imports what the program will
        helper = home.startswith("_frozen") or "import" in home
        if not helper and not name.startswith("is_") and "available" not in name:
            return "" if home.partition(".")[0] in ("torch", *DECIDING) else home
        frame = frame.f_back
    return ""
