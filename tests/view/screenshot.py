#!/usr/bin/env python3
"""Makes tune/view/screenshot.png: screenshot.py --build build [--output FILE] [--part overview]"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "browser"))
from browser import arguments, browser, go, key_of, make_experiment, playwright, served, shown, until  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    options = arguments([("--output", pathlib.Path, ROOT / "tune/view/screenshot.png"), ("--part", str, "overview"),
                         ("--trials", int, 400), ("--width", int, 1300), ("--height", int, 1130), ("--theme", str, "light"),
                         ("--folder", pathlib.Path, None)])
    sync = playwright()
    with tempfile.TemporaryDirectory() as folder:
        experiment = options.folder or pathlib.Path(folder) / "digits"
        if not options.folder:
            make_experiment(experiment, trials=options.trials)
        with served(options.build, experiment) as address, browser(sync, options.width, options.height,
                                                                   color_scheme=options.theme) as watched:
            page = watched.page()
            page.goto(address)
            shown(page)
            if options.part != "overview":
                go(page, address, f"/{key_of(page)[experiment.name]}/{options.part}")
            if options.part == "overview":
                until(page, "document.querySelector('#chart-importance .note')?.textContent.includes('trials')")
            page.wait_for_timeout(400)
            page.screenshot(path=options.output)
            watched.expect_well(address)


main()
