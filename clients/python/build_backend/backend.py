"""Builds the wheel with the standard library alone, so that it can be built where there is no index (PEP 517, PEP 427)."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent
_PACKAGE = "paddock_rl"


def get_requires_for_build_wheel(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """Nothing: PEP 517's hook."""
    return []


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    """Writes the wheel and answers its name: PEP 517's hook."""
    project = _project()
    stem = f"{_PACKAGE}-{project['version']}"
    files = {
        path.relative_to(_HERE / "src").as_posix(): path.read_bytes()
        for path in sorted((_HERE / "src" / _PACKAGE).rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    }
    files[f"{stem}.dist-info/METADATA"] = _metadata(project)
    files[f"{stem}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: paddock\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            # The earliest time that zip knows: the same sources make the same bytes.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def _project() -> dict[str, str]:
    """The plain strings of [project]; Python 3.10 has no reader of TOML."""
    text = (_HERE / "pyproject.toml").read_text()
    section = text.split("[project]\n", 1)[1].split("\n[", 1)[0]
    return dict(re.findall(r'^([\w-]+) = "(.*)"$', section, re.MULTILINE))


def _extras() -> dict[str, list[str]]:
    """What each extra needs: lists of plain strings, one to a line."""
    text = (_HERE / "pyproject.toml").read_text()
    section = text.split("[project.optional-dependencies]\n", 1)[1].split("\n[", 1)[0]
    return {name: re.findall(r'"(.*?)"', needs) for name, needs in re.findall(r"^([\w-]+) = \[(.*)\]$", section, re.MULTILINE)}


def _metadata(project: Mapping[str, str]) -> bytes:
    head = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    for extra, needs in _extras().items():
        head += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    return "\n".join([*head, "", (_HERE / project["readme"]).read_text()]).encode()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
