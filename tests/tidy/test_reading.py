"""Whatever a user hands us is read by one loader: nobody else parses YAML or JSON, or opens a file.

The loader is wukong.cluster.files for bytes, wukong.api.text_encoding, yaml_values and json_values for what they mean.
It has budgets and gives every problem a place; another parser beside it would have neither. Read from syntax trees.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "src" / "wukong"
PARSERS = {
    "yaml.load", "yaml.load_all", "yaml.safe_load", "yaml.safe_load_all", "yaml.full_load", "yaml.unsafe_load",
    "yaml.parse", "yaml.scan", "yaml.compose", "yaml.compose_all", "json.load", "json.loads", "json.JSONDecoder",
    "msgspec.json.decode", "msgspec.json.Decoder", "msgspec.yaml.decode", "msgspec.toml.decode", "tomllib.loads",
    "tomllib.load", "pickle.load", "pickle.loads", "marshal.loads",
}  # fmt: skip
OPENERS = {"open", "io.open", "os.open", "gzip.open"}
METHODS = {"read_text", "read_bytes", "open"}  # of a Path
PARSER_ENDS = {name.rpartition(".")[2] for name in PARSERS}
OPENER_ENDS = {*(name.rpartition(".")[2] for name in OPENERS), *METHODS}

# Which module may, and why.
PARSE_ALLOWED = {
    "api/yaml_values.py": "the loader",
    "api/json_values.py": "the loader",
    "api/decode.py": "typed decoders, given to the loader",
    "cluster/snapshot_documents.py": "a typed decoder, given to the loader",
    "cli/inputs/recording.py": "a typed decoder, given to the loader",
    "controllers/spot/records.py": "a typed decoder, given to the loader",
    "placement/notice_annotation.py": "a typed decoder, given to the loader",
    "app/agent/own_node.py": "a typed decoder, given to the loader",
    "serve/notices/request.py": "a typed decoder, given to the loader",
    "embedded/checkers/departures.py": "a typed decoder, given to the loader",
    "api/crds.py": "a copy of what we made",
    "app/sim_live/real_cluster.py": "a copy of what we made",
    "app/sim_live/ownership.py": "a copy of what is in memory",
    "embedded/store/documents.py": "copies of objects that are in memory",
    "embedded/store/server.py": "continue tokens, which we made",
    "embedded/store/validation/custom_schemas.py": "a copy of a schema that is in memory",
    "embedded/store/ownership/field_sets.py": "keys of managed fields, which we made",
    "api/json_text.py": "answers of an API server that a decoder has given up on",
    "api/unreadable.py": "answers of an API server",
    "cluster/kube.py": "answers of an API server",
    "cluster/api_status.py": "answers of an API server",
    "cluster/meters.py": "answers of a meter",
    "cluster/exec_plugin.py": "what a credential plugin printed",
    "serve/admission/request.py": "requests of an API server",
    "placement/pods/mark.py": "marks on pods, which we made",
    "placement/workloads/canaries.py": "a typed decoder, given to the loader",
    "placement/workloads/template_rules.py": "marks on templates, which we made",
    "serve/extender/request.py": "requests of a scheduler",
    "serve/extender/offered_nodes.py": "requests of a scheduler",
}
OPEN_ALLOWED = {
    "cli/views/report/page.py": "the style and script of our own",
    "cluster/files.py": "the loader",
    "cluster/credentials.py": "tokens and certificates",
    "cli/main.py": "/dev/null",
    "cli/views/trace_file.py": "writes",
    "cluster/whole_file.py": "writes",
    "serve/tls.py": "certificates and keys",
    "serve/bearer_tokens.py": "tokens that callers show",
}


class Findings(NamedTuple):
    """Where a module calls or refers to what parses, and where it calls what opens a file."""

    parsers: list[str]
    openers: list[str]


@cache
def find_both(path: Path) -> Findings:
    findings = Findings([], [])
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute | ast.Name) and last_name_of(node) in PARSER_ENDS:
            if (name := ast.unparse(node)) in PARSERS:
                findings.parsers.append(f"{path}:{node.lineno}: {name}")
        elif isinstance(node, ast.Call) and last_name_of(node.func) in OPENER_ENDS:
            name, is_method = ast.unparse(node.func), isinstance(node.func, ast.Attribute)
            if name in OPENERS or (is_method and last_name_of(node.func) in METHODS and name != "real.open"):
                findings.openers.append(f"{path}:{node.lineno}: {name}")
    return findings


def last_name_of(node: ast.expr) -> str:
    """`load` of `yaml.load`: to spell out all that a module refers to takes seconds."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def find_parsers(path: Path) -> list[str]:
    return find_both(path).parsers


def find_openers(path: Path) -> list[str]:
    return find_both(path).openers


def find_others(find: object, allowed: dict[str, str]) -> list[str]:
    assert callable(find)
    modules = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
    return [finding for name, path in modules.items() if name not in allowed for finding in find(path)]


def test_only_the_loader_parses_what_users_write() -> None:
    assert find_others(find_parsers, PARSE_ALLOWED) == []


def test_only_the_loader_opens_files_of_users() -> None:
    assert find_others(find_openers, OPEN_ALLOWED) == []


def test_every_exception_is_still_needed() -> None:
    idle = [name for name in PARSE_ALLOWED if not find_parsers(PACKAGE / name)]
    idle += [name for name in OPEN_ALLOWED if not find_openers(PACKAGE / name)]
    assert idle == []


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    module = tmp_path / "bad.py"
    module.write_text(
        "import yaml\n"
        "yaml.safe_load(text)\n"
        "msgspec.json.Decoder(int)\n"
        "open(path)\n"
        "Path(name).read_text()\n"
        "folder.joinpath('a').open()\n"
    )
    assert len(find_parsers(module)) == 2
    assert len(find_openers(module)) == 3
