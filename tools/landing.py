"""The first page of the site, which leads to the book in the reader's language."""

import base64
import hashlib

STYLE = "body { font: 1.1rem system-ui, sans-serif; margin: 4rem auto; max-width: 30rem }"
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; img-src 'self'; script-src 'self'; style-src 'sha256-{STYLE_HASH}'"
GO = '<meta http-equiv="refresh" content="0; url={first}/{page}">'
PICK = '<script src="pick.js" data-languages="{languages}"></script>\n<noscript>{go}</noscript>'
HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""
INDEX = (
    HEAD
    + """<title>memlab</title>
<meta name="description" content="{about}">
<link rel="icon" href="{first}/_static/favicon.svg">
{go}
<style>{style}</style>
<h1>memlab</h1>
<ul>
{links}
</ul>
</html>
"""
)
ABOUT = "Where every byte of GPU memory goes when a language model is trained or served."
# What a server shows, at any depth, instead of a page that is not there: with whole addresses.
MISSING = (
    HEAD
    + """<meta name="robots" content="noindex">
<title>memlab: no such page</title>
<style>{style}</style>
<h1>memlab</h1>
{sentences}
<ul>
{links}
</ul>
</html>
"""
)
# Chapters were numbered anew by their place in the book, and addresses are in other people's texts:
# the old name of each, and the number that it has now.
MOVED = dict(
    pair.split(">")
    for pair in """
   07_kv_cache>11 09_loading>10 10_step>07 11_watching>09 12_mixed_precision>16 13_quantization>21
   14_fp8>20 15_checkpointing>14 16_small_optimizers>17 17_accumulation>15 19_pruning>23 20_lora>22
   21_sharding>25 22_choosing>28 23_fp8_half>29 24_predicted_28>30 25_status_report>31
   26_small_model>32 27_free_memory>33 28_missing_gigabytes>34 29_experts>12 30_serving>13
   31_trainers>24 32_divide_model>26 33_divide_text>27 18_offloading>19 19_fp8>20 20_quantization>21
   21_lora>22 22_pruning>23 23_trainers>24 24_sharding>25 25_divide_model>26 26_divide_text>27
   27_choosing>28 28_fp8_half>29 29_predicted_28>30 30_status_report>31 31_small_model>32
   32_free_memory>33 33_missing_gigabytes>34
""".split()
)
ROBOTS = "User-agent: *\nAllow: /\n\nSitemap: {site}sitemap.xml\n"
SITEMAPS = """<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{}</sitemapindex>
"""


def way_in(page, first, links, languages=()):
    """A page that leads to `page` of the first language at once, or by a link; it needs no script.

    With several languages a script picks the reader's; without scripts it is the first.
    """
    items, go = "\n".join(f"<li>{link}</li>" for link in links), GO.format(first=first, page=page)
    if len(languages) > 1:
        go = PICK.format(languages=" ".join(languages), go=go)
    return INDEX.format(first=first, go=go, links=items, style=STYLE, policy=POLICY, about=ABOUT)


def moved(pages):
    """At the old address of each chapter, below the folder of a language, a page to the new one."""
    for old, number in MOVED.items():
        page = f"notebooks/{number}_{old[3:]}.html"
        if not (pages / page).exists():
            continue
        link = f'<a href="../{page}">{number}_{old[3:]}</a>'
        (pages / "notebooks" / f"{old}.html").write_text(way_in(page, "..", [link]), "utf-8")


def not_found(site, page, names, sentences):
    """The page for an address that leads nowhere, with a link to `page` of each language.

    sentences   language -> that there is no such page
    """
    links = "\n".join(
        f'<li><a href="{site}{x}/{page}" lang="{x}">{name}</a></li>' for x, name in names.items()
    )
    said = "\n".join(f'<p lang="{x}">{sentence}</p>' for x, sentence in sentences.items())
    return MISSING.format(policy=POLICY, style=STYLE, links=links, sentences=said)
