"""The package as a wheel, which the site offers beside its notebooks.

Written here rather than by a build tool, because `make book` must work where there is no network to
fetch one: the package is plain Python, so a wheel is its files and five small texts about them.
"""

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "memlab"
ALWAYS = (1980, 1, 1, 0, 0, 0)  # the earliest date of a zip: the same files make the same wheel


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def name():
    """The file's name."""
    return f"memlab-{project()['version']}-py3-none-any.whl"


def write(folder):
    """Write the wheel into a folder, instead of any other of the package; return its path."""
    for old in folder.glob("memlab-*.whl"):
        old.unlink()
    info = f"memlab-{project()['version']}.dist-info"
    texts = package()
    texts[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    about = {"METADATA": metadata(), "WHEEL": WHEEL, "entry_points.txt": scripts()}
    texts |= {f"{info}/{each}": words.encode() for each, words in about.items()}
    record = "".join(f"{each},{digest(data)},{len(data)}\n" for each, data in texts.items())
    texts[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    return archive(folder / name(), texts)


def package():
    """Path in site-packages -> bytes, of every file of the package."""
    files = [p for p in sorted(PACKAGE.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
    return {p.relative_to(PACKAGE.parent).as_posix(): p.read_bytes() for p in files}


def archive(path, texts):
    """Write these files into a zip; return its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for each, data in texts.items():
            made.writestr(zipfile.ZipInfo(each, ALWAYS), data, zipfile.ZIP_DEFLATED)
    return path


WHEEL = """Wheel-Version: 1.0
Generator: memlab
Root-Is-Purelib: true
Tag: py3-none-any
"""


def metadata():
    """What pip and an index need to know: name, version, which Python, what the extras need."""
    told, readme = project(), project()["readme"]
    lines = ["Metadata-Version: 2.4", "Name: memlab", f"Version: {told['version']}"]
    lines += [f"Summary: {told['description']}", f"License-Expression: {told['license']}"]
    lines += [f"Author: {', '.join(author['name'] for author in told['authors'])}"]
    lines += [f"Keywords: {','.join(told['keywords'])}"]
    lines += [f"Classifier: {each}" for each in told["classifiers"]]
    lines += [f"Project-URL: {', '.join(each)}" for each in told.get("urls", {}).items()]
    lines += ["License-File: LICENSE", f"Requires-Python: {told['requires-python']}"]
    lines += [f"Description-Content-Type: {readme['content-type']}"]
    lines += [f"Requires-Dist: {need}" for need in told["dependencies"]]
    for extra, needs in told["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {of_extra(need, extra)}" for need in needs]
    return "\n".join(lines) + "\n\n" + readme["text"]


def of_extra(need, extra):
    """A requirement that holds for one extra alone; one with a condition keeps it."""
    name, _, condition = need.partition(";")
    return (
        name + "; " + (f"({condition.strip()}) and " if condition else "") + f'extra == "{extra}"'
    )


def scripts():
    said = "".join(f"{each} = {place}\n" for each, place in project()["scripts"].items())
    return f"[console_scripts]\n{said}"


def digest(data):
    made = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={made}"
