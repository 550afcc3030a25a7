"""How soon the first page is painted, and how soon its first live answer stands, in a Chromium.

    python benchmarks/home.py [TIMES]        needs the built book (`make book`) and a Chromium

Each time the page is opened with nothing in its cache, in a browser as fast as this machine and in
one slowed down to a quarter (as Chromium's own tools do it). As soon as the small calculator takes
questions, another card is chosen; its verdict is the first live answer. The best of TIMES counts,
because other programs only ever make it slower. The main thread's own time is what the page costs
whatever else runs. Nothing is held to a number of seconds here: machines differ.
"""

import gzip
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from memlab.base.table import as_text

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
PAGE = "en/intro.html"
SLOWER = (1, 4)
TIMES = 5
WHAT = {
    "painted": "first paint",
    "ready": "takes questions",
    "answered": "first live answer",
    "busy": "main thread, CPU",
}
# Chooses a card as soon as there is somebody to ask, and notes when the answer to it stands.
WATCH = """addEventListener("DOMContentLoaded", () => {
    const verdict = document.getElementById("calc-verdict"), card = () => {
        window.live = { ready: performance.now() };
        const select = document.getElementById("calc-card");
        select.value = "B200";
        select.dispatchEvent(new Event("change", { bubbles: true }));
    };
    new MutationObserver(() => {
        if (document.documentElement.dataset.calculator === "ready" && !window.live) card();
    }).observe(document.documentElement, { attributes: true });
    new MutationObserver(() => {
        if (window.live && verdict.textContent.includes("B200"))
            window.live.answered ??= performance.now();
    }).observe(verdict, { childList: true, characterData: true, subtree: true });
});"""
TOLD = """() => ({ ...window.live, painted:
    performance.getEntriesByName("first-contentful-paint")[0]?.startTime })"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site as a server that compresses does, and says nothing."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return super().do_GET()
        packed = path.suffix in (".html", ".css", ".js", ".mjs", ".json", ".wasm")
        data = compressed(path) if packed else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


KEPT: dict[Path, bytes] = {}


def compressed(path: Path) -> bytes:
    if path not in KEPT:
        KEPT[path] = gzip.compress(path.read_bytes())
    return KEPT[path]


def visit(browser, address: str, slower: int) -> dict[str, float]:
    """One first visit: milliseconds until each thing was there."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.add_init_script(WATCH)
    page.goto(address)
    told: dict[str, float] = {}
    while "answered" not in told:
        page.wait_for_timeout(50)
        told = page.evaluate(TOLD)
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    told["busy"] = {each["name"]: each["value"] for each in metrics}["TaskDuration"] * 1000
    context.close()
    return told


def main() -> None:
    """Visit, and print a table of the best."""
    sys.path.append(str(ROOT / "tools"))
    from browser import chromium

    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    if not (SITE / PAGE).exists():
        raise SystemExit(f"{SITE / PAGE} is not there: `make book` builds it")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{PAGE}"
    rows = [["processor", *WHAT.values()]]
    with chromium() as browser:
        for slower in SLOWER:
            visits = [visit(browser, address, slower) for _ in range(times)]
            best = [min(each[name] for each in visits) for name in WHAT]
            rows.append(
                [
                    "as it is" if slower == 1 else f"{slower} times slower",
                    *(f"{each:,.0f} ms" for each in best),
                ]
            )
    server.shutdown()
    print(f"{PAGE}, best of {times} first visits")
    print(as_text(rows))


if __name__ == "__main__":
    main()
