#!/usr/bin/env python3
"""The page by TLS on all addresses: it draws, follows a sweep that runs, and answers plain HTTP with nothing."""
import fcntl
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from browser import arguments, browser, chromium, colours_in, go, key_of, make_experiment, playwright, served, shown, skip, until


def make_certificate(folder):
    if not shutil.which("openssl"):
        skip("there is no openssl: apt-get install openssl")
    certificate, key = folder / "page.crt", folder / "page.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return "--certificate", certificate, "--key", key


def expect_refused(address, why):
    try:
        urllib.request.urlopen(address)
    except urllib.error.HTTPError as error:
        assert error.code == 400 and why in error.read().decode(), error
    else:
        raise AssertionError(f"{address} was answered")


def begin_trial(experiment):
    trial = experiment / "2f1e0_00040"
    trial.mkdir()
    (trial / "params.json").write_text('{"lr": 0.5, "momentum": 0.9, "optimiser": "adam", "width": 9}')
    (trial / "result.json").write_text('{"accuracy": 7.25, "training_iteration": 1}\n')
    with open(experiment / "events.jsonl", "a") as events:
        events.write(json.dumps({"time": time.time(), "event": "attempt_started", "trial": trial.name, "attempt": 1, "node": "node-a",
                                 "pid": 1, "gpus": [0], "after_iteration": 0}, separators=(",", ":")) + "\n")


def main():
    options = arguments()
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        tls = make_certificate(root)
        experiment = root / "storage" / "digits"
        experiment.parent.mkdir()
        make_experiment(experiment, trials=40, state="running")
        lock = open(experiment / "lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)  # as its driver does
        with served(options.build, experiment, "--address", "0.0.0.0", *tls) as address:
            assert address.startswith("https://localhost:"), address
            expect_refused(address.replace("https:", "http:"), "https only")
            with browser(sync, ignore_https_errors=True) as watched:
                page = watched.page()
                page.goto(address)
                shown(page)
                go(page, address, f"/{key_of(page)['digits']}/overview")
                assert colours_in(page, "#chart-history") > 8
                cookie, = watched.context.cookies()
                assert cookie["secure"] and cookie["httpOnly"] and cookie["sameSite"] == "Strict", cookie
                begin_trial(experiment)
                until(page, "document.querySelector('.tile b').textContent === '7.25'", 5)
                watched.expect_well(address)


main()
