"""A page or a notebook in another language: words replaced, code and results as they were."""

import html
import json
import re
from functools import cache

import catalogue
import glossary
import sources
from blocks import has_words, translate

from memlab.base.messages import template, translated
from memlab.base.table import places

TEXT = re.compile(r">([^<>]+)<")
LABEL = re.compile(r"(\s*(?:· )?)(.*?)(:?\s*)\Z", re.S)
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


def speaker(words, missing=None):
    """A function for `blocks.translate`: the block's translation, or None and a note of it."""

    def say(block):
        if block in words:
            return words[block]
        for title in sources.titles():  # a row of a table that leads to a chapter
            if title in block and title in words and not has_words(block.replace(title, "")):
                return block.replace(title, words[title])
        if missing is not None:
            missing.append(block)
        return None

    return say


def page(text, words, missing=None):
    """A page of Markdown in the language of `words`."""
    return translate(text, speaker(words, missing))


def notebook(content, words, messages, language, missing=None):
    """A notebook in the language of `words`; its outputs say `messages` in that language.

    Code cells keep their source; the notebook's metadata names the language, so that memlab prints
    in it when the notebook runs.
    """
    content = json.loads(json.dumps(content))
    said = set(sources.said(content))
    say = speaker(words, missing)
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = translate("".join(cell["source"]), say)
        shown = cell["metadata"].get("mystnb", {})
        for kind, key in sources.FIGURE:
            if shown.get(kind, {}).get(key):
                shown[kind][key] = say(shown[kind][key]) or shown[kind][key]
        for output in cell.get("outputs", []):
            _output(output, said, messages)
    content["metadata"]["memlab"] = {"language": language}
    return content


def answers(kept, messages):
    """What tools/answers.py kept of a chapter's questions, in the language of `messages`."""

    def say(text):
        return translated(text, messages)

    made = json.loads(json.dumps(kept))
    for question in made["questions"]:
        question["question"] = say(question["question"])
        for control in question["controls"]:
            control["label"] = say(control["label"])
            control["values"] = [say(value) for value in control["values"]]
        question["answers"] = [markup(wrapped(each, say), say) for each in question["answers"]]
    return made


def _output(output, said, messages):
    def heard(text):
        return template(text)[0] in said

    def say(text):
        return translated(text, messages) if heard(text) else text

    if output["output_type"] == "stream":
        output["text"] = lines(_joined(output["text"]), say, heard)
    for mime, data in output.get("data", {}).items():
        if mime in ("text/html", "image/svg+xml"):
            output["data"][mime] = markup(wrapped(_joined(data), say), say)
        elif mime == "text/plain":
            output["data"][mime] = lines(_joined(data), say, heard)


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
        # A label may stand between the dot before it and the colon behind it.
        before, words, after = LABEL.findall(html.unescape(found[1]))[0]
        new = say(words) if words else words
        if new == words:
            return found[0]
        return f">{html.escape(before + new + after, quote=False)}<"

    return TEXT.sub(node, text)


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
                    line = f'<text x="{one[1]}" y="{one[2]}"{one[3]}>{html.escape(words)}</text>'
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
    """Printed text: whole lines, lines after a mark (✓, ✗), pictures' names, and tables."""
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


def _line(line, say):
    marked = re.fullmatch(r"([✓✗○] |<Picture: |)(.*?)(>?)", line)
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
