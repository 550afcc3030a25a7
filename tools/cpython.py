"""CPython for the browser, beside the wheel at the root of the site, whatever its languages are.

The calculator's page answers from tables, in MicroPython. What is in no table it counts with the
whole package, where a reader asks for that: Pyodide, which is CPython compiled to WebAssembly, is
not part of this repository; `npm ci` brings it, and a site without it does not offer to count.
"""

import shutil
from pathlib import Path

import wheel

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "node_modules" / "pyodide"
# Of the package all that one program without other libraries loads.
FILES = (
    *("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm"),
    *("python_stdlib.zip", "pyodide-lock.json"),
)
PLACE = "python"
ARCHIVE = "memlab.zip"  # the package, less what no step is counted from
LESS = (
    *("memlab/data/claims/", "memlab/data/quizzes/", "memlab/data/records/"),
    *("memlab/lab/alice.txt", "memlab/locale/", "memlab/quizzes/"),
)


def there():
    """Whether the package was installed, whole."""
    return all((PACKAGE / name).exists() for name in FILES)


def write(site):
    """Put the files into their folder of the site; a folder of another build goes."""
    shutil.rmtree(site / PLACE, ignore_errors=True)
    if there():
        (site / PLACE).mkdir()
        for name in FILES:
            shutil.copy(PACKAGE / name, site / PLACE)
        script = site / PLACE / FILES[0]
        lines = script.read_text(encoding="utf-8").splitlines(keepends=True)
        # The map that its last line names stays behind.
        kept = [line for line in lines if not line.startswith("//# sourceMappingURL=")]
        script.write_text("".join(kept), encoding="utf-8")
        texts = {x: data for x, data in wheel.package().items() if not x.startswith(LESS)}
        wheel.archive(site / PLACE / ARCHIVE, texts)
