"""An answer of the calculator as HTML: the verdict, the bar, the ledger, and what would help."""

import html

from memlab.page.highest import HILLS
from memlab.plot.colours import COLOURS


def e(value):
    return html.escape(str(value), quote=True)


def top(found):
    """The verdict and the bar, which stay in sight while the form is used."""
    return f"""<section class="calc-top" aria-label="Does it fit?">
<p id="calc-wrong" role="alert"></p>
<p id="calc-verdict" role="status" tabindex="-1" data-fits="{"yes" if found["fits"] else "no"}">\
{e(found["verdict"])}</p>
<svg id="calc-bar" role="img" aria-label="{e(found["picture"])}" viewBox="0 0 1000 60" \
preserveAspectRatio="none">{bar(found)}</svg>
<p id="calc-scale">{e(found["scale"])}</p>
</section>"""


def result(found):
    rows = "".join(row(each) for each in found["rows"])
    steps = "".join(change(*each) for each in zip(found["steps"], found["flags"], strict=True))
    left = "".join(f"<li>{e(words)}</li>" for words in found["leaves_out"])
    return f"""<section id="calc-result" aria-label="What it needs, term by term">
<p id="calc-changes-head">{e(found["advice"])}</p>
<ol id="calc-changes">{steps}</ol>
<table class="memlab-ledger"><caption id="calc-title">{e(found["heading"])}</caption>
<thead><tr><th scope="col">term</th><th scope="col">size</th><th scope="col">bytes</th></tr></thead>
<tbody id="calc-rows">{rows}</tbody>
<tfoot><tr><th scope="row">total</th><td id="calc-total">{e(found["total_text"])}</td>\
<td id="calc-total-bytes">{found["total"]:,}</td></tr></tfoot></table>
<p id="calc-formula" aria-live="polite">Point at a term to read its formula.</p>
<p id="calc-hills">{e(found["heights"])}</p>
<svg id="calc-towers" role="img" aria-labelledby="calc-hills" viewBox="0 0 1000 300">\
{towers(found)}</svg>
<p>Left out:</p>
<ul id="calc-left-out">{left}</ul>
<p><button type="button" id="calc-share" disabled>Copy a link to this</button>
<input id="calc-link" type="text" readonly hidden aria-label="The address of what you chose"></p>
<details><summary>Ask memlab the same on a command line, or in Python</summary>
<pre><code id="calc-command">{e(found["command"])}</code></pre>
<pre><code id="calc-script">{e(found["script"])}</code></pre></details>
</section>"""


def bar(found):
    most = max(found["total"], found["usable"])
    left, made = 0.0, ""
    for each in found["rows"]:
        width = 1000 * each["bytes"] / most
        fill = COLOURS.get(each["term"], COLOURS["other"])
        made += f'<rect x="{left:.2f}" y="6" width="{width:.2f}" height="48" fill="{fill}"/>'
        left += width
    at = 1000 * found["limit"] / most
    return made + f'<line x1="{at:.2f}" x2="{at:.2f}" y1="0" y2="60" class="calc-limit"/>'


def change(words, flag):
    """One change: what it is, its line in the reader's library, and a button that makes it."""
    line = f"<br><code>{e(flag)}</code>" if flag else ""
    button = '<button type="button" class="calc-apply" disabled>Make this change</button>'
    return f"<li><span>{e(words)}</span>{line}<br>{button}</li>"


def towers(found):
    """The hills of the step side by side, the line of the card across them."""
    tops = {name: size for name, size, _ in found["hills"]}
    names = [name for name in HILLS if name in tops]
    if not names:
        return ""
    most = max(*tops.values(), found["limit"])
    step, made = 1000 / len(names), ""
    for i, name in enumerate(names):
        height = 250 * tops[name] / most
        kind = "calc-tower-top" if tops[name] == max(tops.values()) else "calc-tower"
        made += (
            f'<rect class="{kind}" x="{i * step + 20:.1f}" y="{260 - height:.2f}" '
            f'width="{step - 40:.1f}" height="{height:.2f}"/>'
            f'<text x="{(i + 0.5) * step:.1f}" y="290" text-anchor="middle">{e(name)}</text>'
        )
    at = 260 - 250 * found["limit"] / most
    return made + f'<line x1="0" x2="1000" y1="{at:.2f}" y2="{at:.2f}" class="calc-limit"/>'


def row(each):
    fill = COLOURS.get(each["term"], COLOURS["other"])
    return (
        '<tr><th scope="row"><button type="button" class="calc-term" '
        f'data-term="{e(each["term"])}" data-formula="{e(each["formula"])}">'
        '<svg viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect width="10" height="10" fill="{fill}"/></svg>{e(each["term"])}</button></th>'
        f"<td>{e(each['text'])}</td><td>{each['bytes']:,}</td></tr>"
    )
