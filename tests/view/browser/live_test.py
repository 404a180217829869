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


def check_nodes(page, address, key, experiment, trial, now):
    """What the running trial holds and uses, and why another one waits."""
    (trial / "usage.jsonl").write_text('{"time":1,"attempt":1,"cpus":1.75,"memory_bytes":2147483648}\n')
    waiting = experiment / "2f1e0_00031"
    waiting.mkdir()
    (waiting / "params.json").write_text('{"lr": 0.5}')
    for state, more in (("requested", {}), ("queued", {"id": "4711", "reason": "Priority"})):
        append(experiment / "events.jsonl", time=now - 2460, event="allocation", number=1, state=state, **more)
    go(page, address, f"/{key}/nodes")
    until(page, "document.querySelector('#queue').textContent.includes('1 trial waits: 1 job queued (Priority) for 41 min')", 5)
    assert "4711" in page.locator("#queue").inner_text()
    row = page.locator("#page table").first.locator("tr", has_text="node-a").inner_text()
    assert "1 of 4" in row and "1.75 cores, 2 GiB" in row, row
    append(experiment / "events.jsonl", time=now, event="allocation", number=1, state="ended", reason="cancelled")
    until(page, "document.querySelector('#queue').textContent.includes('all places are in use')", 5)
    go(page, address, f"/{key}/trials?sort=number&down=1")


def check_sleep(watched, page, address, key, trial):
    """A browser whose machine slept, and its network with it, shows what came meanwhile."""
    go(page, address, f"/{key}/overview")
    sleeper = watched.context.new_cdp_session(page)
    sleeper.send("Page.setWebLifecycleState", {"state": "frozen"})
    watched.context.set_offline(True)
    append(trial / "result.json", accuracy=8.5, loss=0.1, training_iteration=2)
    time.sleep(1)
    sleeper.send("Page.setWebLifecycleState", {"state": "active"})
    time.sleep(1)  # awake, and still without a network
    watched.context.set_offline(False)
    until(page, "document.querySelector('.tile b').textContent === '8.5'", 10)
    assert page.locator("#online").inner_text() == ""
    watched.wrong[:] = [one for one in watched.wrong if "ERR_INTERNET_DISCONNECTED" not in one]


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

            check_sleep(watched, page, address, key, trial)
            go(page, address, f"/{key}/trial?n=30")
            until(page, "document.querySelector('pre.log').textContent.includes('begun')")
            with open(trial / "stdout", "a") as out:
                out.write("epoch 1\n")
            until(page, "document.querySelector('pre.log').textContent.includes('epoch 1')", 5)
            go(page, address, f"/{key}/trials?sort=number&down=1")
            assert "lion" in page.locator(".vrow").first.inner_text()

            check_nodes(page, address, key, experiment, trial, now)
            append(experiment / "events.jsonl", time=now + 1, event="verdict", trial=trial.name, attempt=1, iteration=1,
                   verdict="stop", reason="7.25 is worse than the cut-off 8 of 3 values")
            append(experiment / "events.jsonl", time=now + 1, event="attempt_ended", trial=trial.name, attempt=1,
                   outcome="stopped", iteration=1)
            append(experiment / "events.jsonl", time=now + 1, event="trial_ended", trial=trial.name, attempt=1,
                   status="TERMINATED", iteration=1)
            until(page, "document.querySelectorAll('.vrow')[1].textContent.includes('TERMINATED')", 5)
            (experiment / "run.json").write_text((experiment / "run.json").read_text().replace("running", "finished"))
            until(page, "document.querySelector('#top .state').textContent === 'finished'", 8)
            watched.expect_well(address)


main()
