"""What holds for every command: version, help, exit status, tracebacks only if asked."""

import subprocess
import sys

import pytest

import dectool
from dectool.cli import _errors
from dectool.errors import ArgumentError

COMMANDS = ("run", "solve", "topology", "doctor")


def python(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, **more
    )


def test_version(cli):
    result = cli("--version")
    assert (result.exit_code, result.stdout.strip()) == (0, f"dectool {dectool.__version__}")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(cli, flag):
    result = cli(flag)
    assert result.exit_code == 0
    assert all(command in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(cli, command):
    result = cli(f"{command} --help")
    assert result.exit_code == 0
    assert "--debug" in result.stdout


def test_unknown_command_and_option(cli):
    for line in ("slove", "solve EXTRA --no-such-option 3", "solve EXTRA --steps many"):
        result = cli(line)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


@pytest.mark.parametrize("line", ["--debug solve EXTRAA", "solve EXTRAA --debug"])
def test_debug_shows_the_traceback(cli, line):
    result = cli(line)
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert "algorithm 'EXTRAA' is unknown" in result.stderr


def test_debug_does_not_outlast_its_call(cli):
    cli("--debug solve EXTRAA")
    assert "Traceback" not in cli("solve EXTRAA").stderr


def test_python_m_dectool():
    done = python("-m", "dectool", "--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"dectool {dectool.__version__}")


def test_the_installed_script_refuses_in_one_paragraph():
    done = python("-m", "dectool", "solve", "EXTRA", "--topology", "rign")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: topology 'rign' is unknown; did you mean 'ring' or 'grid'?\n"


def test_help_imports_nothing_optional():
    code = (
        "import sys\n"
        "from dectool.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "optional = {'torch', 'sklearn', 'matplotlib', 'pandas', 'mpi4py'}\n"
        "print('imported:', sorted(optional & set(sys.modules)))\n"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "imported: []", done.stderr


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ArgumentError("n=0 must be at least 1"), "n=0 must be at least 1"),
        (PermissionError(13, "Permission denied", "out.npz"), "out.npz: Permission denied"),
        (OSError("no file in it"), "OSError: no file in it"),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
def test_describe(error, text):
    assert _errors.describe(error) == text


def test_describe_adds_notes():
    error = ValueError("no")
    error.add_note("raised by rank 3")
    error.add_note("line 7")
    assert _errors.describe(error) == "ValueError: no (raised by rank 3; line 7)"
