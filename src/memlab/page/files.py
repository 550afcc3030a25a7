"""Which files the page's engine gets: the tested ones, and two that stand in for CPython's own."""

import importlib
import json
from pathlib import Path

CORE = Path(__file__).resolve().parent.parent
HERE = "page/there/"

# All but two as they are. Of the package itself MicroPython sees an empty file.
MODULES = (
    "units format_table formats families tensors parameters presets config model recipe_table "
    "sharding recipe resident devices step/keys page/peak page/answer page/request "
    "page/words"
)
FROZEN = ("model.Model", "tensors.Tensor", "recipe.Recipe", "sharding.Sharding", "devices.Device")


def files():
    """Path in the engine -> text of the file."""
    found = {f"memlab/{name}__init__.py": "" for name in ("", "step/", "page/")}
    found["__future__.py"] = text(f"{HERE}future.py")
    for name in MODULES.split():
        found[f"memlab/{name}.py"] = text(f"{name}.py")
    for path in sorted((CORE / "terms").glob("*.py")):
        found[f"memlab/terms/{path.name}"] = path.read_text(encoding="utf-8")
    known = text(f"{HERE}frozen.py")
    fields = json.dumps(fields_of_frozen())
    found["memlab/frozen.py"] = known.replace("FIELDS: dict = {}", f"FIELDS = {fields}")
    return found


def fields_of_frozen():
    """The fields of each frozen class, in order."""
    made = {}
    for name in FROZEN:
        module, cls = name.split(".")
        found = getattr(importlib.import_module(f"memlab.{module}"), cls)
        made[cls] = list(found.__fields__)
    return made


def text(name):
    return (CORE / name).read_text(encoding="utf-8")
