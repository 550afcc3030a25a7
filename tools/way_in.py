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
<p>There is no such page.</p>
<p lang="pt-BR">Esta página não existe.</p>
<p lang="zh-TW">沒有這個頁面。</p>
<ul>
{links}
</ul>
</html>
"""
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


def not_found(site, page, names):
    """The page for an address that leads nowhere, with a link to `page` of each language."""
    links = "\n".join(
        f'<li><a href="{site}{x}/{page}" lang="{x}">{name}</a></li>' for x, name in names.items()
    )
    return MISSING.format(policy=POLICY, style=STYLE, links=links)
