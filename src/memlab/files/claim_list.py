"""A plain list of claims, as `memlab audit` reads it: Markdown that any page shows as it stands.

A heading of the second level begins a claim, in the reader's own words. The list under it says:

figure      what was posted: 16 GB; 15 to 16 GB; at most 24 GB; 8 sequences; yes
ask         the words of a `memlab` command whose answer has the figure
line        which line of the answer, as it prints it, or a path in its --json
within      a share that is near enough, such as 5 %; without it the figure's own digits decide
unchecked   why no command can answer it, instead of ask and line
verdict     if it does not hold: the reader's name for what is wrong
reason      if it does not hold: the reader's words about why
where       the address at which it was read

A line that is indented goes on with the one before. All other text is for readers.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..base.frozen import dataclass
from ..base.untrusted import decoded, read_bytes
from .claims import VERDICTS
from .figure import Figure, figure, share

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from fractions import Fraction

KEYS = ("figure", "ask", "line", "within", "unchecked", "verdict", "reason", "where")
# What a reader may call a figure that does not hold; the others are found, not said.
SAID = tuple(list(VERDICTS)[1:-1])
BYTES, CLAIMS, WIDTH = 2**20, 200, 1000  # of a file, in it, and characters of one line
ITEM = re.compile(r"[-*+] +([A-Za-z]+): *(.*)")


@dataclass(frozen=True)
class Asked:
    """One claim of a list.

    place       the line of the file where it begins
    ask, line   empty where it is unchecked
    within      None: the figure's own digits decide
    """

    place: int
    claim: str
    figure: Figure
    ask: str
    line: str
    within: Fraction | None
    unchecked: str
    verdict: str
    reason: str
    where: str


@dataclass(frozen=True)
class ClaimList:
    """A title, or the file's name where it has none, and the claims in their order."""

    title: str
    claims: tuple[Asked, ...]


def read_list(path: str | Path) -> ClaimList:
    """The claims of a file.

    Raises      ValueError that names file, line and what would be right; OSError for no file
    """
    found = read_bytes(path, BYTES)
    try:
        words = decoded(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return parsed(words, str(path))


def parsed(words: str, name: str) -> ClaimList:
    """The claims in a text; `name` is what its errors call it.

    Raises      ValueError that names the line and what would be right
    """
    title = ""
    claims: list[Asked] = []
    for place, heading, items in _sections(words, name):
        if heading.startswith("# "):
            title = title or heading[2:].strip()
        elif len(claims) == CLAIMS:
            raise ValueError(f"{name}:{place}: more than {CLAIMS} claims; make it two files")
        else:
            claims.append(_claim(name, place, heading[3:].strip(), items))
    if not claims:
        raise ValueError(f"{name}: no claim; one begins with a line such as '## It takes 16 GB'")
    return ClaimList(title or Path(name).name, tuple(claims))


Items = dict[str, tuple[int, str]]  # key: its line and what it says


def _sections(words: str, name: str) -> list[tuple[int, str, Items]]:
    """The headings of level one and two, each with its line and the list under it."""
    found: list[tuple[int, str, Items]] = []
    last = ""
    for place, line in enumerate(words.replace("\r\n", "\n").split("\n"), 1):
        where = f"{name}:{place}"
        if len(line) > WIDTH:
            raise ValueError(f"{where}: {len(line):,} characters; at most {WIDTH:,} in a line")
        if re.match(r"##? +\S", line):
            found.append((place, line, {}))
            last = ""
        elif found and found[-1][1].startswith("## "):
            items = found[-1][2]
            if item := ITEM.fullmatch(line):
                last = item[1].lower()
                if last not in KEYS:
                    raise ValueError(f"{where}: unknown word {item[1]!r}; known: {', '.join(KEYS)}")
                if last in items:
                    raise ValueError(f"{where}: {last} again; line {items[last][0]} says it")
                items[last] = (place, item[2].strip())
            elif re.match(r"[-*+] ", line):
                raise ValueError(f"{where}: an item is '- figure: 16 GB'; known: {', '.join(KEYS)}")
            elif line[:1].isspace() and line.strip() and last:
                first, before = items[last]
                items[last] = (first, f"{before} {line.strip()}".strip())
            else:
                last = ""
    return found


def _claim(name: str, place: int, claim: str, items: Items) -> Asked:
    said = {key: words for key, (_, words) in items.items()}
    for key, (line, words) in items.items():
        if not words:
            raise ValueError(f"{name}:{line}: {key} says nothing; leave it out")
    needed = ("figure",) if "unchecked" in said else ("figure", "ask", "line")
    if missing := [key for key in needed if key not in said]:
        more = "" if missing == ["figure"] else "; or say why not: '- unchecked: no tokens named'"
        raise ValueError(f"{name}:{place}: the claim has no {', '.join(missing)}{more}")
    for key in ("ask", "line", "within", "verdict"):
        if "unchecked" in said and key in said:
            raise ValueError(f"{name}:{items[key][0]}: {key} beside unchecked; leave one out")
    if said.get("verdict", SAID[0]) not in SAID:
        wrong = f"unknown verdict {said['verdict']!r}; known: {', '.join(SAID)}"
        raise ValueError(f"{name}:{items['verdict'][0]}: {wrong}")
    try:
        key = "figure"
        posted = figure(said[key])
        key = "within"
        near = share(said[key]) if key in said else None
    except ValueError as error:
        raise ValueError(f"{name}:{items[key][0]}: {error}") from None
    rest = {key: said.get(key, "") for key in KEYS if key not in ("figure", "within")}
    return Asked(place=place, claim=claim, figure=posted, within=near, **rest)
