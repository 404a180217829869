"""completion.py TUNE bash|zsh|fish: that shell completes command lines of the program by `tune completion SHELL`.

The shell runs as at a terminal: a line is typed, then Tab. Exits with 77 where the shell is not installed.
"""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

# The words typed, and the line that stands there after Tab.
COMPLETED = [
    ("tune results results/n", "tune results results/net"),
    ("tune best results/w", "tune best results/with\\ space"),
    ("tune run --na", "tune run --name"),
    ("tune completion z", "tune completion zsh"),
    ("tune logs results/net 0a1b2_00001", "tune logs results/net 0a1b2_00001"),
    ("tune resum", "tune resume"),  # not the folder resumed/, which is there as well
    ("tune run sw", "tune run sweep.yaml"),  # no words of tune's: a file
    ("tune launch ./train sw", "tune launch ./train sweep.yaml"),
]

# Ctrl-X shows the line, and empties it. The prompt and what the terminal echoes are left out.
BASH = r"""
PS1= PS2=
bind 'set enable-bracketed-paste off'; bind 'set bell-style none'
source <(tune completion bash)
show() { printf '<<<%s>>>\n' "$READLINE_LINE"; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\C-x": show'
stty -echo
printf '<<<%s>>>\n' ready
"""
ZSH = r"""
PS1= PS2=; setopt no_prompt_sp no_beep; unset zle_bracketed_paste
autoload -Uz compinit; compinit -u -D
source <(tune completion zsh)
show() { zle -I; printf '<<<%s>>>\n' "$BUFFER"; BUFFER= }
zle -N show; bindkey '^I' complete-word '^X' show
stty -echo
printf '<<<%s>>>\n' ready
"""


class Terminal:
    """A shell at a terminal."""

    def __init__(self, command, beginning):
        Path("beginning").write_text(beginning)
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        self.seen = ""
        self.type(". ./beginning\r")
        assert self.shown() == "ready"

    def type(self, text):
        while text:
            text = text[os.write(self.end, text.encode()):]

    def shown(self):
        while True:
            found = re.search(r"<<<(.*?)>>>", self.seen, re.S)
            if found and found.group(1) != "%s":
                self.seen = self.seen[found.end():]
                return found.group(1).rstrip()
            try:
                data = os.read(self.end, 4096)
            except OSError:
                data = b""
            if not data:
                raise SystemExit(f"the shell ended: {self.seen}")
            self.seen += data.decode(errors="replace")

    def complete(self, line):
        self.type(line + "\t\x18")
        return self.shown()


class Fish:
    """Fish tells what it would offer; a line has one way to go on."""

    def complete(self, line):
        code = "source (tune completion fish | psub); complete -C $argv[1]"
        done = subprocess.run(["fish", "--no-config", "-c", code, line], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        offered = [text.split("\t")[0] for text in done.stdout.splitlines()]
        assert len(offered) == 1, f"for {line!r} fish offers {offered}"
        begun = line.rpartition(" ")[0]
        return f"{begun} {offered[0]}".replace("with space", "with\\ space")  # which fish quotes itself


def prepare(tune):
    """The folder that the shell stands in, with experiments and files."""
    for name in ["net", "with space"]:
        Path("results", name).mkdir(parents=True)
        Path("results", name, "experiment.json").write_text("{}")
    Path("results/net/0a1b2_00001").mkdir()
    Path("results/net/0a1b2_00001/params.json").write_text("{}")
    Path("resumed").mkdir()
    Path("sweep.yaml").write_text("{}")
    Path("bin").mkdir()
    Path("bin/tune").symlink_to(tune)
    os.environ.update(PATH=f"{Path('bin').resolve()}:{os.environ['PATH']}", TERM="dumb", HOME=os.getcwd())


def main():
    tune, name = Path(sys.argv[1]).resolve(), sys.argv[2]
    if shutil.which(name) is None:
        print(f"skipped: there is no {name}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tune-completion-") as folder:
        os.chdir(folder)
        prepare(tune)
        if name == "fish":
            shell = Fish()
        elif name == "zsh":
            shell = Terminal(["zsh", "-f", "-i"], ZSH)
        else:
            shell = Terminal(["bash", "--norc", "--noprofile", "-i"], BASH)
        for line, expected in COMPLETED:
            found = shell.complete(line)
            assert found == expected, f"{line!r} became {found!r}, expected {expected!r}"
        if name != "fish":
            os.kill(shell.pid, signal.SIGHUP)
            os.close(shell.end)
            os.waitpid(shell.pid, 0)
        os.chdir("/")


if __name__ == "__main__":
    main()
