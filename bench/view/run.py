#!/usr/bin/env python3
"""The page with many trials, in Debian's chromium: run.py --build build [--trials 100000] [--tiny]

Timed: reading the experiment's files (by the server, once); from going to the page's address until the
overview has drawn all its pictures; frames while a brush moves, while a picture is zoomed, while the table
scrolls and while its filter is typed, beside those of a page that does nothing under the same pointer; the
page's memory; what is transferred. --folder keeps the made experiment, and takes it again.
"""
import json
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/view/browser"))
from browser import arguments, browser, chromium, go, key_of, make_experiment, playwright, served, shown, until  # noqa: E402

FRAMES = """() => { window.frames_ = []; let last = performance.now();
  const tick = (now) => { frames_.push(now - last); last = now; if (!window.stop_) requestAnimationFrame(tick); };
  window.stop_ = false; requestAnimationFrame(tick); }"""


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


# From the call that asks for a picture to its drawing, of pictures in sight.
FOLLOW = """async () => { const {Chart} = await import('/chart.js'); window.follows_ = [];
  const {redraw, drawNow} = Chart.prototype;
  Chart.prototype.redraw = function () { this.asked_ ??= performance.now(); redraw.call(this); };
  Chart.prototype.drawNow = function () { drawNow.call(this);
    if (this.inSight && this.asked_) follows_.push(performance.now() - this.asked_);
    this.asked_ = null; }; }"""


def frames(page, move, count):
    """Frame times while the pointer moves."""
    page.evaluate(FRAMES)
    for i in range(count):
        move(i)
    page.evaluate("() => { window.stop_ = true; }")
    found = page.evaluate("frames_")[3:]
    return f"p50 {statistics.median(found):.1f} ms, p95 {percentile(found, 0.95):.1f} ms, p99 {percentile(found, 0.99):.1f} ms "\
           f"of {len(found)} frames"


def opened(page, address):
    """Seconds from the navigation to the last picture, and what came over the wire."""
    begun = time.perf_counter()
    page.goto(address)
    until(page, "document.documentElement.dataset.shownAt !== undefined")
    seconds = float(page.evaluate("document.documentElement.dataset.shownAt")) / 1000
    sizes = page.evaluate("""() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .map((e) => [e.name.includes('/api/'), e.transferSize])""")
    own = sum(size for is_data, size in sizes if not is_data)
    return seconds, time.perf_counter() - begun, own, sum(size for is_data, size in sizes if is_data)


def drag(page, selector, count):
    box = page.locator(f"{selector} canvas").bounding_box()
    x, y = box["x"] + 40, box["y"] + 50
    page.mouse.move(x, y)
    page.mouse.down()
    result = frames(page, lambda i: page.mouse.move(x, y + 20 + 200 * abs((i % 60) / 30 - 1)), count)
    page.mouse.up()
    return result


def zoom(page, selector, count):
    """Each time a box is dragged, and the whole shown again."""
    box = page.locator(f"{selector} canvas").bounding_box()
    x, y = box["x"] + 100, box["y"] + 30

    def move(i):
        step = i % 12
        if step == 0:
            page.mouse.move(x, y)
            page.mouse.down()
        elif step < 10:
            page.mouse.move(x + 30 * step, y + 20 * step)
        elif step == 10:
            page.mouse.up()
        else:
            page.mouse.dblclick(x, y)
    return frames(page, move, max(12, count - count % 12))


def typed(page, count):
    """A filter, letter by letter, and away again."""
    page.locator("input.search").click()
    words = "optimiser = adam, lr < 0.1"
    keys = [*words, *["Backspace"] * len(words)]
    return frames(page, lambda i: page.keyboard.press(keys[i % len(keys)]), count)


def memory(page):
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return (usage["usedSize"] + usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0)) / 1e6


def measure(options, sync, experiment):
    with served(options.build, experiment) as address, browser(sync) as watched:
        page = watched.page()
        page.goto(address)
        shown(page)
        key = key_of(page)[experiment.name]
        begun = time.perf_counter()
        page.evaluate("key => { delete document.documentElement.dataset.shownMs; location.hash = `#/${key}/overview`; }", key)
        until(page, "document.documentElement.dataset.shownMs !== undefined", 300)
        print(f"first visit, which reads the experiment's files: {time.perf_counter() - begun:.2f} s")
        page.close()
        times = []
        for _ in range(options.runs):
            page = watched.page()
            seconds, _, own, data = opened(page, f"{address.split('?')[0]}#/{key}/overview")
            times.append(seconds)
            if len(times) < options.runs:
                page.close()
        print(f"opening to all overview pictures: {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})")
        print(f"transferred: {data / 1e6:.2f} MB of data; the page itself from the browser's cache: {own / 1e3:.1f} kB")
        print(f"a page that does nothing, beside it: {bare(watched, address, options.moves)}")
        print(f"zoom of the history: {zoom(page, '#chart-history', options.moves)}")
        go(page, address, f"/{key}/search")
        page.wait_for_timeout(300)
        page.evaluate(FOLLOW)
        print(f"brush on the search page: {drag(page, '#chart-parallel-coordinates', options.moves)}")
        found = page.evaluate("follows_")
        print(f"its pictures in sight follow: p50 {statistics.median(found):.1f} ms, p95 {percentile(found, 0.95):.1f} ms of {len(found)} drawn")
        go(page, address, f"/{key}/trials")
        box = page.locator(".vtable").bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 200)
        print(f"scrolling the table: {frames(page, lambda i: page.mouse.wheel(0, 2000), options.moves)}")
        print(f"typing a filter of the table: {typed(page, options.moves)}")
        print(f"memory of the page after all of that: {memory(page):.1f} MB")
        cold = browser_cold(watched, address)
        print(f"the page itself, nothing cached: {cold / 1e3:.1f} kB")
        watched.expect_well(address)


def bare(watched, address, count):
    """What this machine can do at all."""
    page = watched.page()
    page.goto(address.split("?")[0] + "icon.svg")
    result = frames(page, lambda i: page.mouse.move(10 + i % 200, 10 + i % 100), count)
    page.close()
    return result


def browser_cold(watched, address):
    page = watched.page()
    session = page.context.new_cdp_session(page)
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.send("Network.enable")
    return opened(page, address.split("?")[0])[2]


TINY = [("--tiny", None, False), ("--trials", int, 200), ("--reports", int, 9), ("--parameters", int, 8), ("--runs", int, 2),
        ("--moves", int, 20), ("--folder", pathlib.Path, None)]


def main():
    options = arguments([("--trials", int, 100000), ("--reports", int, 9), ("--parameters", int, 8), ("--runs", int, 5),
                         ("--moves", int, 300), ("--folder", pathlib.Path, None)]
                        if "--tiny" not in sys.argv else TINY)
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as folder:
        experiment = options.folder or pathlib.Path(folder) / "sweep"
        if not experiment.exists():
            make_experiment(experiment, trials=options.trials, reports=options.reports, parameters=options.parameters)
        print(json.dumps({"trials": options.trials, "reports": options.reports, "parameters": options.parameters}))
        measure(options, sync, experiment)


main()
