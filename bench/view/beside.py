#!/usr/bin/env python3
"""The same trials in tune's page and in Optuna Dashboard: beside.py --build build [--trials 1000,10000] [--limit 240] [--tiny]

Timed, one after the other in the same chromium: from going to the page's address until its pictures are
drawn (of Optuna Dashboard, until one is that holds trials), and the page's memory then. Both servers have
been asked for the trials once before. `bash bench/peers/setup.sh optuna_dashboard` makes the environment;
without it Optuna Dashboard is left out.
"""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/view/browser"))
from browser import arguments, browser, chromium, key_of, make_experiment, playwright, served, shown, until  # noqa: E402

CACHE = pathlib.Path(os.environ.get("TUNE_CACHE_DIR") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tune")
DASHBOARD = CACHE / "peers/optuna_dashboard/bin/python"
# A picture of plotly that holds trials, once it has drawn them.
PLOTTED = """() => [...document.querySelectorAll('.js-plotly-plot')].some((plot) =>
  plot.querySelector('.scatterlayer .trace, .gl-container canvas') && plot.data?.some(({x}) => (x?.length ?? 0) >= 2))"""


def memory(page):
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return (usage["usedSize"] + usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0)) / 1e6


def ours(options, sync, experiment):
    with served(options.build, experiment) as address, browser(sync) as watched:
        page = watched.page()
        page.goto(address)
        until(page, "document.documentElement.dataset.shownMs !== undefined", 300)
        key = key_of(page)[experiment.name]
        page.close()
        page = watched.page()
        begun = time.perf_counter()
        page.goto(f"{address.split('?')[0]}#/{key}/overview")
        shown(page)
        return time.perf_counter() - begun, memory(page)


@contextlib.contextmanager
def dashboard(file):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([DASHBOARD, "-c", "from optuna_dashboard._cli import main; main()", file, "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def asked(address, limit):
    end = time.monotonic() + limit
    while True:
        try:
            with urllib.request.urlopen(address, timeout=limit) as answer:
                return answer.read()
        except urllib.error.URLError:
            assert time.monotonic() < end, f"{address} does not answer"
            time.sleep(0.2)


def theirs(options, sync, file):
    """Seconds until a picture, or None; seconds and MB of the trials alone; MB of the page."""
    with dashboard(file) as address:
        study = json.loads(asked(f"{address}/api/studies", 300))["study_summaries"][0]["study_id"]
        asked(f"{address}/api/studies/{study}", 600)
        begun = time.perf_counter()
        size = len(asked(f"{address}/api/studies/{study}", 600)) / 1e6
        answer = time.perf_counter() - begun
        with browser(sync) as watched:
            page = watched.page()
            begun = time.perf_counter()
            page.goto(f"{address}/dashboard/studies/{study}")
            seconds = None
            while seconds is None and time.perf_counter() - begun < options.limit:
                if page.evaluate(PLOTTED):
                    seconds = time.perf_counter() - begun
                page.wait_for_timeout(50)
            return seconds, answer, size, memory(page)


def main():
    tiny = "--tiny" in sys.argv
    options = arguments([("--trials", str, "50" if tiny else "1000,10000"), ("--reports", int, 9), ("--limit", float, 240.0),
                         ("--tiny", None, False)])
    sync = playwright()
    chromium()
    for trials in map(int, options.trials.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            experiment, file = pathlib.Path(folder) / "sweep", pathlib.Path(folder) / "study.journal"
            make_experiment(experiment, trials=trials, reports=options.reports, parameters=8)
            seconds, held = ours(options, sync, experiment)
            print(f"{trials} trials: all overview pictures of tune view after {seconds:.2f} s, page of {held:.0f} MB", flush=True)
            if not DASHBOARD.exists():
                print("Optuna Dashboard: bash bench/peers/setup.sh optuna_dashboard installs it")
                continue
            subprocess.run([options.build / "bin/tune", "export", "--optuna", file, experiment], check=True, stderr=subprocess.DEVNULL)
            plotted, answer, size, held = theirs(options, sync, file)
            after = f"after {plotted:.1f} s, {plotted / seconds:.0f} times as long" if plotted else f"not within {options.limit:g} s"
            print(f"{trials} trials: a picture of Optuna Dashboard {after}; its trials alone {answer:.1f} s, {size:.1f} MB; page of {held:.0f} MB", flush=True)


main()
