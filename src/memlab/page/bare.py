"""A file of Python less what an engine of a page throws away: comments, annotations, docstrings."""

import ast
import io
import tokenize

TEXTS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
OF_PRINTS = ("__repr__", "__str__")
KEPT = {"Field": 2}  # arguments of a record that are no words for people


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
