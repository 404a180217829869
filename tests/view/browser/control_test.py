#!/usr/bin/env python3
"""A real sweep that is changed from its page: paused, let go on, stopped, retried, added to; and not without --control."""
import pathlib
import subprocess
import tempfile
import time

from browser import arguments, browser, chromium, go, key_of, playwright, served, shown, until

SWEEP = """\
plugin: {plugin}
trainable: Curve
config: {{lr: {{loguniform: [1e-3, 1.0]}}, step_ms: 100}}
num_samples: 2
metric: mean_accuracy
searcher: random
seed: 5
stop: {{training_iteration: 3000}}
checkpoint: {{frequency: 5}}
"""


def press(page, label, **fields):
    """A button, its dialog, and what the driver says then."""
    page.locator("button", has_text=label).first.click()
    dialog = page.locator("dialog.ask")
    for name, value in fields.items():
        dialog.get_by_label(name).fill(value)
    page.evaluate("document.querySelector('.said').textContent = ''")
    dialog.locator("button").first.click()
    until(page, "document.querySelector('.said').textContent !== ''")
    return page.locator(".said").inner_text()


def main():
    options = arguments([("--picture", pathlib.Path, None)])
    sync = playwright()
    chromium()
    plugin = next((options.build).rglob("libtune_synthetic.so"))
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "sweep.yaml").write_text(SWEEP.format(plugin=plugin))
        sweep = subprocess.Popen([options.build / "bin/tune", "run", "sweep.yaml", "--name", "s", "--cpus", "1", "--quiet"],
                                 cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            results = here / "results/s"
            until_there(results / "events.jsonl", "attempt_started")
            with served(options.build, here / "results") as address, browser(sync) as watched:
                page = watched.page()
                page.goto(address)
                shown(page)
                key = key_of(page)["s"]
                go(page, address, f"/{key}/trial?n=0")
                assert page.locator("button", has_text="Stop").count() == 0, "a page that only reads has no orders"
            with served(options.build, here / "results", "--control") as address, browser(sync) as watched:
                page = watched.page()
                page.goto(address)
                shown(page)
                key = key_of(page)["s"]
                go(page, address, f"/{key}/trial?n=0")
                until(page, "document.body.textContent.includes('RUNNING')")
                assert "saves after its step and stays PAUSED" in press(page, "Pause", reason="the GPU is needed")
                until(page, "document.querySelector('#page .state').textContent === 'PAUSED'")
                until(page, "document.body.textContent.includes('pause by ')")
                if options.picture:
                    page.screenshot(path=options.picture.with_suffix(".trial.png"))
                assert "noted" in press(page, "Note", note="<b>odd</b>")
                until(page, "document.body.textContent.includes('<b>odd</b>')")
                assert "goes on when there is room" in press(page, "Unpause")

                go(page, address, f"/{key}/trials")
                said = press(page, "Add ...", **{"JSON; what it leaves out is drawn": '{"lrr": 1}'})
                assert "did you mean 'lr'?" in said, said
                said = press(page, "Add ...", **{"JSON; what it leaves out is drawn": '{"lr": 0.25, "step_ms": 1}'})
                assert "has it" in said, said
                assert "num_samples is 3" in press(page, "Samples ...", **{"samples in all": "3"})
                page.locator("input.search").fill("0")
                until(page, "document.body.textContent.includes('1 of ')")
                said = press(page, "Stop", **{"reason, may be empty": "enough"})
                assert "trial 0" in said, said
                if options.picture:
                    page.screenshot(path=options.picture.with_suffix(".trials.png"))
                until_there(results / "events.jsonl", "trial_ended")
                until(page, "document.querySelector('.vrow').textContent.includes('TERMINATED')")
                assert "goes on" in press(page, "Retry")
                watched.expect_well(address)
        finally:
            sweep.terminate()
            sweep.communicate(timeout=60)


def until_there(file, text, seconds=30):
    end = time.monotonic() + seconds
    while not (file.exists() and text in file.read_text()):
        assert time.monotonic() < end, f"{file} does not say {text}"
        time.sleep(0.05)


if __name__ == "__main__":
    main()
