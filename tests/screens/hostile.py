"""Compares the screens of `swarmc top` in pyte, an emulator that others wrote, over a log that attacks and one that does not.

In: SWARMC, SWARM_HOME with a run that is over, whose only step printed hostile text; LOG, the path of that log. It fails where
anything but the pane of the log differs: a cell, the cursor, a mode, the title, the answers that the terminal gives.
"""

import fcntl
import os
import pty
import select
import struct
import termios
import time

import pyte

ENVIRONMENT = {name: os.environ[name] for name in ("SWARM_HOME", "PATH")}
ENVIRONMENT |= {"LANG": "C.UTF-8", "TERM": "xterm-256color"}
# What stands in both logs, at their ends.
LAST = "the last line"


class Reports(pyte.Screen):
    """A screen that keeps what the terminal would send to the program, such as the place of its cursor."""

    reports = ""

    def write_process_input(self, data):
        self.reports += data


def draw(rows, columns, keys):
    """The screen after these keys, and all bytes that came."""
    screen = Reports(columns, rows)
    stream = pyte.ByteStream(screen)
    pid, fd = pty.fork()
    if pid == 0:
        time.sleep(0.2)
        os.execve(os.environ["SWARMC"], ["swarmc", "top", "last"], ENVIRONMENT)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    seen = bytearray()

    def read_until(holds):
        end = time.time() + 30
        while not holds():
            assert time.time() < end, (keys, list_lines())
            if select.select([fd], [], [], 0.05)[0]:
                data = os.read(fd, 65536)
                seen.extend(data)
                stream.feed(data)

    def list_lines():
        # Not its `display`: that fails where half of a wide sign is left.
        return ["".join(screen.buffer[y][x].data for x in range(columns)) for y in range(rows)]

    def shows(text):
        return any(text in line for line in list_lines())

    read_until(lambda: shows("Steps"))
    for key in keys:
        os.write(fd, key.encode())
    read_until(lambda: shows(LAST))
    quiet = time.time() + 0.5
    read_until(lambda: time.time() > quiet)
    shown = list_lines()
    cells = [[screen.buffer[y][x] for x in range(columns)] for y in range(rows)]
    state = (screen.title, screen.icon_name, screen.mode.copy(), screen.margins, screen.charset, screen.reports)
    os.write(fd, b"q")
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return shown, cells, state, bytes(seen)


def compare(rows, columns, keys, is_outside):
    with open(os.environ["LOG"], "rb") as file:
        hostile = file.read()
    shown, cells, state, sent = draw(rows, columns, keys)
    try:
        with open(os.environ["LOG"], "wb") as file:
            file.write(b"harmless\n" * 50 + LAST.encode() + b"\n")
        expected, wanted, before, _ = draw(rows, columns, keys)
    finally:
        with open(os.environ["LOG"], "wb") as file:
            file.write(hostile)
    assert state == before, (state, before)
    for y in range(rows):
        for x in range(columns):
            same = not is_outside(y, x) or cells[y][x] == wanted[y][x]
            assert same, (rows, columns, y, x, cells[y][x], wanted[y][x], shown, expected)
    for attack in [b"\x1b]52", b"\x1b]0", b"\x1b[5n", b"\x1b[c", b"\x1bc", b"\x1b#8", b"\x9b", b"\x07", b"\x0e", "\u202e".encode()]:
        assert attack not in sent, attack
    assert any("attacked" in line for line in shown), shown


# Two panes: the log is right of the middle, below the head, and above the foot. The title of the pane is not of the log.
for rows, columns in [(50, 200), (24, 120)]:
    left = columns // 2 + 1
    compare(rows, columns, "", lambda y, x: y in (0, 1, rows - 1) or x < left)
# One pane, by Tab, and on the whole screen, by Enter: the log is all that is between the title and the foot.
for rows, columns, keys in [(24, 80, "\t"), (8, 40, "\t"), (24, 120, "\r")]:
    compare(rows, columns, keys, lambda y, x: y in (0, 1, rows - 1))
