#!/usr/bin/env python3
"""A web site that the user visits beside the page: on another port of this machine, whose cookies are
the same, and by a foreign name that leads here. It reads nothing, frames nothing, orders nothing."""
import http.server
import pathlib
import subprocess
import tempfile
import threading

from browser import arguments, browser, chromium, key_of, make_experiment, playwright, served, shown

PAGE = b"<!doctype html><title>hostile</title><body>"
# What a script there tries; each attempt tells what it has got.
TRIES = """async ([own, key]) => {
  const got = {};
  const say = async (name, work) => { try { got[name] = await work(); } catch (error) { got[name] = `refused: ${error.name}`; } };
  for (const target of ['/', '/app.js', '/api/experiments', `/api/x/${key}/meta`, `/api/x/${key}/log?n=0`, '/metrics']) {
    for (const mode of ['cors', 'no-cors']) {
      await say(`${mode} ${target}`, async () => {
        const answer = await fetch(own + target, {mode, credentials: 'include'});
        return answer.type === 'opaque' ? '' : await answer.text();
      });
    }
  }
  await say('order', async () => (await fetch(own + '/api/order', {method: 'POST', mode: 'no-cors', credentials: 'include',
    headers: {'Content-Type': 'text/plain'}, body: JSON.stringify({x: key, do: 'note', trial: 0, text: 'hostile'})})).type);
  const loads = (tag, name) => say(`${tag} ${name}`, () => new Promise((done) => {
    const one = document.createElement(tag);
    one.onload = () => done('loaded');
    one.onerror = () => done('');
    one.src = own + name;
    document.body.append(one);
  }));
  await loads('script', '/app.js');
  await loads('img', '/icon.svg');
  await say('stream', () => new Promise((done) => {
    const source = new EventSource(own + '/api/stream', {withCredentials: true});
    source.addEventListener('hello', () => done('hello'));
    source.onerror = () => { source.close(); done(''); };
  }));
  return got;
}"""


class Hostile(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


def expect_nothing(page, own, key):
    got = page.evaluate(TRIES, [own, key])
    kept = {name: value for name, value in got.items() if value and not value.startswith("refused") and value != "opaque"}
    assert kept == {}, kept
    page.evaluate("own => { const frame = document.createElement('iframe'); frame.src = own; document.body.append(frame); }", own + "/")
    page.wait_for_timeout(1000)
    framed = [frame for frame in page.frames if frame != page.main_frame]
    assert framed and all(frame.url.startswith("chrome-error:") for frame in framed), [frame.url for frame in framed]


def notes_in(folder):
    return [line for line in (folder / "events.jsonl").read_text().splitlines() if "hostile" in line]


def printed(build, folder):
    """What `tune view` prints: the address with its token, and the line of ssh."""
    server = subprocess.Popen([build / "bin/tune", "view", folder, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        return server.stdout.readline().strip(), server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(timeout=10)
        server.stdout.close()


def main():
    options = arguments()
    sync = playwright()
    chromium()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "digits"
        make_experiment(folder, trials=20)
        address, line = printed(options.build, folder)
        port = address.split(":")[2].split("/")[0]
        assert line.startswith(f"From another machine: ssh -L {port}:127.0.0.1:{port} "), line
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        try:
            with served(options.build, folder, "--control") as address, browser(sync) as watched:
                page = watched.page()
                page.goto(address)
                shown(page)
                key = key_of(page)["digits"]
                own = address.split("/?")[0]
                cookies = watched.context.cookies()
                assert [(one["httpOnly"], one["sameSite"]) for one in cookies] == [(True, "Strict")], cookies
                assert cookies[0]["name"] == f"tune-view-{own.split(':')[2]}"
                assert page.evaluate("document.cookie") == ""
                got = page.evaluate(TRIES, [own, key])  # all of this has an answer for the page itself
                assert got["stream"] == "hello" and got["script /app.js"] == got["img /icon.svg"] == "loaded", got
                assert '"folder":"digits"' in got["cors /api/experiments"] and got[f"cors /api/x/{key}/meta"], got
                for host in ("127.0.0.1", "localhost"):
                    other = watched.context.new_page()
                    other.goto(f"http://{host}:{site.server_address[1]}/")
                    expect_nothing(other, own, key)
                    other.close()
                assert notes_in(folder) == []
        finally:
            site.shutdown()
            site.server_close()


if __name__ == "__main__":
    main()
