"""The mutants of a source file: what it would be with one small mistake. Pure.

    comparison     < becomes <=, == becomes !=, in becomes not in
    boolean        and becomes or, not is dropped, a condition is negated
    constant       a number is one higher, True becomes False, a word gets another letter
    arithmetic     + becomes -, * becomes /, | becomes &
    statement      a call, an assignment to a field, a raise, a break or a continue is left out
    return         what is returned becomes None, but False, which becomes True
    arguments      the first two arguments of a call are swapped

Left alone is what no test should notice: annotations, docstrings, texts with a space in them and f-strings (wording),
logging, imports, what stands under TYPE_CHECKING, and the order of arguments where it does not
matter (max). Called by __main__.py.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: (r"-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: (r"/", "*"),
    ast.FloorDiv: (r"//", "*"),
    ast.Mod: (r"%", "*"),
    ast.BitOr: (r"\|", "&"),
    ast.BitAnd: (r"&", "|"),
}
_LOGGERS = {"log", "logger", "logging"}
_SYMMETRIC = {"max", "min", "maximum", "minimum", "samestat"}  # the order of what they are given changes nothing
_NAMES_OF_NAMES = {"__all__", "__slots__"}


class Mutant(NamedTuple):
    path: str
    line: int
    kind: str
    start: int  # the bytes of the source that are replaced
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutants(path: str, source: bytes, lines: set[int] | None = None) -> list[Mutant]:
    """All mutants of a file, or of these lines of it, in the order of the source; each compiles."""
    return [mutant for mutant in find_changes(path, source, lines) if compiles(mutant, source)]


def find_changes(path: str, source: bytes, lines: set[int] | None = None) -> list[Mutant]:
    """The same, with the few that do not compile: to try that with every one of all of src takes minutes."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    ordered = sorted(set(finder.mutants), key=lambda mutant: (mutant.start, mutant.end, mutant.text))
    return [mutant for mutant in ordered if lines is None or mutant.line in lines]


def changed_texts(mutant: Mutant, source: bytes) -> tuple[str, str]:
    """The lines that the mutant changes, before and after, without what surrounds them."""
    first = source.rfind(b"\n", 0, mutant.start) + 1
    last = source.find(b"\n", mutant.end)
    last = len(source) if last < 0 else last
    before = source[first:last].decode()
    after = (source[first : mutant.start] + mutant.text.encode() + source[mutant.end : last]).decode()
    return before.strip(), after.strip()


def compiles(mutant: Mutant, source: bytes) -> bool:
    try:
        compile(mutant.apply(source), "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source, self.mutants = path, source, list[Mutant]()
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    # ---- places

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _add(self, kind: str, line: int, start: int, end: int, text: str) -> None:
        self.mutants.append(Mutant(self.path, line, kind, start, end, text))

    def _replace(self, kind: str, node: ast.expr | ast.stmt, text: str) -> None:
        self._add(kind, node.lineno, *self._span(node), text)

    def _replace_between(self, kind: str, left: ast.expr, right: ast.expr, pattern: str, text: str) -> None:
        """Replace an operator: what stands between two operands, besides brackets and comments."""
        (_, start), (end, _) = self._span(left), self._span(right)
        match = re.search(pattern.encode(), self.source[start:end])
        if match:
            line = self.source[: start + match.start()].count(b"\n") + 1
            self._add(kind, line, start + match.start(), start + match.end(), text)

    # ---- what is left alone

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for child in (*node.args.defaults, *(default for default in node.args.kw_defaults if default), *node.body):
            self.visit(child)

    visit_FunctionDef = _visit_function  # noqa: N815
    visit_AsyncFunctionDef = _visit_function  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for child in node.body:
            self.visit(child)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not (isinstance(node.value, ast.Name) and node.value.id == "Literal"):
            self.generic_visit(node)

    # ---- expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            self._replace_between("comparison", left, right, *_COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        pattern, text = (r"\band\b", "or") if isinstance(node.op, ast.And) else (r"\bor\b", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._replace_between("boolean", left, right, pattern, text)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace("boolean", node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _ARITHMETIC:
            self._replace_between("arithmetic", node.left, node.right, *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if len(node.args) >= 2 and not any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            first, second = node.args[:2]
            (start, first_end), (second_start, end) = self._span(first), self._span(second)
            between = self.source[first_end:second_start].decode()
            if ast.dump(first) != ast.dump(second) and not _is_symmetric(node):
                self._add("arguments", first.lineno, start, end, self._text(second) + between + self._text(first))
        for child in ast.iter_child_nodes(node):
            if not _is_strictness(child):
                self.visit(child)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace("constant", node, str(not value))
        elif isinstance(value, int | float):
            self._replace("constant", node, repr(value + 1))
        elif isinstance(value, str) and value and not re.search(r"\s", value):
            self._replace("constant", node, repr(f"{value}x"))

    def _negate(self, test: ast.expr) -> None:
        """A comparison or a `not` has mutants of its own, which say the same."""
        if not isinstance(test, ast.Compare | ast.UnaryOp | ast.NamedExpr):
            self._replace("boolean", test, f"not ({self._text(test)})")

    # ---- statements

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
        for child in (node.test, *node.body, *node.orelse):
            if not isinstance(child, ast.Constant):
                self.visit(child)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or _is_logging(node.value):
            return
        if isinstance(node.value, ast.Call | ast.Await):
            self._replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & _NAMES_OF_NAMES:
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._replace("statement", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace("statement", node, "pass")
        self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):  # a claim: None says no, too
                self._replace("return", node, "return None")
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("statement", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("statement", node, "pass")

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace("statement", node, "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        """What must be true of our own code: no test can make it false."""


def _is_strictness(node: ast.AST) -> bool:
    """`zip(a, b, strict=True)` asserts that both are equally long: like other assertions, no test can make it false."""
    return (
        isinstance(node, ast.keyword)
        and node.arg == "strict"
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
    )


def _is_symmetric(node: ast.Call) -> bool:
    """Not with a key or a default: of equals, `max` takes the first, which then may be another object."""
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return name in _SYMMETRIC and not node.keywords


def _is_logging(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in _LOGGERS
