"""Sphinx extension of this book: what surrounds the text of a page.

How long it takes, what to do with it (download, open, cite, edit), what other programs learn about
it, and the map of the site for them. Every address comes from one setting, `repository` in
_config.yml or MEMLAB_REPOSITORY in the environment; without it there is no button that needs one.
"""

import html
import math
import os
import re
from pathlib import Path
from urllib.parse import quote

import yaml
from docutils import nodes
from sphinx.errors import ConfigError

HOME = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
NEEDS = re.compile(
    r"<strong>(?:You need|Você vai precisar|你需要).*?"
    r"(\d+)(?: (?:to|or|a|ou|到|或) (\d+)|[-–](\d+))?"
    r" ?(?:minutes|minutos|分鐘)",
    re.S,
)
UNREAD = re.compile(r"<(script|select|noscript)\b.*?</\1>", re.S)  # data, and lists to look up
WORDS_A_MINUTE = 200
IDEOGRAPHS = re.compile(r"[\u4e00-\u9fff]")  # about two to a word
# Nobody reads these through.
LOOKED_UP = {"answered", "api", "cheat-sheet", "glossary", "loops", "references", "several-gpus"}
LOOKED_UP |= {"calculator", "notebooks/fine_print", "notebooks/fine_print_smaller", "quizzes"}
LOOKED_UP |= {"status"}
# The branch that holds the site's notebooks, each with the cell that installs memlab, which those
# of the edited branch lack. The workflow `pages` writes it, from what tools/launch.py lays out.
LAUNCH = "launch"
PICTURE = "_static/social.png"
BESIDE = "The notebook's first cell installs this file, if both lie in one folder."
CODE = "checks/"  # pages that show a file of the tests: nobody reads these through, either


class Addresses:
    """Everything that follows from the address of the repository; empty where there is none."""

    def __init__(self, repository="", branch="main", site=""):
        self.repository, self.branch, self.site = "", branch, ""
        if repository:
            found = HOME.fullmatch(repository)
            if found is None:
                raise ConfigError(
                    f"repository: {repository!r} is no address like https://github.com/owner/name"
                )
            self.owner, self.name = found.groups()
            self.repository = f"https://github.com/{self.owner}/{self.name}"
            self.site = f"https://{self.owner.lower()}.github.io/{self.name}/"
        if site:
            self.site = site.rstrip("/") + "/"

    @property
    def slug(self):
        return f"{self.owner}/{self.name}"

    def notebook(self, path, language):
        """Where a notebook opens and runs: (text, address, what to know), for each service."""
        if not self.repository:
            return []
        path = f"{language}/{path}"
        lab = quote(f"lab/tree/{path}", safe="")
        return [
            (
                "Open in JupyterLab, on Binder",
                f"https://mybinder.org/v2/gh/{self.slug}/{LAUNCH}?urlpath={lab}",
                "Starts a machine for you; the first start takes minutes.",
            ),
            (
                "Open in Colab",
                f"https://colab.research.google.com/github/{self.slug}/blob/{LAUNCH}/{path}",
                "The notebook's first cell installs memlab and what the chapters use.",
            ),
        ]

    def edit(self, path):
        """The place to change a page: the editor for text, the file itself for all that runs."""
        verb = "blob" if path.endswith((".ipynb", ".py")) else "edit"
        return f"{self.repository}/{verb}/{self.branch}/{path}"


def addresses(config):
    given = config.html_context
    repository = given.get("repository") or os.environ.get("MEMLAB_REPOSITORY", "")
    return Addresses(repository, given.get("branch", "main"), given.get("site", ""))


def folder(config):
    """The folder of the site that holds this language."""
    return config.language.replace("_", "-")


def minutes(body):
    """How long a page takes: what its `You need` line says, else what reading it takes."""
    body = re.sub(r"<math.*?</math>", " x ", UNREAD.sub("", body), flags=re.S)
    text = html.unescape(re.sub(r"<(?!strong>)[^>]+>", "", body))
    if found := NEEDS.search(text):
        low, *high = found.groups()
        return "–".join([low, *filter(None, high)])
    text = text.replace("<strong>", "")
    words = len(text.split()) + len(IDEOGRAPHS.findall(text)) / 2
    return str(max(1, math.ceil(words / WORDS_A_MINUTE)))


def described(doctree):
    """The first plain paragraph of a page, cut where a preview would cut it."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, nodes.section):
            continue
        if next(paragraph.findall(nodes.math), None) is None:
            text = " ".join(paragraph.astext().split())
            return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"
    return ""


def citation(cff, pagename, title, address):
    """How to cite a page, from CITATION.cff: as a sentence and as BibTeX."""
    names = [
        a.get("name") or f"{a['given-names']} {a['family-names']}" for a in cff.get("authors", [])
    ]
    year = str(cff["date-released"])[:4]
    whole = f"{cff['title']}, version {cff['version']}"
    text = f"{', '.join(names)} ({year}). {title}. In {whole}."
    key = "memlab-" + re.sub(r"\W+", "-", pagename.removeprefix("notebooks/"))
    fields = {
        "author": " and ".join(f"{{{name}}}" for name in names),
        "title": f"{{{title}}}",
        "howpublished": f"In {whole}",
        "year": year,
    }
    if address:
        text += f" {address}"
        fields["url"] = address
    lines = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items())
    return {"text": text, "bibtex": f"@misc{{{key},\n{lines}\n}}"}


def tag(kind, name, content):
    return f'\n    <meta {kind}="{name}" content="{html.escape(content)}" />'


def surround(app, pagename, templatename, context, doctree):
    """Give the templates what they show around a page, and the head what others read."""
    context["memlab"] = None
    languages = [
        {"code": code, "name": name, "href": f"{context['content_root']}../{code}/{pagename}.html"}
        for code, name in app.config.html_context.get("languages", [])
    ]
    context["memlab_languages"] = languages if len(languages) > 1 else []
    if doctree is None:  # the search and the index are no text of ours
        return
    places = addresses(app.config)
    title = re.sub(r"<[^>]+>", "", context["title"])
    plain = html.unescape(title)
    notebook = context.get("page_source_suffix") == ".ipynb"
    path = f"{pagename}.ipynb" if notebook else f"book/{pagename}.md"
    if code := pagename.startswith(CODE):
        path = f"tests/audit/{pagename.removeprefix(CODE)}.py"

    source = context["pathto"](f"_sources/{context['sourcename']}", True)
    what = "Download the notebook" if notebook else "Download the text"
    actions = [] if code else [{"text": what, "href": source, "download": True}]
    with open(Path(app.srcdir) / "CITATION.cff", encoding="utf-8") as file:
        cff = yaml.safe_load(file)
    if notebook:
        wheel = f"{context['content_root']}../memlab-{cff['version']}-py3-none-any.whl"
        actions.append({"text": "Download memlab", "href": wheel, "note": BESIDE})
        for text, href, note in places.notebook(path, folder(app.config)):
            actions.append({"text": text, "href": href, "note": note})
        # Commands whose addresses a script fills in, where the site does not know its own.
        script = not places.site
        actions.append({"text": "Run it on your machine", "href": "#run", "script": script})
    if not code:
        actions.append({"text": "Cite it", "href": "#cite"})
    if places.repository:
        text = "See its source" if notebook or code else "Edit it"
        actions.append({"text": text, "href": places.edit(path)})
        actions.append({"text": "Ask a question", "href": f"{places.repository}/issues"})
    chapters = sorted(x for x in app.env.found_docs if x.startswith("notebooks/"))
    context["memlab"] = {
        "actions": actions,
        "chapters": chapters,
        "folded": "tag_hide-input" in context["body"],
        "citation": None if code else citation(cff, pagename, plain, context.get("pageurl") or ""),
    }

    if pagename not in LOOKED_UP and not code:
        long = minutes(context["body"])
        said = f'data-said="About {{1}} minutes" data-number="{long}"'
        about = f'\n<p {said} class="memlab-about">About {long} minutes</p>'
        context["body"] = context["body"].replace("</h1>", f"</h1>{about}", 1)

    site = addresses(app.config).site
    alternate = ""
    for each in context["memlab_languages"]:
        code = each["code"]
        href = html.escape(f"{site}{code}/{pagename}.html" if site else each["href"])
        alternate += f'\n    <link rel="alternate" hreflang="{code}" href="{href}" />'
    words = described(doctree) or plain
    meta = tag("name", "description", words)
    meta += tag("property", "og:type", "article") + tag("property", "og:site_name", "memlab")
    meta += tag("property", "og:title", plain) + tag("property", "og:description", words)
    if context.get("pageurl"):
        meta += tag("property", "og:url", context["pageurl"])
        meta += tag("property", "og:image", f"{app.config.html_baseurl}{PICTURE}")
        meta += tag("name", "twitter:card", "summary_large_image")
    context["metatags"] = context.get("metatags", "") + meta + alternate


def place(app, config):
    """The canonical address of every page, if the site has an address."""
    if site := addresses(config).site:
        config.html_baseurl = f"{site}{folder(config)}/"


def map_site(app, exception):
    """sitemap.xml beside the pages, if the site has an address."""
    if exception or app.builder.name != "html" or not app.config.html_baseurl:
        return
    pages = sorted(app.env.found_docs)
    places = "".join(
        f"<url><loc>{html.escape(app.config.html_baseurl + quote(page))}.html</loc></url>\n"
        for page in pages
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n'
    )
    (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf-8")


def setup(app):
    app.connect("config-inited", place)
    app.connect("html-page-context", surround, priority=100)  # the theme drops empty parts
    app.connect("build-finished", map_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
