"""Our modules as one: each request to the stack costs a call, and small files compress badly alone.

Modules use a part of the language only: `import { a, b as c }`, `import * as a`, `import a`, and
`export` before a `const`, a function or a class, or `export { a } from`. No module's exports change
once it has run.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping

ENTRY = "app.js"
_VENDOR = "vendor/"
_FROM = r'from "(?P<path>\.[^"]+)";\n'
_IMPORT = re.compile(r"^import (?P<what>[^;\"]+?) " + _FROM, re.MULTILINE)
_PASSED_ON = re.compile(r"^export \{(?P<names>[^}]+)\} " + _FROM, re.MULTILINE)
_LATER = re.compile(r'import\("(?P<path>\.[^"]+)"\)')
_EXPORT = re.compile(r"^export ((?:default )?)((?:async )?\w+ (\w+))", re.MULTILINE)


def bundled(modules: Mapping[str, str]) -> str:
    """One module that does what the entry does; `modules` by their paths, those of vendors among
    them, which it imports. Modules stand behind what they import, the entry last. Raises
    ValueError for an import of another form."""
    order = [path for path in _ordered(modules) if path != ENTRY]
    names = {path: f"m{number}" for number, path in enumerate([*order, ENTRY])}
    parts = [f'import * as {names[path]} from "./{path}";\n' for path in order if _is_vendor(path)]
    for path in order:
        if not _is_vendor(path):
            body, exports = _body(path, modules[path], names)
            parts.append(
                f"const {names[path]} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"
            )
    entry, _ = _body(ENTRY, modules[ENTRY], names)
    return "".join([*parts, entry])


def _is_vendor(path: str) -> bool:
    return path.startswith(_VENDOR)


def _target(path: str, relative: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))


def _ordered(modules: Mapping[str, str]) -> Iterator[str]:
    """Every module behind those that it imports at once; those imported later come anywhere."""
    done: set[str] = set()

    def visit(path: str) -> Iterator[str]:
        if path in done:
            return
        done.add(path)
        if not _is_vendor(path):
            for pattern in (_IMPORT, _PASSED_ON):
                for found in pattern.finditer(modules[path]):
                    yield from visit(_target(path, found["path"]))
        yield path

    for path in modules:
        yield from visit(path)


def _body(path: str, text: str, names: Mapping[str, str]) -> tuple[str, str]:
    """A module's text with its imports as constants; its exports as members of an object."""
    exports: list[str] = []

    def constant(found: re.Match[str]) -> str:
        what, source = found["what"].strip(), names[_target(path, found["path"])]
        if what.startswith("{"):
            return f"const {what.replace(' as ', ': ')} = {source};\n"
        if what.startswith("* as "):
            return f"const {what[5:]} = {source};\n"
        if not what.isidentifier():
            raise ValueError(f"{path}: import {what}: one form at a time")
        return f"const {what} = {source}.default;\n"

    def passed_on(found: re.Match[str]) -> str:
        source = names[_target(path, found["path"])]
        own = (name.strip() for name in found["names"].split(","))
        exports.extend(f"{name}: {source}.{name}" for name in own if name)
        return ""

    def exported(found: re.Match[str]) -> str:
        exports.append(f"default: {found[3]}" if found[1] else found[3])
        return found[2]

    def later(found: re.Match[str]) -> str:
        return f"Promise.resolve({names[_target(path, found['path'])]})"

    text = _PASSED_ON.sub(passed_on, _IMPORT.sub(constant, text))
    return _LATER.sub(later, _EXPORT.sub(exported, text)), ", ".join(exports)
