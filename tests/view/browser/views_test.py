#!/usr/bin/env python3
"""What a user turns and chooses: parts of pictures, axes, smoothing, trials side by side, rows of the
table. It stands in the address, so that a link shows the same; and every picture is saved as PNG and SVG."""
import json
import pathlib
import re
import struct
import tempfile
import xml.etree.ElementTree
import zlib

from browser import arguments, browser, chromium, go, key_of, make_experiment, playwright, served, shown, until

SVG = "{http://www.w3.org/2000/svg}"


def svg_of(page, chart):
    return page.evaluate("selector => document.querySelector(selector + ' .plane').chart.svg()", f"#chart-{chart}")


def texts_in(picture):
    return [one.text for one in xml.etree.ElementTree.fromstring(picture).iter(f"{SVG}text")]


def lines_in(picture):
    """The points of every curve."""
    found = []
    for one in xml.etree.ElementTree.fromstring(picture).iter(f"{SVG}path"):
        if one.get("stroke-width") == "2":
            found.append([tuple(map(float, point.split())) for point in re.split("[ML]", one.get("d"))[1:]])
    return found


def drag(page, chart, begin, end):
    """From one place of the picture to another, as shares of its size."""
    box = page.locator(f"#chart-{chart} canvas").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (begin, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    page.mouse.up()


def check_link(page, chart):
    """Who opens the address sees the same picture."""
    before = svg_of(page, chart)
    page.evaluate("delete document.documentElement.dataset.shownMs")
    page.reload()
    shown(page)
    until(page, f"document.querySelector('#chart-{chart} .plane').chart.svg() === {json.dumps(before)}")
    return before


def check_zoom(page, address, key):
    for part, chart, name in (("overview", "history", "z"), ("overview", "lanes", "zl"), ("nodes", "lanes", "zl"), ("trial?n=3", "trial-curves", "zc")):
        go(page, address, f"/{key}/{part}")
        page.locator(f"#chart-{chart}").scroll_into_view_if_needed()
        whole = svg_of(page, chart)
        drag(page, chart, (0.4, 0.2), (0.6, 0.6))
        until(page, f"location.hash.includes('{name}=')")
        assert check_link(page, chart) != whole, chart
        page.locator(f"#chart-{chart} canvas").dblclick()
        until(page, f"!location.hash.includes('{name}=')")
        assert svg_of(page, chart) == whole, chart


def check_history(page, address, key, folder):
    go(page, address, f"/{key}/overview")
    linear = texts_in(svg_of(page, "history"))
    choose = lambda label, value: page.locator("#chart-history").get_by_label(label, exact=True).select_option(value)
    choose("metric", "loss")
    until(page, "location.hash.includes('m=loss')")
    choose("y", "1")
    choose("x", "ended")
    choose("value", "last")
    until(page, "['ylog=1', 'x=ended', 'by=last'].every((one) => location.hash.includes(one))")
    page.wait_for_timeout(200)
    texts = texts_in(check_link(page, "history"))
    assert "loss" in texts and "time" in texts and texts != linear, texts
    last = min(json.loads(file.read_text().splitlines()[-1])["loss"] for file in folder.glob("*/result.json"))
    note = page.locator("#chart-history .note").inner_text()
    assert note == f"best {float(f'{last:.6g}'):g} (min)", (note, last)


def check_trial(page, address, key, folder):
    """Curves of three trials side by side, of two metrics, smoothed, by time."""
    lengths = {int(file.parent.name.split("_")[1]): len(file.read_text().splitlines()) for file in folder.glob("*/result.json")}
    first, second, third = sorted(lengths, key=lambda trial: (-lengths[trial], trial))[:3]
    assert lengths[third] > 3
    go(page, address, f"/{key}/trial?n={first}")
    assert len(lines_in(svg_of(page, "trial-curves"))) == 1
    page.get_by_label("Beside").fill(f"{second}, {third}")
    page.get_by_label("Beside").blur()
    until(page, f"location.hash.includes('beside={second}%2C{third}')")
    page.wait_for_timeout(300)
    beside = svg_of(page, "trial-curves")
    assert [one.strip() for one in texts_in(beside)[-3:]] == [str(first), str(second), str(third)], texts_in(beside)
    assert [len(line) for line in lines_in(beside)] == [lengths[first], lengths[second], lengths[third]]
    page.get_by_label("Smoothing").fill("0.6")
    until(page, "location.hash.includes('smooth=0.6')")
    page.wait_for_timeout(100)
    assert lines_in(svg_of(page, "trial-curves")) != lines_in(beside)
    page.locator("details.field summary").click()
    page.locator("details.field").get_by_label("loss").check()
    until(page, "location.hash.includes('ms=accuracy%7Closs')")
    page.get_by_label("x", exact=True).select_option("time_total_s")
    until(page, "location.hash.includes('x=time_total_s')")
    page.wait_for_timeout(300)
    picture = check_link(page, "trial-curves")
    assert len(lines_in(picture)) == 6 and {"time_total_s", f"{first} loss", f"{third} accuracy"} <= set(texts_in(picture)), texts_in(picture)
    page.get_by_label("output").select_option("stderr")
    until(page, "location.hash.includes('out=stderr')")


def check_numbers(page, address, key):
    """To a trial by its number: on its part, and in the table."""
    go(page, address, f"/{key}/trial?n=3")
    page.get_by_label("Trial", exact=True).fill("17")
    page.get_by_label("Trial", exact=True).press("Enter")
    until(page, "location.hash.includes('n=17')")
    shown(page)
    assert "2f1e0_00017" in page.locator("main").inner_text()
    go(page, address, f"/{key}/trials")
    page.keyboard.press("/")
    page.keyboard.type("23")
    until(page, "document.querySelectorAll('.vrow').length === 1")
    assert page.locator(".vrow .vcell").first.inner_text() == "23"
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('/trial?n=23')")


def check_table(page, address, key, folder):
    go(page, address, f"/{key}/trials")
    lengths = [len(file.read_text().splitlines()) for file in folder.glob("*/result.json")]
    status = [json.loads(line)["status"] for line in (folder / "events.jsonl").open() if '"trial_ended"' in line]
    whole = sum(length == max(lengths) for length in lengths) + status.count("ERROR")
    page.get_by_label("hide stopped").check()
    until(page, "location.hash.includes('hide=1')")
    assert page.locator(".bar:not(.orders)").inner_text().endswith(f"{whole} of {len(lengths)} trials"), (whole, page.locator(".bar").first.inner_text())
    page.get_by_label("hide stopped").uncheck()
    for by, pick in (("best", max), ("last", lambda values: values[-1])):
        page.get_by_label("value", exact=True).select_option(by)
        page.wait_for_timeout(200)
        values = [json.loads(line)["accuracy"] for line in (folder / "2f1e0_00000/result.json").open()]
        cell = page.locator(".vrow").first.locator(".vcell").nth(2).inner_text()
        assert float(cell) == float(f"{pick(values):.6g}"), (by, cell)


def check_search(page, address, key):
    """Any two against each other; a range of one counts in all pictures."""
    go(page, address, f"/{key}/search")
    page.get_by_label("x", exact=True).last.select_option("p0")
    page.get_by_label("y", exact=True).last.select_option(label="loss")
    until(page, "location.hash.includes('sx=p0') && location.hash.includes('sy=')")
    page.wait_for_timeout(200)
    assert "loss" in texts_in(check_link(page, "scatter"))
    page.locator("#chart-slice-p1").scroll_into_view_if_needed()
    drag(page, "slice-p1", (0.5, 0.3), (0.8, 0.7))
    until(page, "location.hash.includes('f=p1')")
    page.wait_for_timeout(200)
    notes = page.locator("#chart-parallel-coordinates .note").inner_text()
    kept = int(notes.split(" of ")[0])
    assert 0 < kept < 60, notes
    assert svg_of(page, "scatter").count("<circle") <= kept


def check_compared(page, address, keys):
    go(page, address, f"/?list=1&compare={keys['digits']},{keys['more']}")
    until(page, "document.querySelector('#chart-edf .plane').chart.svg().split('<path').length > 3")
    page.wait_for_timeout(300)
    shares = [line for line in lines_in(svg_of(page, "edf")) if len(line) > 3]
    assert sorted(map(len, shares)) == [40, 60], list(map(len, shares))  # a point a trial
    for line in shares:
        assert [x for x, _ in line] == sorted(x for x, _ in line) and line[-1][1] == 10, line  # up to all of them, at the top
    assert {"digits", "more"} <= set(texts_in(svg_of(page, "best-so-far")))
    check_link(page, "edf")


def check_lanes(page):
    """GPUs have a lane each, attempts without one the first slot that is free; what is between is idle."""
    lanes = page.evaluate("""async () => {
      const {lanesOf} = await import('/lanes.js');
      const column = (data, words) => ({data, words});
      const columns = new Map([
        ['started', column([0, 10, 12, 0, 1, 6])], ['ended', column([4, 20, 0, 5, 3, 9])],
        ['node', column([0, 0, 0, 1, 1, 1], ['a', 'b'])], ['gpus', column([1, 1, 2, 0, 0, 0], ['', '0', '0,1'])]]);
      return lanesOf(columns, 30).map(({name, attempts, busy}) => [name, attempts, busy]);
    }""")
    # GPU 0 of a: 4 + 10 + 18 of 30, idle from 4 to 10; slot 1 of b: 5 + 3, idle from 5 to 6.
    assert lanes == [["a GPU 0", [0, 1, 2], 32], ["a GPU 1", [2], 18], ["b slot 1", [3, 5], 8], ["b slot 2", [4], 2]], lanes


def check_set_aside(page, address, key):
    go(page, address, f"/{key}/nodes")
    assert "GPU 1 of node-b" in page.locator("h2", has_text="Set aside").locator("xpath=following-sibling::*[1]").inner_text()


def is_png(data):
    """Whole, and of more than one colour."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    return len(set(zlib.decompress(packed))) > 8


def check_saved(page, address, key, parts):
    seen = set()
    for part in parts:
        go(page, address, f"/{key}/{part}" if key else part)
        names = page.evaluate("[...document.querySelectorAll('figure.chart')].map((one) => one.id)")
        for name in [one for one in names if one not in seen]:
            seen.add(name)
            chart = page.locator(f"[id='{name}']")
            with page.expect_download() as got:
                chart.get_by_role("button", name="SVG").click()
            picture = pathlib.Path(got.value.path()).read_text()
            root = xml.etree.ElementTree.fromstring(picture)
            assert root.tag == f"{SVG}svg" and len(list(root.iter())) > 3, name
            assert not {f"{SVG}script", f"{SVG}foreignObject"} & {one.tag for one in root.iter()}, name
            with page.expect_download() as got:
                chart.get_by_role("button", name="PNG").click()
            assert got.value.suggested_filename == f"{name.removeprefix('chart-')}.png" and is_png(pathlib.Path(got.value.path()).read_bytes()), name
    return seen


def main():
    options = arguments()
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        make_experiment(root / "digits", trials=60)
        make_experiment(root / "more", trials=40, seed=2, reports=9)
        with open(root / "digits/events.jsonl", "a") as events:
            events.write('{"time":1795000300,"event":"place_set_aside","place":"GPU 1 of node-b"}\n')
        with served(options.build, root) as address, browser(sync) as watched:
            page = watched.page()
            page.goto(address)
            shown(page)
            keys = key_of(page)
            key = keys["digits"]
            check_zoom(page, address, key)
            check_history(page, address, key, root / "digits")
            check_trial(page, address, key, root / "digits")
            check_numbers(page, address, key)
            check_table(page, address, key, root / "digits")
            check_search(page, address, key)
            check_compared(page, address, keys)
            check_lanes(page)
            check_set_aside(page, address, key)
            measured = max((root / "digits").glob("*/usage.jsonl"), key=lambda file: file.stat().st_size)
            trial = int(measured.parent.name.split("_")[1])
            seen = check_saved(page, address, key, ["overview", "search", "rungs", f"trial?n={trial}", "nodes"])
            seen |= check_saved(page, address, "", [f"/?list=1&compare={key},{keys['more']}"])
            assert {"chart-usage-cpu", "chart-usage-gpu-memory", "chart-edf", "chart-heat-map", "chart-lanes"} <= seen, seen
            print(f"{len(seen)} pictures were saved: {', '.join(sorted(seen))}")
            watched.expect_well(address)


main()
