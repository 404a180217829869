#!/usr/bin/env python3
"""Names with HTML, quotes and newlines, odd numbers, no results: shown as the texts that they are."""
import json
import pathlib
import tempfile

from browser import arguments, browser, chromium, go, key_of, playwright, served

NAME = "<img src=x onerror=alert(1)>"  # of keys, which hold no slash
HTML = NAME + "<script>alert(2)</script>"
ODD = [NAME, "\"quotes' & <b>", "two\nlines", "\u202eright to left \u05d0\u05d1", "损失 потеря \U0001f600", "a,b;c:d~e=f",
       "__proto__", "constructor", "javascript:alert(3)", "{{7*7}}", " ", "%3Cb%3E"]


def write_experiment(folder, results, metric=NAME):
    folder.mkdir(parents=True)
    (folder / "experiment.json").write_text(json.dumps({
        "version": 1, "name": folder.name, "trainable": HTML, "metric": metric, "mode": "min",
        "config": {name: {"uniform": [0, 1]} for name in ODD}, "num_samples": 3, "searcher": {NAME: {}},
        "scheduler": {NAME: {}}}))
    (folder / "run.json").write_text(json.dumps({"state": "finished", "driver_pid": 1, "hostname": HTML,
                                                 "store": "", "prefix": ""}))
    with open(folder / "events.jsonl", "w") as events:
        for kind in ("notice", "node_joined", "node_left"):
            events.write(json.dumps({"time": 1.8e9, "event": kind, "text": HTML, "node": HTML, "cause": HTML}) + "\n")
        for number, lines in enumerate(results):
            trial = f"2f1e0_{number:05d}"
            (folder / trial).mkdir()
            (folder / trial / "params.json").write_text(json.dumps({name: (name if number == 1 else number / 7) for name in ODD}))
            if lines is not None:
                (folder / trial / "result.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
            (folder / trial / "stdout").write_text(HTML + "\n\x00\x1b[31m")
            for kind in ("attempt_started", "verdict", "failure", "attempt_ended"):
                events.write(json.dumps({"time": 1.8e9, "event": kind, "trial": trial, "attempt": 1, "node": HTML,
                                         "reason": HTML, "verdict": HTML, "cause": HTML, "outcome": HTML, "iteration": 1}) + "\n")


def main():
    options = arguments()
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        plain = {name: 0.5 for name in ODD}
        odd = [{**plain, NAME: value} for value in (None, "inf", "-inf", 1e308, -1e-308)]
        write_experiment(root / HTML.replace("/", "_"), [odd, [plain], None])
        write_experiment(root / "nan", [[{"loss": None}], [{"loss": "inf"}]], metric="loss")
        for i, metric in enumerate(ODD[1:5]):
            write_experiment(root / f"metric {i}", [[plain], odd, None], metric=metric)
        write_experiment(root / "none", [], metric="loss")
        write_experiment(root / "wide", [[{f"m{i}": i for i in range(10000)}]], metric="m3")
        (root / "broken").mkdir()
        (root / "broken" / "experiment.json").write_text('{"version": 1, "name": "' + HTML)
        with served(options.build, root) as address, browser(sync) as watched:
            page = watched.page()
            page.goto(address)
            page.wait_for_selector("tr.link")
            assert page.locator("td", has_text="<img src=x").count() >= 1
            for name, key in key_of(page).items():
                if name == "broken":
                    continue
                for part in ("overview", "search", "rungs", "trials", "nodes", "trial?n=0"):
                    if part.startswith("trial?") and name == "none":
                        continue
                    go(page, address, f"/{key}/{part}")
                    assert page.locator(".problem[role=alert]").count() == 0, f"{name} {part}: {page.locator('.problem').all_inner_texts()}"
                    if name.startswith("<img") and part in ("overview", "trials"):
                        assert NAME in page.locator("main").inner_text(), f"{name} {part}: the name is not shown"
                    assert page.locator("main img, main script").count() == 0, f"{name}: {part}"
            assert page.evaluate("({}).polluted") is None
            watched.expect_well(address)


main()
