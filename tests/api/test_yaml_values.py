"""YAML as JSON would have it: equal to PyYAML for what people write, refused with a place for what would hurt."""

from __future__ import annotations

import contextlib
import random
import time
import tracemalloc
from datetime import date, datetime
from typing import Any

import pytest
import yaml

from wukong.api.documents import load_yaml
from wukong.api.yaml_values import MOST_ALIASED, MOST_DEPTH, load_documents
from wukong.errors import InputError


def problem_of(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        load_documents(text)
    return str(caught.value)


def a_bomb(levels: int = 9, width: int = 9) -> str:
    """A few hundred bytes of which an expanding reader makes gigabytes."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: 0x1F\nb: 0b11\nc: 017\nd: 1_000\ne: -3\nf: +4", {"a": 31, "b": 3, "c": 15, "d": 1000, "e": -3, "f": 4}),
        ("a: 1.5\nb: 1e3\nc: 1.0e+3\nd: .5", {"a": 1.5, "b": "1e3", "c": 1000.0, "d": 0.5}),
        ("[yes, No, on, true, ~, null, '', Null]", [True, False, True, True, None, None, "", None]),
        ("a: '1'\nb: \"true\"\nc: |\n  x\n  y\n", {"a": "1", "b": "true", "c": "x\ny\n"}),
        ("1: a\ntrue: b\n~: c\n1.5: d", {"1": "a", "true": "b", "null": "c", "1.5": "d"}),
        ("a: &x {b: [1]}\nc: *x", {"a": {"b": [1]}, "c": {"b": [1]}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("d: {c: 3, <<: [{c: 4, e: 5}, {e: 6, f: 7}]}", {"d": {"c": 3, "e": 5, "f": 7}}),
        ("- <<\n- {a: <<}", ["<<", {"a": "<<"}]),
        ("a: 2026-01-02\nb: 2026-01-02T03:04:05Z", {"a": "2026-01-02", "b": "2026-01-02T03:04:05Z"}),
        ("a: 2026-13-45", {"a": "2026-13-45"}),
        ("a: 8:30", {"a": "8:30"}),
        ("[-0x1F, +0b11, -017, 0, -0, 0x1_F]", [-31, 3, -15, 0, 0, 31]),
        ("[.inf, -.INF, 1_0.5]", [float("inf"), float("-inf"), 10.5]),
        ("[1:30.5, 20:30.5]", ["1:30.5", "20:30.5"]),
        ("a: &x 5\nb: &y <<\nc: [*x, *y]", {"a": 5, "b": "<<", "c": [5, "<<"]}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
        ("d: {<<: {a: 1}, b: 2, <<: {a: 3, c: 4}}", {"d": {"a": 1, "b": 2, "c": 4}}),
        ("a: =", {"a": "="}),
        ("- !!null x\n- !!float 1\n- !!seq [1]\n- !!map {a: 1}\n- !!timestamp x", [None, 1.0, [1], {"a": 1}, "x"]),
        ("!!str 1", "1"),
        ("!!int '12'", 12),
        ("! 12", "12"),
        ("", None),
        ('{"a": {"b": [1, 2.5, null, "\\u00e9\\n"]}}', {"a": {"b": [1, 2.5, None, "é\n"]}}),
    ],
)
def test_a_text_becomes_what_json_would_have(text: str, value: object) -> None:
    assert load_yaml(text) == value
    assert load_yaml(text.encode()) == value


def test_what_an_alias_gives_is_a_copy() -> None:
    """A reader that changes one place must not change another."""
    document = load_yaml("a: &x {b: [1]}\nc: *x")
    document["a"]["b"].append(2)
    assert document["c"] == {"b": [1]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b: c", "broken YAML: line 1, column 5: mapping values are not allowed"),
        ("a: 1\nb: 2\na: 3", "broken YAML: line 3, column 1: 'a' is there twice in one map. Remove one of the two."),
        ('{"a": 1, "a": 2}', "broken YAML: line 1, column 10: 'a' is there twice"),
        ("x: &a [*a]", "broken YAML: line 1, column 8: *a is within itself. Write the value out."),
        ("x: *a", "broken YAML: line 1, column 4: there is no anchor &a before this alias."),
        ("a: 1\n---\nb: &c 1\n---\nd: *c", "line 5, column 4: there is no anchor &c"),
        ("[" * 100_000, f"line 1, column 201: nested too deeply, more than {MOST_DEPTH} levels"),
        ("- " * 100_000, "nested too deeply"),
        ("{a: " * 100_000 + "}" * 100_000, "nested too deeply"),
        ("? " * 100_000, "nested too deeply"),
        ("a: " + "1" * 5000, "line 1, column 4: expected a number of at most 64 bits, got 5,000 characters. Mend it"),
        ("a: " + "1" * 5000 + ".5", "got 5,002 characters"),
        ("a: !!binary aGk=", "line 1, column 4: expected a plain value, got the tag"),
        ("a: !!set {b}", "expected a plain list or map, got the tag"),
        ("a: !!python/object:os.system x", "expected a plain value, got the tag"),
        ("a: !mine x", "expected a plain value, got the tag '!mine'. Remove it."),
        ("a: !!int x", "line 1, column 4: expected a whole number, got 'x'."),
        ("a: !!bool maybe", "expected true or false, got 'maybe'."),
        ("? [a]\n: b", "expected a name, got a list or map"),
        ("? {a: b}\n: c", "expected a name, got a list or map"),
        ("<<: 1", "line 1, column 5: expected a map or a list of maps after <<."),
        ("a: \x01", "line 1, column 4: control characters are not allowed"),
        (b"a: \xff", "line 1, column 4: "),
        ('a: "\\ud800"', "broken YAML: line 1"),
        (a_bomb(), "its aliases multiply to too many values. Write the values out"),
        ("a: &a [" + "x" * 100_000 + "]\nb: [" + "*a, " * 100 + "]", "its aliases multiply to too many values"),
        (
            "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 300))]),
            "nested too deeply by its aliases",
        ),
    ],
)
def test_what_would_hurt_is_refused_with_its_place(text: str | bytes, problem: str) -> None:
    assert problem in problem_of(text)


def test_levels_count_up_to_the_limit_also_those_of_aliases() -> None:
    """One level fewer is read, one more is refused."""
    load_documents("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    assert "nested too deeply" in problem_of("[" * (MOST_DEPTH + 1))
    for anchored, height in (("[x]", 1), ("[[x], y]", 2), ("{a: [y, {b: z}]}", 3), ("[*v]", 2)):
        before = f"- &v [x]\n- &a {anchored}\n- "  # the list of all is a level, too
        room = MOST_DEPTH - 1 - height
        load_documents(before + "[" * room + "*a" + "]" * room)
        assert "nested too deeply by its aliases" in problem_of(before + "[" * (room + 1) + "*a" + "]" * (room + 1))


@pytest.mark.parametrize(
    ("anchored", "weight"),
    [
        ("[" + "x" * 1000 + "]", 64 + 64 + 1000),
        ("{d: &b [" + "x" * 900 + "], e: 1}", 64 + 65 + 64 + 64 + 900 + 65 + 65),  # a value weighs 64 and its text
        ("[*y, " + "x" * 900 + "]", 64 + 67 + 64 + 900),
    ],
)
def test_aliases_may_copy_so_much_and_no_more(anchored: str, weight: int) -> None:
    head = f"y: &y yes\na: &a {anchored}\nb: "
    room = MOST_ALIASED - (67 if "*y" in anchored else 0)
    copies = room // weight
    assert len(load_documents(head + "[" + "*a, " * copies + "]")[0]["b"]) == copies
    assert "its aliases multiply" in problem_of(head + "[" + "*a, " * (copies + 1) + "]")


def test_a_number_may_have_four_hundred_characters() -> None:
    assert load_documents(f"a: {'1' * 400}") == [{"a": int("1" * 400)}]
    assert "got 401 characters" in problem_of(f"a: {'1' * 401}")
    assert load_documents(f"a: '{'1' * 401}'") == [{"a": "1" * 401}]


@pytest.mark.slow
def test_a_bomb_costs_neither_time_nor_memory() -> None:
    bombs = [
        a_bomb(),
        a_bomb(levels=60, width=3),
        "\n".join(["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}" for n in range(1, 100))]),
        "\n".join(["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [{f'*a{n - 1}, ' * 9}]}}" for n in range(1, 100))]),
        "[" * 1_000_000,
        "a: " + "1:" * 500_000 + "1",
        "a: " + "9" * 1_000_000,
    ]
    tracemalloc.start()
    started = time.process_time()
    for bomb in bombs[:-2]:
        problem_of(bomb)
    for bomb in bombs[-2:]:
        with contextlib.suppress(InputError):
            load_documents(bomb)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 5  # tracing memory makes everything several times slower
    assert peak < 100 << 20


def a_value(rng: random.Random, depth: int = 0) -> Any:
    """A random document: every kind of scalar, and lists and maps of them."""
    match rng.randrange(9 if depth < 5 else 6):
        case 0:
            return rng.choice(
                ["", "a", "yes", "1", "0x10", "1:30", "<<", "=", "~", "ä ö", "a\nb", " x ", "# no", "2026-01-01"]
            )
        case 1:
            return rng.randrange(-(2**63), 2**63)
        case 2:
            return rng.choice([True, False, None])
        case 3:
            return rng.choice([0.5, -1.25e100, 1e-7, 3.0])
        case 4:
            return "".join(rng.choices("abc: -{}[]&*!|>'\"%@`\\\t\n#,?", k=rng.randrange(12)))
        case 5:
            return rng.choice([[], {}])
        case 6:
            return [a_value(rng, depth + 1) for _ in range(rng.randrange(4))]
        case _:
            return {f"k{n}" if rng.random() < 0.8 else str(a_value(rng, 9)) + str(n): a_value(rng, depth + 1)
                    for n in range(rng.randrange(4))}  # fmt: skip


@pytest.mark.slow
def test_random_documents_are_read_as_pyyaml_reads_them() -> None:
    for seed in range(1_500):
        rng = random.Random(seed)
        value = a_value(rng)
        shared = {"first": value, "second": value}  # PyYAML writes an anchor and an alias
        text = yaml.safe_dump(shared, default_flow_style=rng.choice([True, False, None]), allow_unicode=True)
        assert load_documents(text) == [as_text(yaml.safe_load(text))], f"seed {seed}: {text}"


def as_text(value: Any) -> Any:
    """Times are texts, and names are."""
    if isinstance(value, dict):
        return {str(name): as_text(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [as_text(entry) for entry in value]
    return value.isoformat() if isinstance(value, date | datetime) else value
