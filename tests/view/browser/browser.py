"""For tests of the page in a browser: Debian's chromium, driven by playwright (PyPI).

Where one of them is missing the test says so and ends with 77, which ctest shows as skipped. A Python
that has playwright may be named in TUNE_BROWSER_PYTHON, a chromium in TUNE_CHROMIUM.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def playwright():
    try:
        from playwright.sync_api import sync_playwright
        return sync_playwright
    except ImportError:
        other = os.environ.get("TUNE_BROWSER_PYTHON")
        if other and os.path.abspath(other) != os.path.abspath(sys.executable):
            os.execv(other, [other, *sys.argv])
        skip("there is no playwright: pip install playwright==1.65.2, or name a Python in TUNE_BROWSER_PYTHON")


def chromium():
    found = os.environ.get("TUNE_CHROMIUM") or shutil.which("chromium")
    if not found:
        skip("there is no chromium: apt-get install chromium")
    return found


def arguments(extra=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    for name, kind, default in extra:
        if default is False:
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, type=kind, default=default)
    options = parser.parse_args()
    if not (options.build / "bin/tune-view").exists():
        skip("tune-view is not built")
    return options


def make_experiment(folder, **options):
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    subprocess.run([sys.executable, HERE.parent / "make_experiment.py", folder, *words], check=True)


@contextlib.contextmanager
def served(build, folder, *more):
    """The address, with its token."""
    with tempfile.TemporaryDirectory() as aside:
        port_file = pathlib.Path(aside) / "port"
        server = subprocess.Popen([build / "bin/tune", "view", folder, "--port", "0", "--port-file", port_file, *more],
                                  stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 30
            while not port_file.exists():
                assert server.poll() is None, "the server has ended"
                assert time.monotonic() < until, "the server does not begin"
                time.sleep(0.02)
            assert port_file.stat().st_mode & 0o077 == 0, "others may read the token"
            yield port_file.read_text().strip()
        finally:
            server.terminate()
            assert server.wait(timeout=10) == 0


class Watched:
    """Pages of one context, with all that went wrong in them."""

    def __init__(self, context):
        self.context = context
        self.wrong = []
        self.hosts = set()
        context.on("request", lambda request: self.hosts.add(request.url.split("/")[2] if "//" in request.url else request.url[:5]))

    def page(self):
        page = self.context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and self.wrong.append(f"{message.text} {message.location.get('url', '')}"))
        page.on("pageerror", lambda error: self.wrong.append(f"{error}\n{error.stack}"))
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    def expect_well(self, address):
        assert not self.wrong, "\n".join(self.wrong)
        own = address.split("/")[2]
        assert self.hosts <= {own, "blob:", "data:"}, f"other hosts were asked: {self.hosts}"


@contextlib.contextmanager
def browser(sync, width=1300, height=900, **options):
    with sync() as driver:
        with contextlib.closing(driver.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--force-color-profile=srgb"])) as started:
            context = started.new_context(viewport={"width": width, "height": height}, **options)
            context.set_default_timeout(20000)
            yield Watched(context)


def until(page, expression, seconds=20):
    """Waits until it holds in the page. playwright's own way evaluates texts there, which the page forbids."""
    end = time.monotonic() + seconds

    def holds():
        try:
            return page.evaluate(expression)
        except Exception as error:  # it goes on to another page meanwhile
            if "context was destroyed" in str(error):
                return False
            raise

    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {expression}"
        page.wait_for_timeout(20)


def shown(page):
    """Waits until the page has drawn all of its pictures."""
    until(page, "document.documentElement.dataset.shownMs !== undefined")
    page.wait_for_timeout(60)


def go(page, address, path):
    """A part of the page, by its address after the #."""
    page.evaluate("delete document.documentElement.dataset.shownMs")
    if page.evaluate("path => { const same = location.hash === '#' + path; location.hash = path; return same; }", path):
        page.reload()
    shown(page)


def colours_in(page, selector):
    """How many colours a picture has: an empty one has few."""
    return page.evaluate("""selector => {
      const canvas = document.querySelector(selector + ' canvas');
      const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      return new Set(data).size;
    }""", selector)


def key_of(page):
    return page.evaluate("fetch('/api/experiments').then((a) => a.json()).then((a) => Object.fromEntries(a.experiments.map((e) => [e.folder, e.key])))")
