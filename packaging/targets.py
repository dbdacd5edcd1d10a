"""What is built for which machine, and what every package says of itself.

The scripts beside this file package the same binaries for one target, so every way to install swarmc brings the same
bytes. They need Python 3.11 and nothing else.
"""

import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "swarmc"
# What lies beside the program: swarmc starts one for each agent that is to outlive it.
SHIM = "swarmc-shim"
# For runs on several machines: in archives alone.
ENGINE = "swarmc-engine"
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")

# By the name that Rust has for a machine: its names in npm, the machine as wheels name it, and the machines of Visual Studio
# Code, which tells Linux from Alpine.
TARGETS = {
    "x86_64-unknown-linux-musl": {"os": "linux", "cpu": "x64", "wheel": "x86_64", "vsce": ["linux-x64", "alpine-x64"]},
    "aarch64-unknown-linux-musl": {"os": "linux", "cpu": "arm64", "wheel": "aarch64", "vsce": ["linux-arm64", "alpine-arm64"]},
    "x86_64-apple-darwin": {"os": "darwin", "cpu": "x64", "wheel": "macosx_11_0_x86_64", "vsce": ["darwin-x64"]},
    "aarch64-apple-darwin": {"os": "darwin", "cpu": "arm64", "wheel": "macosx_11_0_arm64", "vsce": ["darwin-arm64"]},
    # Not released: for a try on a machine that cannot build the others.
    "x86_64-unknown-linux-gnu": {"os": "linux", "cpu": "x64", "wheel": "x86_64", "vsce": ["linux-x64"]},
    "aarch64-unknown-linux-gnu": {"os": "linux", "cpu": "arm64", "wheel": "aarch64", "vsce": ["linux-arm64"]},
}


def stop(message):
    """Ends with a message."""
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def read_manifest():
    """Cargo.toml, where the version and the description stand."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())


def read_version():
    return read_manifest()["workspace"]["package"]["version"]


def read_description():
    return read_manifest()["package"]["description"]


def read_license():
    return read_manifest()["workspace"]["package"]["license"]


def find_target():
    """The target of this machine."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return f"{machine}-apple-darwin" if sys.platform == "darwin" else f"{machine}-unknown-linux-musl"


def read_arguments(what, has_engine=False):
    """The target, the folder for the package and the binary, built first where none is given."""
    beside = f"{SHIM} and {ENGINE}" if has_engine else SHIM
    parser = argparse.ArgumentParser(
        description=what,
        epilog=f"SWARMC_BINARY names a binary that is already built, with {beside} beside it; without it, packaging/build "
        "builds them.",
    )
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS), help="by default that of this machine")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist", metavar="FOLDER", help="where the package goes; by default dist/")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    named = os.environ.get("SWARMC_BINARY")
    if named and not os.access(named, os.X_OK):
        stop(f"SWARMC_BINARY is `{named}`, which is no program")
    if arguments.target is None:
        # What needs glibc is for machines that have it.
        needs_glibc = named and find_glibc(pathlib.Path(named)) is not None
        arguments.target = find_target().replace("musl", "gnu" if needs_glibc else "musl")
    arguments.binary = pathlib.Path(named) if named else build_binary(arguments.target)
    if has_engine and not named:
        build_binary("--engine", arguments.target)
    return arguments


def build_binary(*arguments):
    built = subprocess.run([ROOT / "packaging" / "build", *arguments], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        stop(f"packaging/build {' '.join(arguments)} failed")
    return pathlib.Path(built.stdout.strip().splitlines()[-1])


def run_binary(binary, *arguments):
    """What the packaged program prints: completions and manual pages come from itself."""
    try:
        return subprocess.run([binary, *arguments], check=True, stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        stop(f"`{binary} {' '.join(map(str, arguments))}` failed: {error}. Package on a machine that can start the binary")


def check_binary(binary, target, has_engine=False):
    """Fails unless the programs run on what the package is for, and the version is the one that they say."""
    beside = [binary.with_name(name) for name in ((SHIM, ENGINE) if has_engine else (SHIM,))]
    for program in beside:
        if not os.access(program, os.X_OK):
            stop(f"`{program}` is no program: build it beside `{binary}`")
    for program in (binary, *beside):
        if target.endswith("musl") and find_glibc(program) is not None:
            stop(f"`{program}` needs glibc, and is to be packaged for {target}")
    # The shim has no version: swarmc and its shim are built together.
    for program, name in [(binary, NAME), *((program, ENGINE) for program in beside if program.name == ENGINE)]:
        said = run_binary(program, "--version").decode().split()[-1]
        if said != read_version():
            stop(f"`{program}` is {name} {said}, and Cargo.toml says {read_version()}: build it again")


def write_pages(binary, folder):
    """The manual pages, into a folder."""
    run_binary(binary, "man", "-o", folder)


def find_glibc(binary):
    """The newest version of glibc that a binary needs, as the number after `2.`; None where it needs none."""
    found = re.findall(rb"GLIBC_2\.(\d+)", binary.read_bytes())
    return max(map(int, found), default=None)


def read_epoch():
    """The time that files in packages carry: the same packages from the same commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "1700000000"))


def make_folder():
    return tempfile.TemporaryDirectory(prefix="swarmc-packaging-")


def copy_program(binary, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(binary, path)
    path.chmod(0o755)


def copy_programs(binary, folder):
    """The binary, and its shim beside it, where it looks for that."""
    copy_program(binary, folder / NAME)
    copy_program(binary.with_name(SHIM), folder / SHIM)
