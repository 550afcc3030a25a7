"""A page or a notebook in another language: words replaced, code and results as they were.

A long file, because each kind of output has its own way to be said again.
"""

import html
import json
import re
from functools import cache

import catalogue
import glossary
import sources
from blocks import SILENT, has_words, translate

from memlab.base.messages import placed, put, template, translated
from memlab.base.numerals import written
from memlab.base.prints import reader
from memlab.base.table import places
from memlab.explain import findings

TEXT = re.compile(r"<(q|code|script|style)\b.*?</\1>|>([^<>]+)(?=<)", re.S)
# Code, which stays, or a formula, in which a comma with braces parts no list.
FORMULA = re.compile(r"(`{3,}.*?`{3,}|`+[^`]*`+)|(\$\$.*?\$\$|(?<!\\)\$[^$]+\$)", re.S)
IN_FORMULA = re.compile(r"(?<![\d.])\d+(?:\{,\}\d{3})*(?:\.\d+)?(?![\d.]*\d)")
LABEL = re.compile(r"(\s*(?:· )?)(.*?)(:?\s*)\Z", re.S)
COLON = {"zh-TW": "：<strong>"}  # as memlab.base.messages.colon says it
TABLE = re.compile(r"(<table\b.*?</table>)", re.S)
HEAD = re.compile(r'<th scope="col"[^>]*>([^<]*)<')
SAID = "\x02"  # before a line that is in the language already
GAP = re.compile(r" {2,}")
LINE = re.compile(r'<text x="([^"]*)" y="([^"]*)"([^>]*)>([^<]*)</text>')


def words_of(language, name):
    """All that a source may be told in a language: its own catalogue, and what it quotes."""
    words = catalogue.translations(language, name)
    for block, (chapter, there) in sources.quoted().items():
        if chapter != name and (new := _of(language, chapter).get(there)):
            words.setdefault(block, sources.from_page(new))
    for short, (chapter, whole) in sources.titles().items():
        if new := _of(language, chapter).get(whole):
            words.setdefault(short, new if short == whole else re.split("[:：]", new)[0].strip())
    if name == "glossary":
        words |= glossary.terms(sources.ROOT, language)
    return words


@cache
def _of(language, name):
    return catalogue.translations(language, name)


def speaker(words, missing=None, language=""):
    """A function for `blocks.translate`: the block's translation, or None and a note of it."""

    def say(block):
        if not has_words(block):
            new = numbers(block, language)
            return None if new == block else new
        if block in words:
            return numbers(words[block], language)
        for title in sources.titles():  # a row of a table that leads to a chapter
            if title in block and title in words and not has_words(block.replace(title, "")):
                return numbers(block.replace(title, words[title]), language)
        if missing is not None:
            missing.append(block)
        return None

    return say


def numbers(block, language):
    """A block with its numbers as the language writes them; code and formulas stay."""
    return written(block, language, [found.span() for found in SILENT.finditer(block)])


def formulas(text, language):
    """A page with the numbers of its formulas as the language writes them: 8{,}192 and 1.5."""
    if written("0.5", language) == "0.5":
        return text

    def one(found):
        whole, _, after = found[0].partition(".")
        return whole.replace("{,}", ".") + ("{,}" + after if after else "")

    return FORMULA.sub(lambda found: found[1] or IN_FORMULA.sub(one, found[2]), text)


def page(text, words, missing=None, language=""):
    """A page of Markdown in the language of `words`."""
    done = translate(text, speaker(words, missing, language), every=True)
    return formulas(done, language)


def notebook(content, words, messages, language, missing=None):
    """A notebook in the language of `words`; its outputs say `messages` in that language.

    Code cells keep their source; the notebook's metadata names the language, so that memlab prints
    in it when the notebook runs.
    """
    content = json.loads(json.dumps(content))
    said = set(sources.said(content))
    say = speaker(words, missing, language)
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            text = translate("".join(cell["source"]), say, every=True)
            cell["source"] = formulas(text, language)
        shown = cell["metadata"].get("mystnb", {})
        for kind, key in sources.FIGURE:
            if shown.get(kind, {}).get(key):
                shown[kind][key] = say(shown[kind][key]) or shown[kind][key]
        for output in cell.get("outputs", []):
            _output(output, "".join(cell["source"]), said, messages, language)
    content["metadata"]["memlab"] = {"language": language}
    return content


def _output(output, code, said, messages, language):
    def heard(text):
        return template(text)[0] in said

    def say(text):
        if heard(text):
            return written(translated(text, messages), language)
        return text if is_foreign(text, heard) else written(text, language)

    if output["output_type"] == "stream":
        tell = reader(code, messages, language, findings.SENTENCES)
        output["text"] = printed(
            _joined(output["text"]),
            lambda line: judge(line, messages, language) or tell(line),
            lambda text: lines(text, say, heard),
        )
    for mime, data in output.get("data", {}).items():
        if mime in ("text/html", "image/svg+xml"):
            whole = wrapped(_joined(data), lambda text: say(text) if heard(text) else text)
            done = tables(whole, say, messages, language)
            output["data"][mime] = done.replace(": <strong>", COLON.get(language, ": <strong>"))
        elif mime == "text/plain":
            output["data"][mime] = lines(_joined(data), say, heard)


def question(asked, messages, language):
    """A question with its sliders and all its answers, for the page of a chapter."""

    def say(text):
        return written(translated(text, messages), language)

    def known(text):  # words, and not only how its numbers look
        return text if translated(text, messages) == text else say(text)

    def html_of(answer):
        return tables(wrapped(answer, known), say, messages, language)

    controls = [
        one | {"label": say(one["label"]), "values": list(map(say, one["values"]))}
        for one in asked["controls"]
    ]
    answers = list(map(html_of, asked["answers"]))
    return asked | {"question": say(asked["question"]), "controls": controls, "answers": answers}


def is_foreign(cell, heard):
    """Whether a cell has words, which are no name, and memlab did not say them."""
    words, _ = template(cell)
    named = re.fullmatch(r"[\w.]+", words) and re.search(r"[._]", words)
    return bool(re.search(r"[^\W\d_]{2}", words)) and not named and not heard(cell)


def _joined(data):
    return data if isinstance(data, str) else "".join(data)


def markup(text, say):
    """HTML or SVG with the text between its tags said in the other language."""

    def node(found):
        if found[2] is None:  # a quotation, in its own words, or code
            return found[0]
        if found[2].startswith(SAID):
            return f">{found[2].removeprefix(SAID)}"
        # A label may stand between the dot before it and the colon behind it.
        before, words, after = LABEL.findall(html.unescape(found[2]))[0]
        new = say(words) if words else words
        if new == words:
            return found[0]
        return f">{html.escape(before + new + after, quote=False)}"

    return TEXT.sub(node, text)


def tables(text, say, messages, language):
    """HTML said, the cells of a table where a catalogue has a word for that table alone by it."""

    def piece(shown):
        head = HEAD.search(shown)
        context = html.unescape(head[1]) if head else ""

        def say_there(words):
            new = placed(words, context, messages)
            return written(new, language) if new else say(words)

        return markup(shown, say_there)

    return "".join(map(piece, TABLE.split(text)))


def wrapped(svg, say):
    """Titles that were cut into lines, put together, said, and cut into as many lines again."""
    found = list(LINE.finditer(svg))
    for i, first in enumerate(found):
        for last in range(min(len(found), i + 5) - 1, i, -1):
            run = found[i : last + 1]
            if any(one[1] != first[1] or one[3] != first[3] for one in run):
                continue
            pieces = [html.unescape(one[4]) for one in run]
            whole = next((w for w in (" ".join(pieces), "\n".join(pieces)) if say(w) != w), None)
            if whole is not None:
                new = " ".join(say(whole).split())
                for one, words in zip(run, _cut(new, len(run)), strict=True):
                    head = f'<text x="{one[1]}" y="{one[2]}"{one[3]}>'
                    line = f"{head}{SAID}{html.escape(words)}</text>"
                    svg = svg.replace(one[0], line, 1)
                break
    return svg


def _cut(text, count):
    """The text in so many lines of about one length, at spaces, or beside an ideograph."""
    words = re.findall(
        r"[（「]*(?:[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+)[、。，；：）」]*\s*",
        text,
    )
    wide, cut = places(text) / count, [""]
    for word in words:
        if len(cut) < count and cut[-1] and places(cut[-1] + word.rstrip()) > wide * 1.05:
            cut.append("")
        cut[-1] += word
    return [line.rstrip() for line in cut] + [""] * (count - len(cut))


def lines(text, say, heard):
    """A table as text, its title, a picture's name."""
    done, table = [], []
    for line in [*text.split("\n"), None]:
        if line is not None and GAP.search(line.strip()):
            table.append(line)
            continue
        done += _table(table, say, heard)
        table = []
        if line is not None:
            done.append(_line(line, say))
    return "\n".join(done)


def printed(text, tell, rest):
    """Printed text: the lines that `tell` knows by it, what stands between them by `rest`."""
    done, between = [], []
    for line in [*text.split("\n"), None]:
        new = None if line is None else tell(line)
        if line is not None and new is None:
            between.append(line)
            continue
        done += [rest("\n".join(between))] if between else []
        done += [] if new is None else [new]
        between = []
    return "\n".join(done)


def judge(line, messages, language):
    """A line in which an exercise says ✓ with the answer and its unit; None for any other."""
    if not (right := re.fullmatch(r"✓ (-?[\d,.]+) (.*)", line)):
        return None
    size, unit = right.groups()
    if unit == "B" or unit.startswith("B,"):
        return "✓ " + written(f"{size} {unit}", language)
    return "✓ " + put(f"{{1}} {unit}", [size], messages, language)


def _line(line, say):
    marked = re.fullmatch(r"([✗○] |<Picture: | {13}|)(.*?)(>?)", line)
    return marked[1] + say(marked[2]) + marked[3] if marked and marked[2] else line


def _table(rows, say, heard):
    """Aligned rows with their cells said, aligned again by the columns of blanks between them."""
    if not rows:
        return []
    width = max(map(len, rows))
    blank = [all(row.ljust(width)[i] == " " for row in rows) for i in range(width)]
    edges, at = [], 0
    for gap in re.finditer("x{2,}", "".join("x" if b else "." for b in blank)):
        edges.append((at, gap.start()))
        at = gap.end()
    edges = [edge for edge in [*edges, (at, width)] if edge[0] < edge[1]]
    cells = [[row.ljust(width)[a:b] for a, b in edges] for row in rows]
    said = [[say(cell.strip()) for cell in row] for row in cells]
    # A table of the chapter's own making has words that memlab never said: it stays as it runs.
    if any(is_foreign(cell.strip(), heard) for row in cells for cell in row):
        return rows
    done = [""] * len(rows)
    start = 0
    for column, (a, b) in enumerate(edges):
        right = any(row[column][:1] == " " for row in cells)
        left = not right or any(
            row[column][:1].isalpha() and row[column][-1:] == " " for row in cells
        )
        wide = max(places(row[column]) for row in said)
        for i, row in enumerate(said):
            pad = " " * (wide - places(row[column]))
            done[i] += " " * (a - start) + (row[column] + pad if left else pad + row[column])
        start = b
    return [row.rstrip() for row in done]
