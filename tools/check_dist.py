"""Check a release: what the sdist and the wheel contain, and that both answer a question where there is no compiler.

.venv/bin/python tools/check_dist.py dist     # after: python -m build --outdir dist

The model that is asked is fitted by the environment that runs this script, which has PyTorch. The wheel and the sdist
are installed in an empty environment without it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
EXTENSIONS = {
    "countless/automata/_string_scan.abi3.so",
    "countless/data/_substrings.abi3.so",
    "countless/engine/_kernel.abi3.so",
    "countless_lab/_scan.abi3.so",
}
DATA = {"countless/data/adult.parquet", "countless/data/npm_urls.parquet"}
KINDS = {".py", ".pyi", ".typed", ".toml", ".css", ".html", ".js", ".md", ".svg"}  # of all other files of the packages
OLDEST_GLIBC = 17  # 2.17, of manylinux2014
X86_64 = 62  # e_machine of an ELF file
MOST_BYTES = 5_000_000
QUESTION = "age > 40 AND sex = 'Male'"
LAB_COMMANDS = ("bench", "paper")


class WrongDistError(Exception):
    """A distribution that must not be released."""


def check(condition: bool, message: str) -> None:
    """Stop with ``message`` unless the condition holds."""
    if not condition:
        raise WrongDistError(message)


def only(folder: Path, pattern: str) -> Path:
    """The only file of a folder that matches."""
    files = sorted(folder.glob(pattern))
    check(len(files) == 1, f"{folder} has {len(files)} files {pattern}: remove it, and run make dist")
    return files[0]


def package_files() -> set[str]:
    """The Python files of the packages, as the repository has them."""
    return {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py*") if path.suffix in (".py", ".pyi")}


def check_wheel(path: Path) -> None:
    """The wheel has every module, the data that may be there, and extensions for every Python on Linux x86-64."""
    check("-cp311-abi3-manylinux" in path.name, f"{path.name} is not for every Python from 3.11 on, on Linux")
    check(path.stat().st_size < MOST_BYTES, f"{path.name} has {path.stat().st_size:,} bytes: something is too much")
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        information = {name for name in names if ".dist-info/" in name}
        files = names - information
        check(files >= package_files(), f"{path.name} lacks {sorted(package_files() - files)[:3]}")
        check({"countless/py.typed", "countless_lab/py.typed"} <= files, f"{path.name} lacks a py.typed")
        check({name for name in files if name.endswith(".so")} == EXTENSIONS, f"{path.name} has other extensions")
        check({name for name in files if name.endswith(".parquet")} == DATA, f"{path.name} has other data")
        odd = [name for name in files - EXTENSIONS - DATA if Path(name).suffix not in KINDS]
        check(not odd, f"{path.name} has {odd[:3]}, which do not belong there")
        for name in EXTENSIONS:
            check_extension(name, wheel.read(name))
        (metadata,) = (name for name in information if name.endswith("/METADATA"))
        check_metadata(wheel.read(metadata).decode())
        check(any(name.endswith("/LICENSE") for name in information), f"{path.name} lacks the LICENSE")
        (entries,) = (name for name in information if name.endswith("/entry_points.txt"))
        check("[countless.commands]" in wheel.read(entries).decode(), f"{path.name} lacks the laboratory's commands")


def check_extension(name: str, content: bytes) -> None:
    """An ELF file for x86-64 that asks for no newer glibc than the wheel's tag promises."""
    check(content[:4] == b"\x7fELF", f"{name} is not an extension for Linux")
    check(int.from_bytes(content[18:20], "little") == X86_64, f"{name} is not for x86-64")
    newest = max(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", content))
    check(newest <= OLDEST_GLIBC, f"{name} needs glibc 2.{newest}: compile it on an older system")


def check_metadata(text: str) -> None:
    """The description is the README, and the extras are there."""
    metadata = Parser().parsestr(text)
    check(
        metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8"), "the description is not the README"
    )
    extras = set(metadata.get_all("Provides-Extra", []))
    check({"lab", "serve", "train", "postgres", "ray"} <= extras, f"extras are missing: there are {sorted(extras)}")


def check_sdist(path: Path) -> None:
    """The sdist has the sources of the packages and of the extensions, and nothing that was built."""
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    headers = {str(file.relative_to(ROOT)) for kind in ("*.c", "*.h") for file in SOURCES.rglob(kind)}
    required = {"LICENSE", "README.md", "pyproject.toml"} | headers | {f"src/{name}" for name in package_files() | DATA}
    check(files >= required, f"{path.name} lacks {sorted(required - files)[:3]}")
    odd = [name for name in files if name.endswith((".so", ".countless", ".o")) or name.startswith("docs/results")]
    check(not odd, f"{path.name} has {odd[:3]}, which do not belong there")


def check_answers(wheel: Path, sdist: Path) -> None:
    """Both, installed without a compiler, answer a question as this environment does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "adult.countless"
        fit = ["fit", "adult", "-o", str(model), "--epochs", "1", "--hidden", "16", "--blocks", "1", "--embedding", "8"]
        run(sys.executable, "-m", "countless.cli.main", *fit)
        expected = rows(run(sys.executable, "-m", "countless.cli.main", "estimate", str(model), QUESTION, "--json"))
        venv.create(folder / "empty", with_pip=True)
        python, countless = folder / "empty/bin/python", folder / "empty/bin/countless"
        run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel)
        check(has_kernel(python), "the wheel's extension does not load")
        check(rows(run(countless, "estimate", model, QUESTION, "--json")) == expected, "the wheel answers otherwise")
        help_text = run(countless, "--help")
        check(
            all(f"\n  {command} " in help_text for command in LAB_COMMANDS), "the laboratory's commands are not found"
        )
        refused = subprocess.run(
            [countless, "bench", "growth", "-o", folder / "growth"], capture_output=True, text=True, check=False
        )
        check("pip install 'countless[lab]'" in refused.stderr, f"countless bench said: {refused.stderr}")
        run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", sdist)
        check(not has_kernel(python), "the sdist was compiled, though there is no compiler")
        answer = rows(run(countless, "estimate", model, QUESTION, "--json"))
        check(abs(answer - expected) < 0.01 * expected, f"without the extension: {answer} rows, not {expected}")
        print(f"{QUESTION}: {expected:,.0f} rows, from the wheel and without a compiler from the sdist")


def run(*command: object) -> str:
    """The output of a command in an environment without a compiler, outside of the repository."""
    environment = {**os.environ, "CC": "/bin/false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if command[0] != sys.executable:
        environment.pop("PYTHONPATH", None)
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment, cwd="/", check=False
    )
    check(result.returncode == 0, f"{' '.join(map(str, command))} failed: {result.stderr}")
    return result.stdout


def rows(output: str) -> float:
    """The number of rows in the answer of ``countless estimate --json``."""
    match = re.search(r'"rows": ([\d.e+-]+)', output)
    check(match is not None, f"there is no answer in {output}")
    assert match is not None
    return float(match[1])


def has_kernel(python: Path) -> bool:
    """Whether the extension is there."""
    code = "from importlib.util import find_spec; print(find_spec('countless.engine._kernel') is not None)"
    return run(python, "-c", code).strip() == "True"


def main() -> None:
    """Check the folder that is named by the first argument."""
    folder = Path(sys.argv[1]).absolute()
    try:
        wheel, sdist = only(folder, "*.whl"), only(folder, "*.tar.gz")
        check_wheel(wheel)
        check_sdist(sdist)
        check_answers(wheel, sdist)
    except WrongDistError as error:
        sys.exit(f"error: {error}")
    print(f"{wheel.name} and {sdist.name} pass all checks")


if __name__ == "__main__":
    main()
