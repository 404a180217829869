#!/usr/bin/env python3
"""The page with many trials, in Debian's chromium: run.py --build build [--trials 100000] [--tiny]

Timed: reading the experiment's files (by the server, once); from going to the page's address until the
overview has drawn all its pictures; frames while a brush moves and while a picture is zoomed; the page's
memory; what is transferred. --folder keeps the made experiment, and takes it again.
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


def frames(page, move, count):
    """Frame times while the pointer moves."""
    page.evaluate(FRAMES)
    for i in range(count):
        move(i)
    page.evaluate("() => { window.stop_ = true; }")
    found = page.evaluate("frames_")[3:]
    return f"p50 {statistics.median(found):.1f} ms, p95 {percentile(found, 0.95):.1f} ms of {len(found)} frames"


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


def memory(page):
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return (usage["usedSize"] + usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0)) / 1e6


def measure(options, sync, experiment):
    with served(options.build, experiment) as address, browser(sync) as watched:
        page = watched.page()
        begun = time.perf_counter()
        page.goto(address)
        page.set_default_timeout(600000)
        shown(page)
        print(f"first visit, with reading the files: {time.perf_counter() - begun:.2f} s")
        key = key_of(page)[experiment.name]
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
        go(page, address, f"/{key}/search")
        page.wait_for_timeout(300)
        print(f"brush on the search page: {drag(page, '#chart-parallel-coordinates', options.moves)}")
        go(page, address, f"/{key}/trials")
        box = page.locator(".vtable").bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 200)
        print(f"scrolling the table: {frames(page, lambda i: page.mouse.wheel(0, 2000), options.moves)}")
        print(f"memory of the page after all of that: {memory(page):.1f} MB")
        cold = browser_cold(watched, address)
        print(f"the page itself, nothing cached: {cold / 1e3:.1f} kB")
        watched.expect_well(address)


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
