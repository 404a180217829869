#!/usr/bin/env python3
"""A sweep that runs: what its files get is seen at once, in ten tabs that share one stream."""
import fcntl
import json
import pathlib
import tempfile
import time

from browser import arguments, browser, chromium, go, key_of, make_experiment, playwright, served, shown, until


def append(file, **fields):
    with open(file, "a") as out:
        out.write(json.dumps(fields, separators=(",", ":")) + "\n")


def main():
    options = arguments()
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as folder:
        experiment = pathlib.Path(folder) / "digits"
        make_experiment(experiment, trials=30, state="running")
        lock = open(experiment / "lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)  # as its driver does
        with served(options.build, experiment) as address, browser(sync) as watched:
            page = watched.page()
            page.goto(address)
            shown(page)
            key = key_of(page)["digits"]
            tabs = [page]
            for _ in range(9):
                tab = watched.page()
                tab.goto(address.split("?")[0] + f"#/{key}/overview")
                shown(tab)
                tabs.append(tab)
            assert "running" in page.locator("#top .state").inner_text()

            trial = experiment / "2f1e0_00030"
            trial.mkdir()
            (trial / "params.json").write_text('{"lr": 0.5, "momentum": 0.9, "optimiser": "lion", "width": 9}')
            (trial / "stdout").write_text("begun\n")
            now = time.time()
            append(experiment / "events.jsonl", time=now, event="attempt_started", trial=trial.name, attempt=1,
                   node="node-a", pid=1, gpus=[0], after_iteration=0)
            append(trial / "result.json", accuracy=7.25, loss=0.1, training_iteration=1)
            for tab in tabs:
                until(tab, "document.querySelector('.tile b').textContent === '7.25'", 5)
                assert "1 RUNNING" in tab.locator("main").inner_text()

            go(page, address, f"/{key}/trial?n=30")
            until(page, "document.querySelector('pre.log').textContent.includes('begun')")
            with open(trial / "stdout", "a") as out:
                out.write("epoch 1\n")
            until(page, "document.querySelector('pre.log').textContent.includes('epoch 1')", 5)
            go(page, address, f"/{key}/trials?sort=number&down=1")
            assert "lion" in page.locator(".vrow").first.inner_text()

            append(experiment / "events.jsonl", time=now + 1, event="verdict", trial=trial.name, attempt=1, iteration=1,
                   verdict="stop", reason="7.25 is worse than the cut-off 8 of 3 values")
            append(experiment / "events.jsonl", time=now + 1, event="attempt_ended", trial=trial.name, attempt=1,
                   outcome="stopped", iteration=1)
            append(experiment / "events.jsonl", time=now + 1, event="trial_ended", trial=trial.name, attempt=1,
                   status="TERMINATED", iteration=1)
            until(page, "document.querySelector('.vrow').textContent.includes('TERMINATED')", 5)
            (experiment / "run.json").write_text((experiment / "run.json").read_text().replace("running", "finished"))
            until(page, "document.querySelector('#top .state').textContent === 'finished'", 8)
            watched.expect_well(address)


main()
