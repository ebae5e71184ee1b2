"""Sizes and walls that no linter counts; every offender is named at once."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("engine", "ops", "storage", "sample_models", "shell", "pages", "benchmarks")

LINE_COLUMNS = 96
FUNCTION_LINES = 50
MODULE_LINES = 300
PAGE_LINES = 150
NESTING_LEVELS = 3
PARAMETERS = 5
POSITIONAL = 2  # keyword-only from the third

EDGE = {
    "engine",
    "drivers",
    "devices",
    "load",
    "ports",
}  # of the engine: what may touch the world

Function = ast.FunctionDef | ast.AsyncFunctionDef
LEVELS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Module:
    """Hold one source file, read once."""

    name: str
    text: str
    tree: ast.Module

    def functions(self) -> Iterator[Function]:
        """Yield every function and method, nested ones too."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node

    def at(self, line: int, what: str) -> str:
        """Say where an offence is, in a form that an editor can follow."""
        return f"{self.name}:{line} {what}"


@cache
def read(path: Path) -> Module:
    """Read and parse a file."""
    text = path.read_text(encoding="utf-8")
    return Module(str(path.relative_to(ROOT)), text, ast.parse(text))


def sources() -> list[Module]:
    """Return the modules of the product."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    launcher = ROOT / "app.py"
    return [read(path) for path in [*paths, *([launcher] if launcher.exists() else [])]]


def everything() -> list[Module]:
    """Return the modules of the product and of its tests."""
    return sources() + [read(path) for path in sorted((ROOT / "tests").rglob("*.py"))]


def expect_none(offenders: Sequence[str]) -> None:
    """Fail with the whole list, so that it is mended in one go."""
    if offenders:
        pytest.fail(f"{len(offenders)} offenders:\n" + "\n".join(offenders), pytrace=False)


def code_lines(function: Function) -> int:
    """Count the lines of a function without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    assert docstring.end_lineno is not None
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def is_continued_if(parent: ast.AST, node: ast.AST) -> bool:
    """Tell `elif` from an `if` inside `else`; the tree has one shape for both."""
    return isinstance(parent, ast.If) and isinstance(node, ast.If) and parent.orelse == [node]


def nesting(body: ast.AST, level: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (line, level) of every compound statement; a scope inside starts from 0 again."""
    for node in ast.iter_child_nodes(body):
        if isinstance(node, SCOPES):
            yield from nesting(node)
        elif isinstance(node, LEVELS):
            inner = level if is_continued_if(body, node) else level + 1
            yield node.lineno, inner
            yield from nesting(node, inner)
        else:
            yield from nesting(node, level)


def methods(tree: ast.Module) -> set[Function]:
    """Return the functions whose first parameter is the instance or the class."""
    return {
        node
        for scope in ast.walk(tree)
        if isinstance(scope, ast.ClassDef)
        for node in scope.body
        if isinstance(node, Function)
        and "staticmethod" not in map(ast.unparse, node.decorator_list)
    }


def has_foreign_signature(function: Function) -> bool:
    """Tell whether the language fixes the parameters, as with `__exit__`."""
    name = function.name
    return (
        name.startswith("__") and name.endswith("__") and name not in ("__init__", "__call__")
    )


def test_no_line_is_too_long() -> None:
    expect_none(
        [
            module.at(number, f"has {len(line)} columns")
            for module in everything()
            for number, line in enumerate(module.text.splitlines(), 1)
            if len(line) > LINE_COLUMNS
        ]
    )


def test_no_function_is_too_long() -> None:
    expect_none(
        [
            module.at(function.lineno, f"{function.name} has {code_lines(function)} lines")
            for module in everything()
            for function in module.functions()
            if code_lines(function) > FUNCTION_LINES
        ]
    )


def test_no_module_is_too_long() -> None:
    expect_none(
        [
            module.at(1, f"has {lines} lines, of at most {limit}")
            for module in everything()
            if (lines := len(module.text.splitlines()))
            > (limit := PAGE_LINES if module.name.startswith("pages/") else MODULE_LINES)
        ]
    )


def test_nothing_is_nested_too_deeply() -> None:
    expect_none(
        [
            module.at(line, f"is at level {level}")
            for module in sources()
            for line, level in nesting(module.tree)
            if level > NESTING_LEVELS
        ]
    )


def test_no_function_has_too_many_parameters() -> None:
    offenders = []
    for module in sources():
        bound = methods(module.tree)
        for function in module.functions():
            if has_foreign_signature(function):
                continue
            parameters = function.args
            positional = len(parameters.posonlyargs + parameters.args) - (function in bound)
            count = positional + len(parameters.kwonlyargs)
            if count > PARAMETERS or positional > POSITIONAL:
                said = f"{function.name} has {count} parameters, {positional} positional"
                offenders.append(module.at(function.lineno, said))
    expect_none(offenders)


def test_every_module_begins_with_one_line_that_says_what_it_is_for() -> None:
    offenders = []
    for module in sources():
        docstring = ast.get_docstring(module.tree) or ""
        summary, *rest = docstring.split("\n") if docstring else ("",)
        if not summary.endswith(".") or (rest and rest[0]):
            offenders.append(module.at(1, "wants one line, then an empty one or the end"))
    expect_none(offenders)


def test_nothing_is_left_to_do_in_the_sources() -> None:
    word = "TO" + "DO"
    expect_none(
        [
            module.at(number, f"has a {word}")
            for module in everything()
            for number, line in enumerate(module.text.splitlines(), 1)
            if word in line
        ]
    )


def test_every_core_module_stands_behind_the_wall() -> None:
    """The list of modules without clock or thread is written out; this keeps it whole."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    walls = {wall["name"]: wall for wall in settings["tool"]["importlinter"]["contracts"]}
    core = next(
        wall for name, wall in walls.items() if name.startswith("The core has no clock")
    )
    modules = {
        path.stem
        for path in (ROOT / "engine").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    wanted = {f"engine.{name}" for name in modules - EDGE - {"__init__"}}
    expect_none(sorted(wanted.symmetric_difference(core["source_modules"])))


def test_the_launcher_imports_no_page_and_no_benchmark() -> None:
    launcher = ROOT / "app.py"
    if not launcher.exists():
        pytest.skip("there is no launcher")
    imported = [
        name
        for node in ast.walk(read(launcher).tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    expect_none([name for name in imported if name.split(".")[0] in ("pages", "benchmarks")])
