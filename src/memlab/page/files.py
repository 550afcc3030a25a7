"""Which files the page's engine gets: the tested ones, and four that stand in for CPython's."""

import ast
import importlib
import io
import json
import tokenize
from pathlib import Path

CORE = Path(__file__).resolve().parent.parent
HERE = "page/there/"

# As they are, less what only people read. Of the package itself, and of rooms of which it needs a
# part, MicroPython sees an empty file.
MODULES = (
    "units devices verdict program_defaults programs run_adapters run_fields run_checks run "
    "formats/__init__ formats/format_table "
    "formats/formats model/__init__ model/families model/latent model/mixtures model/tensors "
    "model/parameters model/presets model/shape_keys model/dropouts model/values "
    "model/model recipe/__init__ recipe/recipe_table "
    "recipe/deepspeed_config recipe/expert_parallel recipe/fsdp_policy recipe/pipeline_schedule "
    "recipe/tensor_plan recipe/parallelism "
    "recipe/recipe recipe/resident recipe/loops recipe/chosen recipe/offloaded step/keys "
    "step/windows engines/engine "
    "engines/kept engines/pool engines/quantized explain/changes explain/flags page/adapted "
    "page/adapter_controls "
    "page/adapters_kept page/answer page/asked page/begun page/cheaper page/command "
    "page/described page/forms page/highest page/loop_controls page/looped page/outside "
    "page/pasted page/peak page/request "
    "page/sentences page/sharded "
    "page/serving page/serving_controls page/spelled page/torch_loss page/words"
)
# Of memlab.terms what those import; a page that is read for the first time waits for each byte.
TERMS = (
    "adapters allocator chunk_rows context engine_pool expandable experts gradients kv_cache lora "
    "low_rank optimizer optimizer_step packed segments sharding tied weights workspaces"
)
# What few questions need, fetched with the first that does: what reads a config.json or an
# adapter_config.json, answers about types that memlab does not describe and about serving, and
# knows a teacher.
LATER = (
    "files/adapter_fields model/believed model/config model/fields model/kind model/module_names "
    "model/rotary_keys page/adapter_file page/adapter_words page/served page/served_words "
    "page/serving_words page/sums page/types run_teacher"
)
TEXTS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
OF_PRINTS = ("__repr__", "__str__")
EMPTY = ("", "base/", "step/", "engines/", "explain/", "page/")
FROZEN = (
    "model.Model",
    "model.latent.Latent",
    "model.tensors.Tensor",
    "recipe.Recipe",
    "recipe.parallelism.Sharding",
    "program_defaults.Defaults",
    "run.Run",
    "run_teacher.Teacher",
    "terms.lora.Lora",
    "terms.adapters.Ia3",
    "terms.adapters.Vera",
    "terms.adapters.Prompt",
    "terms.context.Reading",
    "explain.changes.Change",
    "explain.changes.Found",
    "devices.Device",
    "engines.engine.Engine",
    "engines.pool.Pool",
    "engines.quantized.Quantized",
    "verdict.Room",
    "verdict.Verdict",
)


def files(prints: bool = False) -> dict[str, str]:
    """Path in the engine -> text of the file.

    prints      with what only a print asks for: OF_PRINTS
    """
    found = {f"memlab/{name}__init__.py": "" for name in EMPTY}
    for name in MODULES.split():
        found[f"memlab/{name}.py"] = bare(text(f"{name}.py"), prints)
    for name in ["__init__", *TERMS.split()]:
        found[f"memlab/terms/{name}.py"] = bare(text(f"terms/{name}.py"), prints)
    for name in ("mapping", "message"):
        found[f"memlab/base/{name}.py"] = bare(text(f"{HERE}{name}.py"))
    found["memlab/ledger.py"] = bare(text(f"{HERE}ledger.py"))
    known = bare(text(f"{HERE}frozen.py"))
    fields = json.dumps(fields_of_frozen())
    found["memlab/base/frozen.py"] = known.replace("FIELDS = {}", f"FIELDS = {fields}")
    return found


def later() -> dict[str, str]:
    """The same of what the engine gets when a question needs it."""
    found = {"memlab/files/__init__.py": ""}
    for name in LATER.split():
        found[f"memlab/{name}.py"] = bare(text(f"{name}.py"))
    return found


def fields_of_frozen() -> dict[str, list[str]]:
    """The fields of each frozen class, in order."""
    made = {}
    for name in FROZEN:
        module, _, cls = name.rpartition(".")
        found = getattr(importlib.import_module(f"memlab.{module}"), cls)
        made[cls] = list(found.__fields__)
    return made


def text(name: str) -> str:
    return (CORE / name).read_text(encoding="utf-8")


def bare(code: str, prints: bool = False) -> str:
    """A file without comments, annotations, docstrings, empty lines, and imports for types alone.

    A third of what the page would load is words that the engine throws away. What only a print asks
    for (OF_PRINTS) is gone too: an answer is values and messages. A docstring that is all of a body
    stays, empty.
    """
    lines = code.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    tree = ast.parse(code)
    for start, end in sorted(annotations(tree), reverse=True):
        cut(lines, start, end)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            said = node.body[0]
            for row in range(said.lineno - 1, said.end_lineno or 0):
                lines[row] = ""
            if len(node.body) == 1:
                lines[said.lineno - 1] = " " * said.col_offset + '""'
    inside = [each for node in tree.body if isinstance(node, ast.ClassDef) for each in node.body]
    unused = [node for node in tree.body if of_types(node)]
    unused += [] if prints else filter(of_prints, inside)
    for node in unused:
        for row in range(node.lineno - 1, node.end_lineno or 0):
            lines[row] = ""
    return narrow("\n".join(lines))


def annotations(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where arguments, results and variables say their types: (row, byte of it).

    Those of a class stay, which are its fields.
    """
    fields = {x for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for x in node.body}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation:
            at = node.lineno, node.col_offset + len(node.arg.encode())
            found.append((at, end_of(node.annotation)))
        elif isinstance(node, ast.FunctionDef) and node.returns:
            found.append(
                ((node.returns.lineno, node.returns.col_offset - len(" -> ")), end_of(node.returns))
            )
        elif isinstance(node, ast.AnnAssign) and node.value and node not in fields:
            found.append((end_of(node.target), end_of(node.annotation)))
    return found


def end_of(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def cut(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> None:
    """Take out what is between two places, but no line."""
    first, last = lines[start[0] - 1].encode()[: start[1]], lines[end[0] - 1].encode()[end[1] :]
    for row in range(start[0], end[0]):
        lines[row] = ""
    if start[0] == end[0]:
        lines[start[0] - 1] = (first + last).decode()
    else:
        lines[start[0] - 1], lines[end[0] - 1] = first.decode(), last.decode()


def of_types(node: ast.stmt) -> bool:
    """Whether it is `if TYPE_CHECKING:`, which no run enters, or what only annotations need."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return future or ast.unparse(node) == "TYPE_CHECKING = False"


def of_prints(node: ast.stmt) -> bool:
    """Whether it is a method that says a value as text."""
    return isinstance(node, ast.FunctionDef) and node.name in OF_PRINTS


def narrow(code: str) -> str:
    """The same code, a space for each level, none before what goes on with a statement; no gaps."""
    lines = code.split("\n")
    levels, level, starts = [0] * len(lines), 0, True
    inside: set[int] = set()  # of a text of several lines
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            level += 1 if token.type == tokenize.INDENT else -1
        elif token.type in (tokenize.NEWLINE, tokenize.NL):
            starts = starts or token.type == tokenize.NEWLINE
        else:
            if starts:
                levels[token.start[0] - 1] = level
            starts = False
            if token.type in TEXTS:
                inside.update(range(token.start[0], token.end[0]))
    return "\n".join(
        line if row in inside else " " * levels[row] + line.lstrip(" ")
        for row, line in enumerate(lines)
        if row in inside or line.strip()
    )
