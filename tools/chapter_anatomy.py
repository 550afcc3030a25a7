"""What a chapter is made of, as rules: `problems(notebook)` names each one that is broken.

A rule is a function that yields sentences; its name, with dashes, opens each of them. CONTRIBUTING
points here: the sentence after each `def` is the rule. The file is long because the rules are one
list, read from its top to its end; what they share stands below it.
"""

import re
from collections import Counter

CHAPTER = re.compile(r"\d\d_[a-z0-9_]+\.ipynb")
AGREE_OR_WHY = r"(\*\*|^#+ +)Why they differ|✓ \*Derived"
NEEDED = ("setup", "formula", "figure", "measure", "check", "widget", "exercise", "solution")
# A cell tagged "device" shows the chapter's rows on a GPU, where there is one or a record of one.
# One tagged "machine" is the mechanism itself, in Python or torch that a reader could have written.
KINDS = {*NEEDED, "device", "machine"}
UNREAD = {"hide-input", "hide-cell", "remove-cell", "exercise"}  # on the first way through
TAGS = {*KINDS, "hide-input", "hide-cell", "hide-output", "remove-cell", "nbval-ignore-output"}
# Where an output carries one of these, it would differ on the next machine.
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|tmp|mnt|opt|usr|var|private|work)/\w|\b[A-Z]:\\\w|\b0x[0-9a-f]{6,}"
)
TABLE = re.compile(r"^\|.*\|\n\|[ :|-]+\|", re.MULTILINE)
# A model whose numbers somebody published; a family that is missing here may be added.
REAL = re.compile(
    r"\b(Llama-|Qwen|GPT-2|DeepSeek|Mistral|Mixtral|Gemma|Phi-|OLMo|SmolLM|Pythia|OPT-)"
)
# What lays out a table: not the computation of what stands in it.
LAYOUT = re.compile(
    r"\bGrid\b|\b(rows?|table|heads?|headings?)\b *(\+?=|\.append|\.extend)|, f?\"[^\"]*\"\]"
)
DOES = ("build", "compute", "predict", "read")
EXERCISE = re.compile(rf"\*\*Exercise \d \(({'|'.join(DOES)}), \d+ min\)\.\*\*")
TAG = re.compile(r"</?(?:span|q)\b[^>]*>")  # around a note's own words
LINK = re.compile(r"\[[^\]]*\]\([^)]+\)|<https?://[^>]+>|\{(?:cite|doc|ref)[:\w]*\}`[^`]+`")


def problems(nb):
    """Every broken rule of a chapter, as 'rule-name: what is wrong and where'."""
    found = []
    for rule in RULES:
        found += [f"{rule.__name__.replace('_', '-')}: {words}" for words in rule(nb)]
    return found


def title(nb):
    """The first cell: a label, a heading, a sentence on the end product.

    The heading is the field's term, a colon and what the chapter does with it.
    """
    first = nb.cells[0] if nb.cells else None
    text = first.source if first is not None and first.cell_type == "markdown" else ""
    head = re.match(r"\(([a-z][a-z0-9-]*)\)=\n+# +(\w+)([^\n]*)(.*)", text, re.DOTALL)
    if not head:
        yield "the first cell does not begin with '(label)=' and '# Heading'"
    elif not re.match(r"[^:]+: \w", head[2] + head[3]):
        yield "the heading is not 'Term: what the chapter does with it'"
    elif not head[4].strip():
        yield "no sentence after the heading says what the reader ends up with"


def objectives(nb):
    """Three bullets before the first code: *You will compute*, *You will measure*, *You need*."""
    text = _before(nb, "setup")
    for start in ("You will compute", "You will measure", "You need"):
        bullet = re.search(rf"^[-*] +\*{{1,2}}{start}\b.*(?:\n  .*)*", text, re.MULTILINE)
        if not bullet:
            yield f"no bullet '- *{start}* …' before the setup cell"
        elif start == "You need" and not re.search(r"\d+ min", bullet[0]):
            yield "*You need* does not say how many minutes"
        elif start == "You need" and not re.search(r"\b[CG]PUs?\b", bullet[0]):
            yield "*You need* does not say which hardware (a CPU, a GPU)"


def minutes(nb):
    """The stated minutes, 30 at most, are no fewer than reading takes, but for half a one.

    Reading takes 200 words a minute, and ten seconds for each line of code that is not folded away;
    exercises come on top.
    """
    _, _, need = _before(nb, "setup").partition("You need")
    said = re.search(r"(\d+) min", need)
    if said and (takes := _reading(nb)) > int(said[1]) + 0.5:
        yield f"*You need* says {said[1]}, and reading takes {takes:.1f}"
    if said and int(said[1]) > 30:
        yield f"*You need* says {said[1]}: 30 at most"


def words(nb):
    """At most 2,200 words, the exercises apart."""
    if (count := len(_words(nb))) > 2200:
        yield f"{count:,} words; 2,200 at most"


def picture_early(nb):
    """The first picture follows the question, with at most 400 words before it."""
    first = _first(nb, "figure")
    before = "\n".join(c.source for c in nb.cells[:first] if c.cell_type == "markdown")
    if "**Predict first" not in before:
        yield "the first picture stands before '**Predict first'"
    if (count := len(re.findall(r"\w+", TAG.sub("", before)))) > 400:
        yield f"{count} words before the first picture; 400 at most"


def machine(nb):
    """One cell tagged machine: 30 lines at most, nothing of memlab; a check of it follows."""
    found = _all(nb, "machine")
    if len(found) != 1:
        yield f"{len(found)} cells tagged 'machine'; one holds the mechanism of the chapter"
    for i in found:
        cell = nb.cells[i]
        if (lines := cell.source.count("\n") + 1) > 30:
            yield f"cell {cell.id} has {lines} lines of code; 30 at most"
        if "memlab" in cell.source:
            yield f"cell {cell.id} imports memlab, or names it"
        if not any(j > i for j in _all(nb, "check")):
            yield f"no check cell after the machine {cell.id}"


def layout(nb):
    """At most one visible line in ten makes a table: cells compute, `Grid.of` lays out."""
    lines = _visible(nb)
    laid = [line for line in lines if LAYOUT.search(line)]
    if 10 * len(laid) > len(lines):
        yield f"{len(laid)} of {len(lines)} visible lines make tables: {laid[:3]}"


def bill(nb):
    """A section 'The bill …' shows what the run of the first page needs, as far as it is known."""
    if not re.search(r"^## The bill\b", _markdown(nb), re.MULTILINE):
        yield "no heading '## The bill so far'"


def predict_first(nb):
    """'**Predict first**' with real numbers, before the first formula cell."""
    cells = [c.source for c in nb.cells[: _first(nb, "formula")] if "**Predict first" in c.source]
    if not cells:
        yield "no '**Predict first**' before the first formula cell"
    elif not any(re.search(r"\d", source) for source in cells):
        yield "the question has no numbers"


def letters(nb):
    """A table of letters and shapes, and the formula in $$, before the first formula cell."""
    text = _before(nb, "formula")
    heads = [match[0].split("\n")[0].lower() for match in TABLE.finditer(text)]
    if not any("letter" in head or "shape" in head for head in heads):
        yield "no table headed 'letter' or 'shape' before the first formula cell"
    if "$$" not in text and "{math}" not in text:
        yield "no formula in $$ before the first formula cell"


def tags(nb):
    """Tags from a closed list; at least one cell of each kind; output ignored only on figures."""
    counts = Counter(tag for cell in nb.cells for tag in _tags(cell))
    for tag in sorted(set(counts) - TAGS):
        yield f"unknown tag {tag!r}; known: {', '.join(sorted(TAGS))}"
    for tag in NEEDED:
        if not counts[tag]:
            yield f"no cell tagged {tag!r}"
    for cell in nb.cells:
        if cell.cell_type == "code" and not set(_tags(cell)) & KINDS:
            yield f"cell {cell.id} has no tag that says what it is for"
        if "nbval-ignore-output" in _tags(cell) and "figure" not in _tags(cell):
            yield f"cell {cell.id} ignores its output and is not a figure"


def why_they_differ(nb):
    """After each measure cell a Markdown cell, then a check cell.

    The Markdown says in one line that the columns agree (✓ *Derived = measured*), or has **Why they
    differ**.
    """
    for i in _all(nb, "measure"):
        between, after = _next_code(nb, i)
        if not any(re.search(AGREE_OR_WHY, s, re.MULTILINE) for s in between):
            yield f"no '✓ *Derived' and no '**Why they differ**' after cell {nb.cells[i].id}"
        if after is None or "check" not in _tags(after):
            yield f"no check cell after cell {nb.cells[i].id}"


def check_asserts(nb):
    """A check cell asserts and gives the reason in a comment."""
    for i in _all(nb, "check"):
        source = nb.cells[i].source
        if not re.search(r"^\s*assert\b", source, re.MULTILINE):
            yield f"cell {nb.cells[i].id} asserts nothing"
        if not re.search(r"(^|\s)#\s*\w", source):
            yield f"cell {nb.cells[i].id} has no comment with the tolerance's reason"


def solutions(nb):
    """Each exercise asks with `...` and check(…); a folded solution (hide-cell) follows."""
    for i in _all(nb, "exercise"):
        cell = nb.cells[i]
        _, after = _next_code(nb, i)
        if "check(" not in cell.source or "..." not in cell.source:
            yield f'cell {cell.id} needs `answer = ...` and `check("id", answer)`'
        if after is None or "solution" not in _tags(after):
            yield f"no solution cell after cell {cell.id}"
        elif "hide-cell" not in _tags(after):
            yield f"solution {after.id} is not folded: tag it hide-cell"


def exercises(nb):
    """Four exercises, ex-<label>-1 to ex-<label>-4 in order; one is on a real model's numbers.

    One builds, one predicts what a change does, one reads a picture or a log, one computes.
    """
    asked, words = [], ""
    for i in _all(nb, "exercise"):
        asked += re.findall(r"check\(\s*[\"']([^\"']+)", nb.cells[i].source)
        words += nb.cells[i - 1].source if i and nb.cells[i - 1].cell_type == "markdown" else ""
    label = re.match(r"\(([a-z0-9-]+)\)=", nb.cells[0].source if nb.cells else "")
    wanted = [f"ex-{label[1] if label else 'label'}-{n}" for n in (1, 2, 3, 4)]
    if asked != wanted:
        yield f"the exercises are {', '.join(asked) or 'none'}; wanted: {', '.join(wanted)}"
    if not REAL.search(words):
        yield "no question names a real model (Llama-3-8B, Qwen3-4B, GPT-2, …)"
    if sorted(EXERCISE.findall(_markdown(nb))) != sorted(DOES):
        yield "no '**Exercise 1 (build, 5 min).**' of each kind: " + ", ".join(DOES)


def key_points(nb):
    """A heading Key points with a table below it."""
    yield from _under(nb, "Key points", TABLE, "has no table below it")


def in_practice(nb):
    """A heading In practice with text below it."""
    yield from _under(nb, "In practice", re.compile(r"\w{3}"), "has no text below it")


def further_reading(nb):
    """A heading Further reading; each bullet has a link and says in words why to follow it."""
    bullet = re.compile(r"^[-*] +(.*(?:\n +.*)*)", re.MULTILINE)
    yield from _under(nb, "Further reading", bullet, "has no bullets below it")
    for item in bullet.findall(_section(nb, "Further reading") or ""):
        if not LINK.search(item):
            yield f"no link in: {item[:60]}"
        elif len(re.findall(r"\w+", LINK.sub("", item))) < 4:
            yield f"no reason to follow the link in: {item[:60]}"


def figures(nb):
    """A figure cell has alt text and a caption in its metadata and gives an SVG with real text."""
    for i in _all(nb, "figure"):
        cell = nb.cells[i]
        for group, key, words in (("image", "alt", "alt text"), ("figure", "caption", "caption")):
            if len(cell.metadata.get("mystnb", {}).get(group, {}).get(key, "")) < 10:
                yield f"cell {cell.id} has no {words} (mystnb.{group}.{key})"
        drawn = [data["image/svg+xml"] for data in _data(cell) if "image/svg+xml" in data]
        if not drawn:
            yield f"cell {cell.id} gives no SVG"
        if any("<text" not in svg for svg in drawn):
            yield f"cell {cell.id}: the SVG has no <text>; curves cannot be translated"


def images(nb):
    """No picture of 100 kB or more."""
    for cell in nb.cells:
        for data in _data(cell):
            for mime, content in data.items():
                if mime.startswith("image/") and len(str(content).encode()) >= 100_000:
                    yield f"cell {cell.id}: {mime} of {len(str(content).encode()):,} bytes"


def quiet_cells(nb):
    """Setup and check cells print nothing; every other code cell shows one value or picture.

    A device cell shows something only where there is a GPU, or a record of one.
    """
    for cell in _code(nb):
        silent = {"setup", "check"} & set(_tags(cell))
        if silent and cell.outputs:
            yield f"{' and '.join(sorted(silent))} cell {cell.id} has an output"
        if {"formula", "measure", "widget", "exercise", "solution"} & set(_tags(cell)):
            if not cell.outputs:
                yield f"cell {cell.id} shows nothing"


def short_cells(nb):
    """At most 15 lines of code in a cell, but for the machine."""
    for cell in _code(nb):
        if "machine" not in _tags(cell) and (lines := cell.source.count("\n") + 1) > 15:
            yield f"cell {cell.id} has {lines} lines of code; 15 at most"


def ids(nb):
    """Every cell has an id of its own that says what it is."""
    counts = Counter(cell.get("id", "") for cell in nb.cells)
    for name, count in counts.items():
        if count > 1:
            yield f"{count} cells with the id {name!r}"
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or _random(name):
            yield f"id {name!r} is not a slug such as 'formula-weights'"


def ran(nb):
    """Executed in order from a clean kernel, without an error or a word on stderr."""
    numbers = [cell.execution_count for cell in _code(nb)]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"executed as {numbers}, not 1 to {len(numbers)}; run tools/notebooks.py run"
    for cell in _code(nb):
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"cell {cell.id} ends in {output.ename}"
            if output.get("name") == "stderr":
                yield f"cell {cell.id} writes to stderr: {output.text[:60].strip()}"
            if "✗" in _text(output):
                yield f"cell {cell.id} shows ✗: its own answer is wrong"


def stable(nb):
    """Nothing that differs on the next machine: clocks, widget state, paths, addresses."""
    if "widgets" in nb.metadata:
        yield "the notebook keeps widget state; run tools/notebooks.py clean"
    for cell in nb.cells:
        if "execution" in cell.metadata:
            yield f"cell {cell.id} keeps timings; run tools/notebooks.py clean"
        for output in cell.get("outputs", []):
            if "application/vnd.jupyter.widget-view+json" in output.get("data", {}):
                yield f"cell {cell.id} shows a widget that is dead on the page"
            if found := MACHINE.search(_text(output)):
                yield f"cell {cell.id} shows {found[0]!r}, which the next machine will not"


def colon_fences(nb):
    """Directives stand between colons (:::{note}), so that any viewer shows their words."""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and re.search(r"^\s*```+ *\{", cell.source, re.MULTILINE):
            yield f"cell {cell.id} has a directive between back-ticks"


RULES = (
    title,
    objectives,
    minutes,
    words,
    picture_early,
    machine,
    layout,
    bill,
    predict_first,
    letters,
    tags,
    why_they_differ,
    check_asserts,
    solutions,
    exercises,
    key_points,
    in_practice,
    further_reading,
    figures,
    images,
    quiet_cells,
    short_cells,
    ids,
    ran,
    stable,
    colon_fences,
)


def _markdown(nb):
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def _words(nb):
    """Those outside the exercises; a formula counts as one, and a tag of HTML as none."""
    text = TAG.sub("", _markdown(nb))
    text = text.replace(_section(nb, "Exercises") or "", "")
    return re.findall(r"\w+", re.sub(r"\$[^$]*\$", "x", text))


def _visible(nb):
    """The lines of code that are not folded away."""
    read = [cell.source for cell in _code(nb) if not UNREAD & set(_tags(cell))]
    return [line for source in read for line in source.splitlines() if line.strip()]


def _reading(nb):
    """Minutes."""
    return len(_words(nb)) / 200 + len(_visible(nb)) / 6


def _tags(cell):
    return cell.metadata.get("tags", [])


def _code(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def _data(cell):
    return [output.data for output in cell.get("outputs", []) if "data" in output]


def _text(output):
    return "\n".join([str(output.get("text", "")), *map(str, output.get("data", {}).values())])


def _all(nb, tag):
    return [i for i, cell in enumerate(nb.cells) if tag in _tags(cell)]


def _first(nb, tag):
    return next(iter(_all(nb, tag)), len(nb.cells))


def _before(nb, tag):
    """The words of the chapter before the first cell with this tag."""
    cells = nb.cells[: _first(nb, tag)]
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def _next_code(nb, i):
    """The Markdown between cell i and the next code cell, and that cell."""
    between: list[str] = []
    for cell in nb.cells[i + 1 :]:
        if cell.cell_type == "code":
            return between, cell
        between.append(cell.source)
    return between, None


def _section(nb, heading):
    """The words from a heading to the next one, or None if the chapter has no such heading."""
    text = "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    found = re.search(rf"^(##+) +{heading}\s*$(.*?)(?=^##?#? |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[2] if found else None


def _under(nb, heading, wanted, complaint):
    section = _section(nb, heading)
    if section is None:
        yield f"no heading '## {heading}'"
    elif not wanted.search(section):
        yield f"'## {heading}' {complaint}"


def _random(name):
    """Whether an id was drawn by a machine: eight hexadecimal digits, alone or opening a UUID."""
    return re.fullmatch(r"(?=.*\d)[0-9a-f]{8}(-[0-9a-f]{4}.*)?", name) is not None
