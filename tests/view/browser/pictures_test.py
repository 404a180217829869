#!/usr/bin/env python3
"""The pictures of a whole sweep: Pareto's front, the importance of parameters, the lineage of PBT,
each with what the commands and the files say."""
import json
import pathlib
import subprocess
import tempfile

from browser import arguments, browser, colours_in, go, key_of, make_experiment, playwright, served, shown, until

TRIALS = 60


SWEEP = """trainable: Curve
plugin: {plugin}
config: {{lr: {{loguniform: [1e-4, 1.0]}}, width: {{uniform: [8, 512]}}, noise: {{uniform: [0, 0.01]}}}}
num_samples: 40
stop: {{training_iteration: {last}}}
metric: mean_accuracy
mode: max
storage: {storage}
"""


def make_sweep(build, folder, more="", last=3):
    """A real one: importance reads the whole specification."""
    sweep = folder.parent.parent / "sweep.yaml"
    sweep.write_text(SWEEP.format(plugin=build.resolve() / "lib/libtune_synthetic.so", storage=folder.parent, last=last) + more)
    command(build, "run", sweep, "--name", folder.name, "--cpus", 8, "--quiet")


def make_two_objectives(folder):
    make_experiment(folder, trials=TRIALS)
    spec = json.loads((folder / "experiment.json").read_text())
    del spec["metric"], spec["mode"], spec["scheduler"]
    spec["objectives"] = [{"metric": "accuracy", "mode": "max"}, {"metric": "time_total_s", "mode": "min"}]
    spec["constraints"] = [{"metric": "time_total_s", "max": 25}]
    (folder / "experiment.json").write_text(json.dumps(spec))


def make_population(folder):
    """Every third trial goes on twice from the one before it."""
    make_experiment(folder, trials=12, reports=20)
    lines = (folder / "events.jsonl").read_text().splitlines()
    for trial in range(1, 12, 3):
        for iteration in (5, 10):
            lines.insert(-1, json.dumps({
                "time": 1795000100.0, "event": "replaced", "trial": f"2f1e0_{trial:05}", "attempt": 1,
                "iteration": iteration, "donor": f"2f1e0_{trial - 1:05}", "from": f"2f1e0_{trial - 1:05}",
                "from_iteration": iteration - 1, "old": {}, "new": {}, "reason": "x"}, separators=(",", ":")))
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")


def command(build, *words):
    return subprocess.run([build / "bin/tune", *map(str, words)], capture_output=True, text=True, check=True).stdout


def check_importance(page, address, key, build, folder):
    go(page, address, f"/{key}/overview")
    until(page, "document.querySelector('#chart-importance .note').textContent.includes('trials')")
    told = page.evaluate(f"fetch('/api/x/{key}/importance').then((answer) => answer.json())")
    assert told["is_current"] and told["importance"] == json.loads(command(build, "importance", "--json", folder)), told
    assert colours_in(page, "#chart-importance") > 8


def check_front(page, address, key, build, folder):
    go(page, address, f"/{key}/overview")
    assert colours_in(page, "#chart-pareto-front") > 8
    front = command(build, "best", "--json", folder).splitlines()
    expected = front_of(folder)
    assert len(front) == len(expected), (front, expected)
    note = page.locator("#chart-pareto-front .note").inner_text()
    assert note.startswith(f"{len(expected)} of {TRIALS} trials"), (note, expected)
    words = page.locator("main").inner_text()
    assert "yet" not in words, words
    tile = page.locator(".tile").first
    assert tile.locator("b").inner_text() == str(len(expected))
    assert "accuracy (max), time_total_s (min)" in tile.inner_text()
    rows = page.locator("#page table tr.link")
    numbers = sorted(int(name.split("_")[1]) for name in expected)
    told = [int(rows.nth(i).locator("td").first.inner_text()) for i in range(rows.count())]
    assert sorted(told) == numbers[:10] if len(numbers) <= 10 else set(told) <= set(numbers), (told, numbers)
    page.locator(".best select").select_option(str(told[0]))
    until(page, "document.querySelector('.best pre')?.textContent.includes('lr: ')")
    params = json.loads((folder / f"2f1e0_{told[0]:05}" / "params.json").read_text())
    assert f"{params['lr']:.5g}"[:4] in page.locator(".best pre").inner_text()


def check_list(page, address):
    go(page, address, "/?list=1")
    assert "accuracy (max), time_total_s (min)" in page.locator("tr", has_text="two").inner_text()


def front_of(folder):
    last = {}
    for file in sorted(folder.glob("*/result.json")):
        result = json.loads(file.read_text().splitlines()[-1])
        last[file.parent.name] = (result["accuracy"], -result["time_total_s"])
    kept = {name: one for name, one in last.items() if -one[1] <= 25}
    assert 0 < len(kept) < len(last)
    return [name for name, one in kept.items()
            if not any(other != one and other[0] >= one[0] and other[1] >= one[1] for other in kept.values())]


def check_brackets(page, address, key, folder):
    """HyperBand's: the table has a line a bracket and rung, and one bracket can be chosen."""
    events = [json.loads(line) for line in (folder / "events.jsonl").open()]
    told = [one for one in events if one["event"] == "rung"]
    reached = {}
    for one in told:
        reached[one["bracket"], one["milestone"]] = reached.get((one["bracket"], one["milestone"]), 0) + 1
    assert {bracket for bracket, _ in reached} >= {0, 1}, reached
    go(page, address, f"/{key}/rungs")
    assert colours_in(page, "#chart-rungs") > 8
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#page table tr").all()[1:]]
    for (bracket, milestone), count in reached.items():
        assert any(row[:3] == [str(bracket), f"{milestone:g}", str(count)] for row in rows), (bracket, milestone, count, rows)
    page.locator("label", has_text="bracket").locator("select").select_option("1")
    until(page, "location.hash.includes('bracket=1')")
    until(page, "[...document.querySelectorAll('#page table tr')].slice(1).every((row) => row.firstChild.textContent === '1')")


def check_ranks(page, address, key):
    go(page, address, f"/{key}/rungs")
    assert "non-dominated rank" in page.locator("#chart-rungs").inner_text()
    assert colours_in(page, "#chart-rungs") > 8


def check_lineage(page, address, key):
    go(page, address, f"/{key}/rungs")
    assert page.locator("#chart-lineage .note").inner_text().startswith("8 times a trial went on")
    assert colours_in(page, "#chart-lineage") > 8
    told = page.evaluate(f"fetch('/api/x/{key}/lineage').then((answer) => answer.json())")
    assert [1, 5, 0, 4] in told["descents"] and len(told["descents"]) == 8, told


def main():
    options = arguments([("--pictures", pathlib.Path, None)])
    sync = playwright()
    with tempfile.TemporaryDirectory() as temporary:
        storage = pathlib.Path(temporary) / "storage"
        storage.mkdir()
        make_sweep(options.build, storage / "real")
        make_sweep(options.build, storage / "hyperband", "scheduler: {hyperband: {max_t: 9, reduction_factor: 3}}\n", last=9)
        make_two_objectives(storage / "two")
        make_population(storage / "pbt")
        with served(options.build, storage) as address, browser(sync) as watched:
            page = watched.page()
            page.goto(address)
            shown(page)
            keys = key_of(page)
            check_importance(page, address, keys["real"], options.build, storage / "real")
            picture(page, options, "importance")
            check_front(page, address, keys["two"], options.build, storage / "two")
            picture(page, options, "front")
            check_list(page, address)
            check_ranks(page, address, keys["two"])
            picture(page, options, "ranks")
            check_brackets(page, address, keys["hyperband"], storage / "hyperband")
            picture(page, options, "brackets")
            check_lineage(page, address, keys["pbt"])
            picture(page, options, "lineage")
            watched.expect_well(address)


def picture(page, options, name):
    if options.pictures:
        page.screenshot(path=options.pictures / f"{name}.png", full_page=True)


if __name__ == "__main__":
    main()
