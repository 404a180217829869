#!/usr/bin/env python3
"""Every part of the page draws what the files hold, by pointer and by keys, wide and narrow."""
import json
import os
import pathlib
import tempfile
import time

from browser import arguments, browser, chromium, colours_in, go, key_of, make_experiment, playwright, served, shown, until

PARTS = {"overview": ["#chart-history", "#chart-lanes", "#chart-curves-of-the-best"],
         "search": ["#chart-parallel-coordinates", "#chart-heat-map", "#chart-slice-p0"],
         "rungs": ["#chart-rungs"], "trial?n=3": ["#chart-trial-curves"], "nodes": ["#chart-lanes"]}


def best_in_files(folder):
    return max(json.loads(line)["accuracy"] for file in folder.glob("*/result.json") for line in file.open())


def check_parts(page, address, key, folder):
    for part, charts in PARTS.items():
        go(page, address, f"/{key}/{part}")
        for chart in charts:
            assert colours_in(page, chart) > 8, f"{part}: {chart} is empty"
    check_rungs_and_nodes(page, address, key, folder)
    go(page, address, f"/{key}/overview")
    best = best_in_files(folder)
    assert f"{best:.4f}"[:5] in page.locator(".tile b").first.inner_text()
    assert page.locator("#page table tr.link").count() == 10


def check_modules(page):
    """The page names all of its modules at once: else they would be asked for one level after another."""
    folder = pathlib.Path(__file__).resolve().parents[3] / "tune/view/page"
    modules = {f"/{file.name}" for file in folder.glob("*.js")} - {"/app.js", "/stream.js"}
    named = set(page.evaluate("[...document.querySelectorAll('link[rel=modulepreload]')].map((one) => one.getAttribute('href'))"))
    assert named == modules, named ^ modules


def check_usage(page, address, key, folder):
    longest = max(folder.glob("*/usage.jsonl"), key=lambda file: file.stat().st_size)
    go(page, address, f"/{key}/trial?n={int(longest.parent.name.split('_')[1])}")
    for part in ("cpu", "memory", "gpu", "gpu-memory"):
        assert colours_in(page, f"#chart-usage-{part}") > 8, part
    shortest = min(folder.glob("*/usage.jsonl"), key=lambda file: file.stat().st_size)
    assert shortest.stat().st_size == 0
    go(page, address, f"/{key}/trial?n={int(shortest.parent.name.split('_')[1])}")
    assert page.locator("#chart-usage-cpu").count() == 0
    happened = page.locator("tr", has_text="rung").first.inner_text()
    assert "rank" in happened and "{" not in happened, happened


def check_rungs_and_nodes(page, address, key, folder):
    check_usage(page, address, key, folder)
    go(page, address, f"/{key}/rungs")
    events = [json.loads(line) for line in (folder / "events.jsonl").open()]
    first = [one for one in events if one["event"] == "rung" and one["milestone"] == 1]
    cells = page.locator("#page table tr").nth(1).locator("td").all_inner_texts()
    stopped = sum(one["verdict"] == "stop" for one in first)
    assert cells[:5] == ["1", str(len(first)), str(len(first) - stopped), str(stopped), "0"], cells
    assert float(cells[6]) == float(f"{first[-1]['cut_off']:.6g}"), cells
    last = page.locator("#page table tr").last.locator("td").all_inner_texts()
    assert last[0] == "27" and last[1] == last[2], last  # where no rung is any more
    go(page, address, f"/{key}/nodes")
    assert "0 of 16" in page.locator("#page table").first.inner_text()
    assert "The sweep does not run." in page.locator("#queue").inner_text()


def check_table(page, address, key):
    go(page, address, f"/{key}/trials")
    assert page.locator(".vrow").count() < 80, "the table makes rows that are not in sight"
    page.locator("input.search").fill("optimiser = adam, lr < 0.1")
    until(page, "document.querySelectorAll('.vrow').length > 0 && location.hash.includes('q=')")
    assert "of 120 trials" in page.locator(".bar:not(.orders)").inner_text()
    cells = page.locator(".vrow").first.locator(".vcell").all_inner_texts()
    assert "adam" in cells
    page.locator(".vhead .vcell", has_text="accuracy").click()
    page.locator(".vhead .vcell", has_text="accuracy").click()
    column = [float(page.locator(".vrow").nth(i).locator(".vcell").nth(2).inner_text()) for i in range(5)]
    assert column == sorted(column, reverse=True), column
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    lines = pathlib.Path(got.value.path()).read_text().splitlines()
    shown_count = int(page.locator(".bar:not(.orders)").inner_text().split(" of ")[0].split()[-1])
    assert len(lines) == shown_count + 1 and lines[0].startswith("trial,status,accuracy,iterations,config/lr")
    assert all("adam" in line for line in lines[1:])
    with page.expect_download() as got:
        page.get_by_role("button", name="JSON").click()
    rows = [json.loads(line) for line in pathlib.Path(got.value.path()).read_text().splitlines()]
    assert len(rows) == shown_count and all(row["config/lr"] < 0.1 for row in rows)
    address_of_view = page.url
    page.reload()
    shown(page)
    assert page.url == address_of_view and f"{shown_count} of 120 trials" in page.locator(".bar:not(.orders)").inner_text()


def check_order(page):
    """As a sort with a comparing function has it: equal ones by their place, NaN last either way."""
    wrong = page.evaluate("""async () => {
      const {orderOf} = await import('/order.js');
      const odd = [NaN, 0, -0, Infinity, -Infinity, 5e-324, -1e-310, 1e308, 7, -7];
      const keys = Float64Array.from({length: 70000}, (_, i) => (i % 3 ? odd[(i * 7) % 10] : Math.sin(i)));
      return [false, true].filter((down) => {
        const compare = (x, y) => (down ? (x < y) - (x > y) : (x > y) - (x < y));
        const expected = [...keys.keys()].sort((a, b) => Number.isNaN(keys[a]) - Number.isNaN(keys[b]) || compare(keys[a], keys[b]) || a - b);
        const found = orderOf(keys, down);
        return !expected.every((row, i) => row === found[i]);
      });
    }""")
    assert wrong == [], wrong


def check_scrolling(page, address, key):
    """Rows that come take those that leave, in their order, each with what is its own."""
    go(page, address, f"/{key}/trials")
    for top in (0, 500, 96, 100000, 0, 700):
        page.evaluate("top => { document.querySelector('.vtable').scrollTop = top; }", top)
        page.wait_for_timeout(250)
        rows = page.evaluate("""[...document.querySelectorAll('.vrow')].map((row) => [row.offsetTop, row.querySelector('.vcell').textContent])""")
        assert [at for at, _ in rows] == sorted(at for at, _ in rows), rows
        assert all(int(text) == at // 24 for at, text in rows), rows
        first = page.evaluate("document.querySelector('.vtable').scrollTop") // 24
        assert {str(first), str(min(119, first + 15))} <= {text for _, text in rows}, (top, rows)
    page.keyboard.press("0")
    until(page, "location.hash === '#/'")


def check_keys(page, address, key):
    go(page, address, f"/{key}/overview")
    for digit, part in enumerate(["overview", "search", "rungs", "trials"], 1):
        page.keyboard.press(str(digit))
        until(page, f"location.hash.includes('/{part}')")
        page.wait_for_timeout(150)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.evaluate("delete document.documentElement.dataset.shownMs")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('/trial?n=2')")
    shown(page)
    page.keyboard.press("j")
    until(page, "location.hash.includes('n=3')")
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") != theme
    page.keyboard.press("d")
    page.keyboard.press("?")
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("0")
    until(page, "location.hash === '#/'")


def check_brush(page, address, key):
    go(page, address, f"/{key}/search")
    box = page.locator("#chart-parallel-coordinates canvas").bounding_box()
    note = page.locator("#chart-parallel-coordinates .note")
    assert note.inner_text().startswith("120 of 120")
    page.mouse.move(box["x"] + 40, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 40, box["y"] + 150, steps=4)
    page.mouse.up()
    until(page, "location.hash.includes('f=p0')")
    until(page, "!document.querySelector('#chart-parallel-coordinates .note').textContent.startsWith('120 of')")
    page.get_by_text("these trials").click()
    until(page, "location.hash.includes('/trials?f=')")
    page.wait_for_selector(".vrow")
    kept = int(page.locator(".bar:not(.orders)").inner_text().split(" of ")[0].split()[-1])
    assert 0 < kept < 120
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('f=')")


def check_saves(page, address, key):
    go(page, address, f"/{key}/overview")
    for kind, begin in [("PNG", b"\x89PNG"), ("SVG", b"<svg ")]:
        with page.expect_download() as got:
            page.locator("#chart-history").get_by_role("button", name=kind).click()
        assert pathlib.Path(got.value.path()).read_bytes().startswith(begin)
    for form, words in [("YAML", "lr: "), ("JSON", '"lr":'), ("C++", "tune::Config{{\"lr\"")]:
        page.locator(".best").get_by_role("button", name=form, exact=True).click()
        assert words in page.locator(".best pre").inner_text()


def check_narrow(page, address, key):
    page.set_viewport_size({"width": 800, "height": 700})
    for part in [*dict.fromkeys([*PARTS, "trials"]), ""]:
        go(page, address, f"/{key}/{part}" if part else "/?list=1")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 800, f"{part} is {wide} px wide"


def check_end(build, sync, root):
    """The server ends at once, also while a thread of it is in the middle of reading a file."""
    experiment = root / "slow"
    make_experiment(experiment, trials=30)
    (experiment / "2f1e0_00000" / "result.json").unlink()
    os.mkfifo(experiment / "2f1e0_00000" / "result.json")  # whoever opens it waits for ever
    with served(build, experiment) as address, browser(sync) as watched:
        page = watched.page()
        page.goto(address)
        shown(page)
        page.wait_for_timeout(300)
        begun = time.monotonic()
    assert time.monotonic() - begun < 8, "the server waited for its reading thread"


def main():
    options = arguments()
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        make_experiment(root / "digits", trials=120)
        make_experiment(root / "more", trials=40, seed=2, reports=9)
        with served(options.build, root) as address, browser(sync) as watched:
            page = watched.page()
            page.goto(address)
            page.wait_for_selector("tr.link")
            assert "token" not in page.url
            check_modules(page)
            check_order(page)
            keys = key_of(page)
            assert set(keys) == {"digits", "more"}
            for box in range(2):
                page.locator("td input[type=checkbox]").nth(box).click()
                page.wait_for_timeout(300)
            until(page, "location.hash.includes('compare=')")
            page.wait_for_timeout(600)
            assert colours_in(page, "#chart-best-so-far") > 8
            for check in (check_table, check_scrolling, check_keys, check_brush, check_saves):
                check(page, address, keys["digits"])
            check_parts(page, address, keys["digits"], root / "digits")
            check_narrow(page, address, keys["digits"])
            watched.expect_well(address)
        check_end(options.build, sync, root)


main()
