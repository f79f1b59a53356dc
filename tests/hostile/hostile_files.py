"""Files as somebody who means harm, or whose disk is broken, would hand them over: made of good ones, by a seed.

A document is broken as a value (a field replaced by something extreme, dropped, doubled, moved), written as JSON or
YAML, and broken again as a text (cut, bits flipped, other encodings, bombs): `a_hostile_text(rng, documents)`.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import yaml

Value = Any
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Texts that stand for what neither json nor yaml would write: replaced in the written text.
RAW = {
    "@@huge@@": "1e400",
    "@@long@@": "9" * 5000,
    "@@deep@@": "[" * 300 + "]" * 300,
    "@@deeper@@": '{"a":' * 5000 + "1" + "}" * 5000,
    "@@alias@@": "*nobody",
    "@@self@@": "&me [*me]",
    "@@tag@@": "!!binary aGk=",
    "@@nan@@": ".nan",
    "@@minus@@": "-0",
    "@@surrogate@@": '"\\ud800"',
}
EXTREMES: list[Value] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**30,
    0.1,
    -1.5,
    1e308,
    "",
    "x",
    " ",
    "null",
    "\0",
    "\x1b[31m",
    "\u202e",
    "a" * 300,
    "a/b/c",
    "a" * 70 + "/b",
    "-",
    ".",
    "..",
    "/",
    "../../etc/passwd",
    "%s%n",
    "{}",
    "[red]",
    "9E",
    "-1",
    "1e1000000000",
    "1" * 400,
    "0.0000000000000001n",
    "1Ei",
    "nan",
    "inf",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00Z",
    "2026-01-01",
    "9999-12-31T23:59:59+99:99",
    "1s",
    "-5m",
    "9999999999h",
    "https://[::1",
    "http://:99999",
    "100%",
    "-200%",
    "kubernetes.io/hostname",
    "In",
    "Exists",
    "Matches",
    "Pod",
    "List",
    "v1",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"a": None},
    {"a": {"b": {"c": []}}},
    ["a"] * 50,
    [{"name": "a"}, {"name": "a"}],
    *RAW,
]


def a_hostile_text(rng: random.Random, documents: list[Value]) -> bytes:
    """One file of a document among these, broken in some ways."""
    document = json.loads(json.dumps(rng.choice(documents)))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 8])):
        document = break_value(rng, document)
    text = write(rng, document)
    for mark, raw in RAW.items():
        if mark in text:
            text = text.replace(f'"{mark}"', raw).replace(f"'{mark}'", raw).replace(mark, raw)
    data = text.encode(errors="replace")
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        data = rng.choice(TEXT_BREAKERS)(rng, data)
    return data


def write(rng: random.Random, document: Value) -> str:
    match rng.randrange(4):
        case 0:
            return json.dumps(document)
        case 1:
            return json.dumps(document, indent=2, ensure_ascii=False)
        case 2:
            return dump_yaml(document, allow_unicode=True)
        case _:
            return dump_yaml(document, default_flow_style=True, sort_keys=False)


def dump_yaml(document: Value, **style: Any) -> str:
    """Half of what a hostile file takes is to write it; libyaml does so ten times as fast, where it can."""
    try:
        text: str = yaml.dump(document, Dumper=_DUMPER, **style)
    except UnicodeEncodeError:  # a lone half of a surrogate pair, which C has no text for
        text = yaml.safe_dump(document, **style)
    return text


# Values -----------------------------------------------------------------------------------------------------------


def places_of(value: Value) -> Iterator[tuple[Value, Any]]:
    """Every list or map within a value, with each of its indexes or names."""
    entries = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for name, entry in list(entries):
        yield value, name
        yield from places_of(entry)


def break_value(rng: random.Random, document: Value) -> Value:
    places = list(places_of(document))
    if not places or rng.random() < 0.02:
        return an_extreme(rng)
    holder, name = rng.choice(places)
    match rng.randrange(10):
        case 0:
            del holder[name]
        case 1 if isinstance(holder, dict):
            holder[str(name) + rng.choice(["x", "", "\x1b", " "])] = holder.pop(name)
        case 2:
            holder[name] = [holder[name]]
        case 3:
            holder[name] = {"a": holder[name]}
        case 4:
            other, other_name = rng.choice(places)
            holder[name] = json.loads(json.dumps(other[other_name])) if other_name in keys_of(other) else None
        case 5 if isinstance(holder, list):
            holder += json.loads(json.dumps(holder))[:5]
        case 6 if isinstance(holder, dict):
            holder[rng.choice(["a\nb", "", "kind", "metadata", "items", "spec", "\0"])] = an_extreme(rng)
        case _:
            holder[name] = an_extreme(rng)
    return document


def an_extreme(rng: random.Random) -> Value:
    return json.loads(json.dumps(rng.choice(EXTREMES)))


def keys_of(value: Value) -> range | set[str]:
    return range(len(value)) if isinstance(value, list) else set(value)


# Texts ------------------------------------------------------------------------------------------------------------


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def insert(rng: random.Random, data: bytes) -> bytes:
    pieces = [
        b"\xff",
        b"\0",
        b"\xed\xa0\x80",
        b"\x1b[2J",
        b"\t",
        b"\n---\n",
        b"\n...\n",
        b"%YAML 9.9\n",
        b"&a ",
        b"*a",
        b"<<: ",
        b"? ",
        b"{" * 1000,
        b"[" * 1000,
        b"- " * 1000,
        b'"',
        b"'",
        b"\\",
        b"!!python/object:os.system ",
        b"\xc2\x9b",
        b"1e400",
        b"|\n",
        b"@",
        b"9" * 5000,
        b":",
        b"}",
        b"]",
        b"\r",
        b"\xef\xbb\xbf",
    ]
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(pieces) + data[at:]


def double_a_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    return b"\n".join([*lines[: at + 1], *lines[at:]])


def encode_otherwise(rng: random.Random, data: bytes) -> bytes:
    encoding = rng.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp037"])
    return data.decode(errors="replace").encode(encoding, errors="replace")


def pack(rng: random.Random, data: bytes) -> bytes:
    packed = gzip.compress(data, 1, mtime=0)
    return rng.choice([packed, packed[: rng.randrange(len(packed))], packed + b"x", packed + packed, flip(rng, packed)])


def append_a_bomb(rng: random.Random, data: bytes) -> bytes:
    width, levels = rng.randrange(2, 12), rng.randrange(2, 40)
    lines = ["b0: &b0 [x, x, x]", *(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * width)}]" for n in range(1, levels))]
    return data + b"\n" + rng.choice([b"---\n", b""]) + "\n".join(lines).encode()


def replace_all(rng: random.Random, data: bytes) -> bytes:
    return rng.choice(
        [
            b"",
            b" ",
            b"\n",
            b"null",
            b"[]",
            b"{}",
            b"0",
            b'"a"',
            b"- a",
            b"---",
            b"\xff\xfe",
            rng.randbytes(40),
            b"{" * 9999,
        ]
    )


TEXT_BREAKERS: list[Callable[[random.Random, bytes], bytes]] = [
    cut, flip, insert, insert, double_a_line, encode_otherwise, pack, append_a_bomb, replace_all,
]  # fmt: skip
