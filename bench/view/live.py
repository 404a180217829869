#!/usr/bin/env python3
"""A sweep that runs while many look: live.py --build build [--viewers 100] [--crowd 1000] [--reports 100] [--rounds 3] [--tiny]

Timed: from a worker's report to the frame of a page in Debian's chromium that shows it, beside 99 other
clients of the stream of news; and the reports a second of a sweep of empty steps, without anybody, with
all these viewers, with a crowd, and with an MLflow server that takes connections and never answers, which take
turns; and the memory of the page's server.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/view/browser"))
from browser import arguments, browser, chromium, go, key_of, playwright, served, shown, until  # noqa: E402

REPORTER = """\
import json, os, sys, time
out = os.fdopen(int(os.environ["TUNE_FD"]), "w")
for count in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.15)
    print(json.dumps({"count": count, "sent": time.time()}), file=out, flush=True)
"""
ONE = """\
command: [python3, {program}, "{reports}"]
config: {{x: {{uniform: [0, 1]}}}}
num_samples: 1
metric: count
searcher: random
"""
MANY = """\
plugin: {plugin}
trainable: empty_steps
config: {{steps: {steps}}}
num_samples: 8
metric: x
seed: 1
stop: {{training_iteration: {steps}}}
cpus: 8
{more}
"""
# Notes when the first number of the page was painted with each text.
WATCH = """() => { window.seen_ = {};
  const look = () => { const text = document.querySelector('.tile b')?.textContent.replaceAll(',', '');
    if (text && !(text in seen_)) { seen_[text] = 0; requestAnimationFrame(() => { seen_[text] = performance.timeOrigin + performance.now(); }); } };
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true}); look(); }"""


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@contextlib.contextmanager
def viewers(address, count):
    """Clients of the stream, which take what they are told."""
    host, token = re.match(r"http://(.*)/\?token=(.*)", address).groups()
    welcome = http.client.HTTPConnection(host)
    welcome.request("GET", f"/?token={token}")
    answer = welcome.getresponse()
    answer.read()
    cookie = answer.getheader("Set-Cookie").split(";")[0]
    sockets = []
    for _ in range(count):
        one = socket.create_connection(host.split(":"))
        one.sendall(f"GET /api/stream HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
        assert one.recv(4096).startswith(b"HTTP/1.1 200")
        sockets.append(one)
    told = [0]

    # One of them looks at every experiment, so that the server follows it.
    def ask(target):
        welcome.request("GET", target, headers={"Cookie": cookie})
        return json.loads(welcome.getresponse().read())

    def take():
        chosen = selectors.DefaultSelector()
        for one in sockets:
            chosen.register(one, selectors.EVENT_READ)
        asked = 0
        while sockets:
            for key, _ in chosen.select(0.2):
                told[0] += key.fileobj.recv(65536).count(b"event: change")
            if time.monotonic() - asked > 1:
                asked = time.monotonic()
                for one in ask("/api/experiments")["experiments"]:
                    ask(f"/api/x/{one['key']}/meta")

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        ends, sockets[:] = list(sockets), []
        thread.join()
        for one in ends:
            one.close()


def run(options, here, text, **more):
    (here / "sweep.yaml").write_text(text)
    return subprocess.Popen([options.build / "bin/tune", "run", "sweep.yaml", "--name", "s", "--quiet", "--fresh"], cwd=here,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def wait_for(file, text):
    end = time.monotonic() + 60
    while not (file.exists() and text in file.read_text()):
        assert time.monotonic() < end, f"{file} does not hold {text}"
        time.sleep(0.05)


def to_the_pixel(options, sync):
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "report.py").write_text(REPORTER)
        sweep = run(options, here, ONE.format(program=here / "report.py", reports=options.reports + 40))
        experiment = here / "results/s"
        wait_for(experiment / "events.jsonl", "attempt_started")
        with served(options.build, here / "results") as address, viewers(address, options.viewers - 1) as told, browser(sync) as watched:
            page = watched.page()
            page.goto(address)
            shown(page)
            go(page, address, f"/{key_of(page)['s']}/overview")
            page.evaluate(WATCH)
            sweep.wait(timeout=300)
            until(page, f"Object.keys(seen_).includes('{options.reports + 40}')")
            page.wait_for_timeout(100)
            seen = page.evaluate("seen_")
            watched.expect_well(address)
        lines = [json.loads(line) for line in next(experiment.glob("*/result.json")).open()]
        sent = {str(line["count"]): line["sent"] for line in lines}
        times = [seen[count] - 1000 * sent[count] for count in list(seen)[2:] if seen[count]]
        print(f"a report to the pixel, {options.viewers} viewers: p50 {statistics.median(times):.0f} ms, "
              f"p95 {percentile(times, 0.95):.0f} ms of {len(times)} frames with {len(sent)} reports; {told[0]} news told to the others")


def memory_of_server():
    """The most that the page's server has held, in MB."""
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, KeyError):
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            if status["Name"].strip() == "tune-view" and int(status["PPid"]) == os.getpid():
                return int(status["VmHWM"].split()[0]) / 1e3
    raise SystemExit("the page's server has ended")


def rate(options, more, environment=None, look=0, held=None):
    """Reports a second between the first launch and the end of the last trial."""
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        steps = options.steps // 8
        text = MANY.format(plugin=(options.build / "lib/libtune_synthetic.so").resolve(), steps=steps, more=more)
        with contextlib.ExitStack() as stack:
            sweep = run(options, here, text, env={**os.environ, **(environment or {})})
            wait_for(here / "results/s/events.jsonl", "attempt_started")
            if look:
                address = stack.enter_context(served(options.build, here / "results"))
                stack.enter_context(viewers(address, look))
            assert sweep.wait(timeout=300) == 0
            if look:
                held.append(memory_of_server())
        times = [json.loads(line) for line in (here / "results/s/events.jsonl").open()]
        begun = min(one["time"] for one in times if one["event"] == "attempt_started")
        ended = max(one["time"] for one in times if one["event"] == "trial_ended")
        return steps * 8 / (ended - begun)


@contextlib.contextmanager
def hung_server():
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def rates(options):
    memory = {options.viewers: [], options.crowd: []}
    with hung_server() as address:
        ways = {"nobody looks": lambda: rate(options, ""),
                f"{options.viewers} viewers": lambda: rate(options, "", look=options.viewers, held=memory[options.viewers]),
                f"{options.crowd} viewers": lambda: rate(options, "", look=options.crowd, held=memory[options.crowd]),
                "a hung MLflow": lambda: rate(options, "loggers: [mlflow]", {"MLFLOW_TRACKING_URI": address})}
        found = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, way in ways.items():
                found[name].append(way())
    alone = statistics.median(found["nobody looks"])
    for name, all_of in found.items():
        middle = statistics.median(all_of)
        print(f"reports a second, {name}: {middle:,.0f} ({min(all_of):,.0f} to {max(all_of):,.0f}), {middle / alone:.3f} of those alone")
    for count, held in memory.items():
        print(f"memory of the page's server with {count} viewers: {max(held):.0f} MB")


def main():
    tiny = "--tiny" in sys.argv
    options = arguments([("--viewers", int, 4 if tiny else 100), ("--crowd", int, 20 if tiny else 1000),
                         ("--reports", int, 5 if tiny else 100), ("--rounds", int, 1 if tiny else 3),
                         ("--steps", int, 800 if tiny else 2_000_000), ("--only", str, ""), ("--tiny", None, False)])
    sync = playwright()
    chromium()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], max(limit[0], options.crowd + 200)), limit[1]))
    if options.only != "rates":
        to_the_pixel(options, sync)
    if options.only != "pixel":
        rates(options)


main()
