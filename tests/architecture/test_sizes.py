"""Short files, short functions: the ceilings that keep the house readable."""

import ast

from tests.architecture.sources import ROOT, tracked

FILE_LINES = 400
FUNCTION_LINES = 50
"""The ceiling; the aim is 40. Signature and docstring do not count."""
MEDIAN_LINES = 130


def source_files() -> list[tuple[str, list[str]]]:
    paths = tracked("*.py", "*.html", "*.css", "*.js")
    return [(str(path.relative_to(ROOT)), path.read_text().splitlines()) for path in paths]


def test_no_file_outgrows_its_ceiling() -> None:
    long = {name: len(lines) for name, lines in source_files() if len(lines) > FILE_LINES}
    assert not long, f"more than {FILE_LINES} lines: {long}"


def test_half_of_the_modules_are_short() -> None:
    sizes = sorted(len(lines) for name, lines in source_files() if name.endswith(".py"))
    assert sizes[len(sizes) // 2] < MEDIAN_LINES


def test_no_function_outgrows_its_ceiling() -> None:
    long = {}
    for path in tracked("portal/*.py", "scheduler/*.py", "agents/*.py"):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
                body = found.body[1:] if ast.get_docstring(found) else found.body
                lines = (found.end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{found.lineno} {found.name}"] = lines
    assert not long, f"more than {FUNCTION_LINES} lines: {long}"


def test_every_module_opens_with_a_sentence() -> None:
    silent = []
    for path in tracked("portal/*.py", "scheduler/*.py", "agents/*.py"):
        text = path.read_text()
        if text.strip() and not ast.get_docstring(ast.parse(text)):
            silent.append(str(path.relative_to(ROOT)))
    assert not silent
