#!/usr/bin/env bash
# What Wukong does, in a minute, without a cluster. Ends with 0 only if all of it is as expected.
# Run by `make demo`, or from the repository's root with wukong on PATH.
set -euo pipefail

pace=()
if [[ -t 1 ]]; then pace=(--speed 6x); fi  # half a minute to watch it; without a terminal nobody does

heading() { printf '\n\033[1m== %s\033[0m\n' "$1"; }
run() {
  printf '\033[2m$ %s\033[0m\n\n' "$*"
  "$@"
}
if [[ ! -t 1 || -n ${NO_COLOR:-} ]]; then
  heading() { printf '\n== %s\n' "$1"; }
  run() { printf '$ %s\n\n' "$*"; "$@"; }
fi

# A plan that says no ends with 1, and that is as it should be here.
run_unsafe() {
  if run "$@"; then
    printf 'expected a plan that is not safe\n' >&2
    exit 1
  fi
}

heading "Another image for three pods that are kept apart, on three nodes. What will happen? Nothing is applied:"
run_unsafe wukong plan -s examples/plan/cluster.yaml -f examples/plan/web.yaml

heading "And if one old pod may go before the new one comes?"
run wukong plan -s examples/plan/cluster.yaml -f examples/plan/web-fixed.yaml

heading "A rollout that never ends, its fix, and the loss of a spot node, by policy on spot and on-demand nodes:"
run wukong sim run examples/sim/demo.yaml "${pace[@]}"

heading "Two of three spot nodes get two minutes of notice, and nobody does anything about it:"
run wukong sim run examples/sim/spot-without-mover.yaml

heading "The same with Wukong's spot mover: replacements first, then the pods. web keeps 3 available pods, solo its one:"
run wukong sim run examples/sim/spot-mover.yaml

heading "And in this cluster, what would happen if this Deployment were applied?"
run wukong sim run -s examples/cluster.yaml -f examples/web.yaml

heading "How many more web pods fit into this cluster, where do they go, and why no more?"
run wukong capacity -s examples/cluster.yaml -f examples/web.yaml

heading "Where does the next one go, and how did every node fare?"
run wukong explain -s examples/cluster.yaml -f examples/web.yaml

heading "Why does this pod wait, and what is the least that would help?"
run wukong explain -s examples/cluster.yaml -f examples/stuck.yaml

heading "And with a policy: spot first, then cheap, quiet and rarely reclaimed, as the extender makes kube-scheduler do it?"
run wukong explain -s examples/cluster.yaml -f examples/web.yaml --policy examples/policy.yaml

heading "Is that what kube-scheduler does? 8,432 decisions recorded from kube-scheduler 1.35, decided again:"
run wukong replay tests/golden/kube-scheduler-1.35.jsonl.gz

heading "To have wukong, and kubectl wukong, on your PATH:"
printf 'pipx install .\n'
