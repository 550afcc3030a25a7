"""Draw the picture that a shared link shows: the title beside one training step.

python tools/social.py    writes book/_static/social.png anew, from book/_static/step.svg
"""

from pathlib import Path

from browser import chromium

STATIC = Path(__file__).resolve().parent.parent / "book" / "_static"
SIZE = {"width": 1200, "height": 630}
CARD = """<body style="margin:0; display:flex; align-items:center; height:630px; background:#fff;
    color:#1a1a1a; font-family:'DejaVu Sans',sans-serif">
<div style="width:390px; padding-left:50px">
<h1 style="font-size:76px; margin:0">memlab</h1>
<p style="font-size:31px; line-height:1.4">Where every byte of GPU memory goes when a language model
is trained or served</p></div>
<div style="width:720px">{picture}</div>"""


def main():
    picture = (STATIC / "step.svg").read_text(encoding="utf-8")
    picture = picture.replace('width="620" height="408"', 'width="720"', 1)
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        page.set_content(CARD.format(picture=picture))
        page.screenshot(path=STATIC / "social.png")


if __name__ == "__main__":
    main()
