"""``dectool run``: programs of a file, and everything that can be wrong with it."""

import json
import sys

import pytest

PROGRAM = """
import numpy as np

def program(comm):
    comm.elapse(1e-3 * (comm.rank + 1))
    return comm.neighbor_allreduce(np.full(3, float(comm.rank)))

def portable(comm):
    return comm.neighbor_allreduce(1.0 * np.asarray(comm.rank)[..., None])

def long(comm):
    return "x" * 500

def raises(comm):
    if comm.rank == 2:
        return 1 / 0

def stuck(comm):
    comm.recv(source=(comm.rank + 1) % comm.size)

def disagrees(comm):
    return comm.neighbor_allreduce(np.ones(3 if comm.rank else 2))

async def coroutine(comm):
    pass

value = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    return path


def test_values_time_and_traffic(cli, file):
    result = cli("run", file)
    assert result.exit_code == 0, result.output
    assert "prog.py: program on a ring of 4, sim" in result.stdout
    assert "array([1., 1., 1.])" in result.stdout
    assert "time 0.004 s, 8 messages, 192 bytes" in result.stdout
    assert result.stderr == ""


def test_models_and_size(cli, file):
    words = "-n 8 --topology torus --network alphabeta:latency=1e-2 --seed 3"
    result = cli("run", file, *words.split(), "--compute", "exponential:mean=1e-3")
    assert result.exit_code == 0, result.output
    assert "2 x 4 torus" in result.stdout
    assert "time 0.018 s" in result.stdout


@pytest.mark.parametrize("backend", ["sim", "stacked"])
def test_backends_agree(cli, file, backend):
    result = cli("run", file, "--function", "portable", "--backend", backend)
    assert result.exit_code == 0, result.output
    assert "array([1.333333])" in result.stdout


def test_values_are_kept_short(cli, file):
    result = cli("run", file, "--function", "long", "-n", 40)
    assert max(map(len, result.stdout.splitlines())) < 120
    assert "(40 ranks in all)" in result.stdout


def test_trace(cli, file, tmp_path):
    target = tmp_path / "trace.json"
    result = cli("run", file, "--trace", target)
    assert result.exit_code == 0, result.output
    assert {event["ph"] for event in json.loads(target.read_text())["traceEvents"]} >= {"X", "s"}
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".json") == ["trace.json"]


def test_a_program_is_not_written_over(refused, file):
    assert f"--trace {file} is the file of FILE too" in refused("run", file, "--trace", file)
    assert file.read_text() == PROGRAM


def test_file_sees_its_neighbours_and_its_dataclasses(cli, tmp_path):
    (tmp_path / "helper_of_program.py").write_text("ANSWER = 42\n")
    path = tmp_path / "random.py"
    path.write_text(
        "from __future__ import annotations\nimport dataclasses, random\n"
        "from helper_of_program import ANSWER\n"
        "@dataclasses.dataclass\nclass Box:\n    value: int\n"
        "def program(comm):\n    return Box(ANSWER)\n"
    )
    result = cli("run", path)
    assert "Box(value=42)" in result.stdout, result.output
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("--function porgram", ["has no function 'porgram'", "did you mean 'program'"]),
        ("--function value", ["has no function 'value'"]),
        ("--function coroutine", ["coroutine", "write a plain function"]),
        ("--function stuck", ["deadlock: 4 of 4 ranks", "rank 3 at t = 0 s waits", "prog.py:19"]),
        ("--function disagrees", ["hold different arrays", "raised by rank"]),
        ("--backend stacked", ["backend 'stacked'"]),
        ("--backend stakced", ["backend='stakced' is unknown", "did you mean 'stacked'"]),
        ("--backend nccl", ["'nccl'", "is not part of this version"]),
        ("-n 0", ["n must be at least 1", "got 0"]),
        ("-n 5 --topology torus:2x2", ["has 4 ranks, but n=5"]),
        ("--seed -1", ["seed=-1"]),
        ("--detection 0.5", ["--detection 0.5 would change nothing", "--fault"]),
        ("--ranks-per-node 0", ["ranks_per_node=0"]),
        ("--compute per_rank:9=2", ["do not fit 4 ranks"]),
        ("--function portable --backend stacked --trace t.json", ["trace=True needs single ranks"]),
        ("--trace no/such/folder/t.json", ["no/such/folder", "no such folder", "--trace"]),
    ],
)
def test_refused(refused, file, words, parts):
    if "per_rank" in words:
        file.write_text("def program(comm):\n    with comm.computing():\n        pass\n")
    text = refused("run", file, *words.split())
    for part in parts:
        assert part in text


def test_a_program_that_raises(refused, file):
    text = refused("run", file, "--function", "raises", status=1)
    assert "ZeroDivisionError: division by zero" in text
    assert "raised by rank 2 of 4" in text
    assert f"{file}, line 16" in text


def test_its_traceback(cli, file):
    result = cli("run", file, "--function", "raises", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "return 1 / 0" in result.stderr


def test_no_such_file(refused, tmp_path):
    assert "nothing.py: No such file or directory" in refused("run", tmp_path / "nothing.py")


def test_no_python_file(refused, tmp_path):
    assert "its name must end in .py" in refused("run", tmp_path)


@pytest.mark.parametrize(
    ("text", "status", "parts"),
    [
        ("x = (\n", 2, ["line 1", "never closed"]),
        ("import no_such_module_xyz\n", 1, ["ModuleNotFoundError", "line 1"]),
        ("\n\nopen('absent.txt')\n", 2, ["absent.txt: No such file", "line 3"]),
        ("x = 3\n", 2, ["has no function 'program'", "def program(comm)"]),
    ],
)
def test_broken_file(refused, tmp_path, text, status, parts):
    path = tmp_path / "broken.py"
    path.write_text(text)
    message = refused("run", path, status=status)
    for part in parts:
        assert part in message
