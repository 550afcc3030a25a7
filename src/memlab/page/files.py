"""Which files the page's engine gets: the tested ones, and four that stand in for CPython's."""

import ast
import importlib
import io
import json
import tokenize
from pathlib import Path

from ..families import NAMES

CORE = Path(__file__).resolve().parent.parent
HERE = "page/micropython/"
FAMILIES = "memlab/families/{}.py"
FIRST = "llama"  # the family that the page asks about at first

# As they are, less what only people read. Of the package itself, and of rooms of which it needs a
# part, MicroPython sees an empty file.
MODULES = (
    "adapters/__init__ adapters/lora adapters/others base/quoted devices engines/apple "
    "explain/changes explain/flags "
    "formats/__init__ formats/format_table formats/formats model/__init__ families/__init__ "
    "model/dropouts model/latent model/mixtures model/model model/parameters model/presets "
    "model/tensors model/values page/adapter_controls page/adapter_tables page/advice "
    "page/answer page/answer_rows page/command page/controls "
    "page/formula_text page/fsdp_tables page/layer_forms page/loop_controls page/loop_tables "
    "page/own_values page/pasted page/peak page/question page/sentences page/serve_controls "
    "page/supported page/table_peak page/torch_loss_tables page/words recipe/__init__ "
    "run/optimizer_loops recipe/recipe recipe/recipe_table recipe/resident run/__init__ "
    "run/adapters run/fields run/offload run/program_defaults run/loops run/loop_rules "
    "run/recipe_choice run/rules run/run sharding/__init__ sharding/deepspeed "
    "sharding/expert_parallel sharding/fsdp sharding/pipeline sharding/sharding "
    "sharding/tensor_parallel step/keys step/windows units verdict"
)
# Of memlab.terms what those import; a page that is read for the first time waits for each byte.
TERMS = (
    "allocator chunk_rows context engine_pool expandable experts gradients kv_cache low_rank "
    "optimizer optimizer_step packed segments sharding tied weights workspaces"
)
# What few questions need, fetched with the first that does: what reads a config.json or an
# adapter_config.json, answers about adapters, about types that memlab does not describe and about
# serving, says after the verdict what an engine makes of the GPU and what is asked, knows a
# teacher; and the records of all families but the first.
LATER = (
    "engines/engine engines/kept engines/llama_cpp engines/pool engines/quantized "
    "page/engine_sentence explain/largest files/adapter_fields model/believed model/config "
    "model/fields model/hub_names model/kind model/module_names model/rotary_keys model/sizes "
    "model/type_kinds page/adapter_file page/adapter_words page/adapters_resident page/asked "
    "page/asked_parts page/asked_serving page/asked_words page/config_words page/llama_cpp_words "
    "page/named page/named_words page/serve_answer page/serve_command page/serve_engine "
    "page/serve_llama_cpp page/serve_words page/sums page/text_sizes page/turns page/types "
    "page/wholes run/teacher"
)
TEXTS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
OF_PRINTS = ("__repr__", "__str__")
KEPT = {"Field": 2}  # arguments of a record that are no words for people
EMPTY = ("", "base/", "step/", "engines/", "explain/", "page/")
FROZEN = (
    "families.Family",
    "model.Model",
    "model.hub_names.Repository",
    "model.latent.Latent",
    "model.tensors.Tensor",
    "recipe.Recipe",
    "sharding.deepspeed.DeepSpeed",
    "sharding.expert_parallel.ExpertParallel",
    "sharding.fsdp.FsdpPolicy",
    "sharding.pipeline.Schedule",
    "sharding.sharding.Sharding",
    "sharding.tensor_parallel.TensorPlan",
    "run.fields.Field",
    "run.loops.Defaults",
    "run.loops.Loop",
    "run.run.Run",
    "run.teacher.Teacher",
    "adapters.lora.Lora",
    "adapters.others.Ia3",
    "adapters.others.Vera",
    "adapters.others.Prompt",
    "terms.context.Reading",
    "explain.changes.Change",
    "explain.changes.Found",
    "devices.Device",
    "engines.engine.Engine",
    "engines.llama_cpp.LlamaCpp",
    "engines.llama_cpp.Loaded",
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
    own = found[FAMILIES.format("__init__")]
    listed = next(line for line in own.split("\n") if line.startswith("NAMES = "))
    found[FAMILIES.format("__init__")] = own.replace(
        listed, f"NAMES = {NAMES}"
    )  # not what is there
    found[FAMILIES.format(FIRST)] = bare(text(f"families/{FIRST}.py"), prints)
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
    for name in NAMES:
        if name != FIRST:
            found[FAMILIES.format(name)] = bare(text(f"families/{name}.py"))
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

    And words of a record that only a shell's help asks for.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation:
            at = node.lineno, node.col_offset + len(node.arg.encode())
            found.append((at, end_of(node.annotation)))
        elif isinstance(node, ast.FunctionDef) and node.returns:
            found.append(
                ((node.returns.lineno, node.returns.col_offset - len(" -> ")), end_of(node.returns))
            )
        elif isinstance(node, ast.AnnAssign) and node.value:
            found.append((end_of(node.target), end_of(node.annotation)))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kept = KEPT.get(node.func.id, len(node.args))
            if kept < len(node.args):
                found.append((end_of(node.args[kept - 1]), end_of(node.args[-1])))
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
    """The same code, a statement a line, a space for each level; no gaps."""
    lines = code.split("\n")
    levels: dict[int, int] = {}  # of the rows on which a statement begins
    level, starts = 0, True
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
    made: list[str] = []
    for row, line in enumerate(lines):
        if row in inside or row in levels:
            made.append(line if row in inside else " " * levels[row] + line.lstrip(" "))
        elif more := line.strip():  # what goes on with a statement
            before = made[-1].removesuffix("\\").rstrip(" ")
            gap = "" if before[-1] in "([{," or more[0] in ")]}" else " "
            made[-1] = before + gap + more
    return "\n".join(made)
