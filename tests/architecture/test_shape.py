"""The shape of the house: its top, what no room is called, links that lead somewhere."""

import re
import subprocess

from tests.architecture.sources import ROOT, tracked

TOP = {
    ".ci", ".gitignore", "Makefile", "README.md", "agents", "docs", "examples", "manage.py",
    "portal", "pyproject.toml", "scheduler", "static", "templates", "tests",
}  # fmt: skip
LUMBER_ROOMS = {"utils", "util", "helpers", "helper", "managers", "manager", "common", "misc"}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MARK = re.compile(r"\b(TODO|FIXME|XXX)\b")


def test_nothing_new_lies_at_the_top() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked(".")} <= TOP


def test_no_lumber_rooms() -> None:
    found = [path for path in tracked("*.py") if set(path.with_suffix("").parts) & LUMBER_ROOMS]
    assert not [path for path in found if path.is_relative_to(ROOT)]


def test_nothing_is_left_for_later() -> None:
    marked = [
        str(path.relative_to(ROOT))
        for path in tracked("portal/*", "scheduler/*", "agents/*", "static/*", "templates/*")
        if path.suffix in {".py", ".html", ".js", ".css"} and MARK.search(path.read_text())
    ]
    assert not marked


def test_links_in_documents_lead_somewhere() -> None:
    broken = []
    for document in tracked("*.md"):
        for target in LINK.findall(document.read_text()):
            if "://" not in target and not (document.parent / target).exists():
                broken.append(f"{document.relative_to(ROOT)} -> {target}")
    assert not broken


def test_no_secret_or_state_is_tracked() -> None:
    words = ["git", "ls-files", "--", "*.sqlite3", "*secret-key*", "*.pem", ".tidepool", ".venv"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert listed == ""
