"""The type stubs say what the module has: the same names, the same parameters, in both directions."""

import ast
import functools
import importlib
import inspect
import pathlib
import re

import pytest

import ballast

PACKAGE = pathlib.Path(ballast.__file__).parent
STUBS = sorted(PACKAGE.rglob("*.pyi"))

NO_DEFAULT = "no default"


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] == "ballast":
            raise
        pytest.skip(f"{error.name} is not installed")


def is_public(name):
    return not name.startswith("_")


# What a stub says.


def statements(body):
    """All statements, those below an `if` about versions, too."""
    for node in body:
        if isinstance(node, ast.If):
            yield from statements([*node.body, *node.orelse])
        else:
            yield node


def names_in(body):
    """The names that a module or a class in a stub has, and what each of them is: a node, or None for an imported one."""
    found = {}
    for node in statements(body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = [node]
        elif isinstance(node, ast.Assign):
            found.update({target.id: [node] for target in node.targets})
        elif isinstance(node, ast.ImportFrom):  # "from x import y as y" hands y on
            found.update({alias.name: [None] for alias in node.names if alias.asname == alias.name})
    return found


def parameters_in(node):
    """(name, kind, default) of each parameter in a stub; a default that a stub leaves as ... may be anything."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    found = []
    for i, (argument, default) in enumerate(zip(positional, defaults)):
        kind = "positional only" if i < len(arguments.posonlyargs) else "positional"
        found.append((argument.arg, kind, default_in(default)))
    if arguments.vararg:
        found.append((arguments.vararg.arg, "*", NO_DEFAULT))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        found.append((argument.arg, "keyword", default_in(default)))
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, "**", NO_DEFAULT))
    return found


def default_in(node):
    if node is None:
        return NO_DEFAULT
    return ... if isinstance(node, ast.Constant) and node.value is ... else ast.unparse(node)


def decorators(node):
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}


# What the module has.


def names_of(module):
    """What a module offers: its __all__, or what is defined in it and has a public name."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    is_native = not str(module.__file__).endswith(".py")
    return {
        name
        for name, value in vars(module).items()
        if is_public(name)
        and not inspect.ismodule(value)
        and (is_native or getattr(value, "__module__", module.__name__) == module.__name__)
    }


def members_of(cls):
    """The public names of a class that are not of a built-in class, Exception for one."""
    built_in = {name for base in cls.__mro__ if base.__module__ in ("builtins", "enum") for name in dir(base)}
    return {name for name in dir(cls) if is_public(name)} - built_in


def parameters_of(function):
    """The same as parameters_in, of a function that is there; None if nobody can know."""
    if isinstance(function, (classmethod, staticmethod)):
        function = function.__func__
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return parameters_in_doc(function)
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: "positional only",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return [
        (p.name, kinds[p.kind], NO_DEFAULT if p.default is inspect.Parameter.empty else repr(p.default))
        for p in signature.parameters.values()
    ]


def parameters_in_doc(function):
    """pybind11 writes the signature into the first line: "to(self: object, dtype: str) -> object"."""
    line = (getattr(function, "__doc__", None) or "").partition("\n")[0]
    match = re.fullmatch(r"\w+\((.*)\) -> .*", line)
    if not match:
        return None
    parameters = re.sub(r"<[^<>]*>", "None", match.group(1))
    try:
        node = ast.parse(f"def f({parameters}): ...").body[0]
    except SyntaxError:
        return None
    return parameters_in(node)


# The comparison.


def same_parameters(stubbed, real):
    def comparable(parameters):
        for name, kind, default in parameters:
            unnamed = kind == "positional only" or re.fullmatch(r"arg\d+", name)  # pybind11 has no names for those
            yield ("" if unnamed or kind in ("*", "**") else name, "positional only" if unnamed else kind, default)

    def without_self(parameters):
        return [p for i, p in enumerate(parameters) if i or p[0] not in ("self", "cls")]

    stubbed, real = list(comparable(without_self(stubbed))), list(comparable(without_self(real)))
    if len(stubbed) != len(real):
        return False
    return all(a[:2] == b[:2] and (a[2] is ... and b[2] != NO_DEFAULT or a[2] == b[2]) for a, b in zip(stubbed, real))


def check_function(where, nodes, real):
    if len(nodes) > 1 or "overload" in decorators(nodes[0]):
        return []
    if decorators(nodes[0]) & {"property", "cached_property"}:
        is_property = isinstance(real, (property, functools.cached_property)) or not callable(real)
        return [] if is_property else [f"{where} is no property"]
    if not callable(real) and not isinstance(real, (classmethod, staticmethod)):
        return [f"{where} is no function"]
    parameters = parameters_of(real)
    if parameters is None or same_parameters(parameters_in(nodes[0]), parameters):
        return []
    return [f"{where}{parameters} is {parameters_in(nodes[0])} in the stub"]


def check_class(where, node, real):
    if not inspect.isclass(real):
        return [f"{where} is no class"]
    stubbed = names_in(node.body)
    wrong = []
    if issubclass(real, BaseException):
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        if bases != [base.__name__ for base in real.__bases__]:
            wrong.append(f"{where} has the bases {real.__bases__}")
    made = {name for name in stubbed if is_public(name) and isinstance(stubbed[name][0], (ast.AnnAssign, ast.Assign))}
    methods = {name for name in stubbed if is_public(name)} - made
    members = members_of(real)
    wrong += [f"{where}.{name} is in the stub only" for name in sorted(methods - members)]
    wrong += [f"{where}.{name} is not in the stub" for name in sorted(members - methods - made - inherited(node, real))]
    for name, nodes in stubbed.items():
        # A type may have the slot of a protocol without a name for it: __buffer__ is one of Python 3.12.
        if isinstance(nodes[0], ast.FunctionDef) and hasattr(real, name):
            wrong += check_function(f"{where}.{name}", nodes, inspect.getattr_static(real, name))
    return wrong


def inherited(node, real):
    """Names that a base has, which the stub of the base has to have."""
    named = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
    return {name for base in real.__mro__[1:] if base.__name__ in named for name in dir(base)}


def check_module(path):
    module = imported(module_name(path))
    stubbed = names_in(ast.parse(path.read_text(encoding="utf-8")).body)
    public = {name for name in stubbed if is_public(name)}
    real = names_of(module)
    wrong = [f"{name} is not in the stub" for name in sorted(real - public)]
    listed = stubbed.get("__all__", [None])[0]
    if isinstance(listed, ast.Assign) and set(ast.literal_eval(listed.value)) != real:
        wrong.append("__all__ is another one in the stub")
    for name in sorted(public):
        if not hasattr(module, name):
            wrong.append(f"{name} is in the stub only")
        elif isinstance(stubbed[name][0], ast.FunctionDef):
            wrong += check_function(name, stubbed[name], getattr(module, name))
        elif isinstance(stubbed[name][0], ast.ClassDef):
            wrong += check_class(name, stubbed[name][0], getattr(module, name))
    return wrong


@pytest.mark.parametrize("path", STUBS, ids=module_name)
def test_a_stub_and_its_module_have_the_same_names_and_parameters(path):
    assert check_module(path) == []


def test_every_public_module_has_a_stub_and_the_package_says_that_it_is_typed():
    modules = {path for path in PACKAGE.rglob("*.py") if is_public(path.stem) or path.stem == "__init__"}
    assert sorted(str(path) for path in modules if not path.with_suffix(".pyi").exists()) == []
    assert (PACKAGE / "py.typed").exists()


def test_a_stub_that_is_wrong_is_noticed(tmp_path, monkeypatch):
    """The comparison itself: each line is wrong in another way."""
    (tmp_path / "sample_module.py").write_text(
        "def same(a, *, b=1): ...\n"
        "def other_default(a=1): ...\n"
        "def other_name(a): ...\n"
        "def keyword(*, a): ...\n"
        "def missing(): ...\n"
        "class Thing:\n    def method(self, a): ...\n    def unseen(self): ...\n"
    )
    stub = tmp_path / "sample_module.pyi"
    stub.write_text(
        "def same(a: int, *, b: int = 1) -> None: ...\n"
        "def other_default(a: int = 2) -> None: ...\n"
        "def other_name(b: int) -> None: ...\n"
        "def keyword(a: int) -> None: ...\n"
        "def invented() -> None: ...\n"
        "class Thing:\n    def method(self) -> None: ...\n    def invented(self) -> None: ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "sample")
    complaints = [complaint.partition("[")[0].partition(" ")[0] for complaint in check_module(stub)]
    expected = ["missing", "Thing.invented", "Thing.unseen", "Thing.method"]
    assert complaints == [*expected, "invented", "keyword", "other_default", "other_name"]
