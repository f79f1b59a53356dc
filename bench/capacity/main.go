// The Go simulator that bench/versus.py measures Wukong against: cluster-capacity as it is, built and cached by
// testbed/build.py. It lays the real kube-scheduler (of its Kubernetes version) over a fake API server in memory.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"sigs.k8s.io/cluster-capacity/cmd/cluster-capacity/app"
)

func main() {
	os.Exit(cli.Run(app.NewClusterCapacityCommand()))
}
