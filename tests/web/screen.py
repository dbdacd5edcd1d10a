"""Compares what `swarmc top` draws in two emulators that others wrote: pyte, fed with its bytes, and tmux.

In: SWARMC, SWARM_HOME, with a run that is over. It fails where a screen differs, a line is too wide, or a resize breaks it.
"""

import fcntl
import os
import pty
import random
import select
import struct
import subprocess
import termios
import time

import pyte

SIZES = [(50, 200), (24, 80), (8, 40)]
SWARMC = os.environ["SWARMC"]
ENVIRONMENT = {"SWARM_HOME": os.environ["SWARM_HOME"], "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}


def set_size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def start(term, rows, columns):
    pid, fd = pty.fork()
    if pid == 0:
        time.sleep(0.3)
        os.execve(SWARMC, ["swarmc", "top", "last"], {**ENVIRONMENT, "TERM": term})
    set_size(fd, rows, columns)
    return pid, fd


def read(fd, stream, seconds):
    end = time.time() + seconds
    while time.time() < end:
        if select.select([fd], [], [], 0.05)[0]:
            stream.feed(os.read(fd, 65536))


def leave(pid, fd, stream):
    os.write(fd, b"q")
    read_rest = time.time() + 5
    while time.time() < read_rest:
        try:
            stream.feed(os.read(fd, 65536))
        except OSError:
            break
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def draw_by_pyte(term, rows, columns):
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    pid, fd = start(term, rows, columns)
    read(fd, stream, 1.5)
    os.write(fd, b"G")
    read(fd, stream, 0.8)
    shown = [line.rstrip() for line in screen.display]
    assert leave(pid, fd, stream) == 0
    return shown


def draw_by_tmux(rows, columns):
    tmux = ["tmux", "-L", f"swarmc-{os.getpid()}", "-f", "/dev/null"]
    words = " ".join(f"{name}='{value}'" for name, value in ENVIRONMENT.items())
    size = ["-x", str(columns), "-y", str(rows)]
    subprocess.run([*tmux, "new-session", "-d", *size, f"env -i TERM=screen {words} {SWARMC} top last"], check=True)
    try:
        time.sleep(1.5)
        subprocess.run([*tmux, "send-keys", "G"], check=True)
        time.sleep(0.8)
        shown = subprocess.run([*tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
        time.sleep(0.3)
    lines = [line.rstrip() for line in shown.split("\n")][:rows]
    return lines + [""] * (rows - len(lines))


for rows, columns in SIZES:
    expected = draw_by_tmux(rows, columns)
    assert any("t499" in line for line in expected), expected
    assert all(len(line) <= columns and "\ufffd" not in line for line in expected), expected
    for term in ["linux", "xterm-256color", "screen"]:
        found = draw_by_pyte(term, rows, columns)
        assert found == expected, (term, rows, columns, found, expected)

# Two hundred sizes, 1 × 1 among them: the last picture is right, and nothing panics.
screen = pyte.Screen(100, 30)
pid, fd = start("xterm-256color", 30, 100)
read(fd, pyte.ByteStream(pyte.Screen(300, 100)), 1)
random.seed(1)
for _ in range(200):
    set_size(fd, random.randint(1, 60), random.randint(1, 220))
    read(fd, pyte.ByteStream(pyte.Screen(300, 100)), 0.005)
set_size(fd, 1, 1)
read(fd, pyte.ByteStream(pyte.Screen(300, 100)), 0.5)
set_size(fd, 30, 100)
stream = pyte.ByteStream(screen)
read(fd, stream, 1)
assert "big" in screen.display[0] and "Steps" in screen.display[1], screen.display
assert leave(pid, fd, stream) == 0
