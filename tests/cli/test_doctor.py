"""``dectool doctor``: what is there, what is missing, and when it fails."""

import re
import tomllib
from pathlib import Path

import pytest

import dectool
from dectool.cli import doctor

CONFIG = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture
def quick(monkeypatch):
    """Only two packages, so that nothing slow is imported."""
    there = doctor.Package("numpy", "numpy", None, "arrays")
    absent = doctor.Package("no-such-package", "no_such", "plot", "pictures")
    monkeypatch.setattr(doctor, "PACKAGES", (there, absent))


def test_a_healthy_core(cli, quick):
    result = cli("doctor")
    assert result.exit_code == 0, result.output
    assert f"dectool {dectool.__version__}" in result.stdout
    assert "backend stacked: 4 ranks average rightly" in result.stdout
    assert "backend sim: 4 ranks average rightly" in result.stdout
    assert "pip install 'dectool[plot]'    # no-such-package" in result.stdout
    assert "The core works." in result.stdout


def test_a_broken_core(cli, quick, monkeypatch):
    absent = doctor.Package("no-such-package", "no_such", None, "arrays")
    monkeypatch.setattr(doctor, "PACKAGES", (absent,))
    result = cli("doctor")
    assert result.exit_code == 1
    assert "The core is broken." in result.stdout


def test_a_broken_backend(cli, quick, monkeypatch):
    real = dectool.run

    def run(program, **options):
        if options["backend"] == "sim":
            raise RuntimeError("greenlet does not switch")
        return real(program, **options)

    monkeypatch.setattr(dectool, "run", run)
    result = cli("doctor")
    assert result.exit_code == 1
    assert "backend sim: broken: RuntimeError: greenlet does not switch" in result.stdout


def test_a_backend_that_computes_something_else(quick, monkeypatch):
    monkeypatch.setattr(doctor, "_program", lambda comm: comm.per_rank(lambda rank: [1.0]))
    faults = doctor.backend_faults(["stacked", "sim"])
    assert all(text.startswith("wrong: the averages") for text in faults.values())


def test_packages_are_those_of_the_extras():
    extras = CONFIG["optional-dependencies"]
    for package in doctor.PACKAGES:
        if package.extra is None:
            wanted = CONFIG["dependencies"]
        elif package.extra:
            wanted = extras[package.extra]
        else:
            continue
        assert package.name in {re.split(r"[\[><=]", line)[0] for line in wanted}
    core = {re.split(r"[\[><=]", line)[0] for line in CONFIG["dependencies"]}
    assert core == {package.name for package in doctor.PACKAGES if package.extra is None}


def test_version():
    assert doctor.version("dectool") == dectool.__version__
    assert doctor.version("no-such-package") is None


def test_a_package_whose_import_fails():
    package = doctor.Package("numpy", "numpy.no_such_part", None, "arrays")
    assert "broken: ModuleNotFoundError" in doctor.fault(package)
    package = doctor.Package("numpy", "os; os._exit(3)", None, "arrays")
    assert doctor.fault(package) == "broken: import ended with status 3"
    assert doctor.fault(doctor.Package("numpy", "numpy", None, "arrays")) is None


def test_mpi_is_tried_where_it_is_installed(cli, quick, monkeypatch):
    pytest.importorskip("mpi4py")
    assert "backend mpi" not in cli("doctor").stdout
    mpi = doctor.Package("mpi4py", "mpi4py.MPI", "mpi", "processes")
    monkeypatch.setattr(doctor, "PACKAGES", (*doctor.PACKAGES, mpi))
    assert "backend mpi: 4 ranks average rightly" in cli("doctor").stdout
