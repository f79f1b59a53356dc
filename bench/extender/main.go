// Two extenders in Go to compare with, both idiomatic: net/http, encoding/json and the types of k8s.io.
//
//	/nodes/…  reads the nodes sent in full and looks at their labels
//	/names/…  reads names and looks them up in a map in memory, filled once by PUT /nodes
//
// Both keep the spot nodes (all where there are none) and give spot 10, others 0. Prints the port it listens on.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	v1 "k8s.io/api/core/v1"
	extender "k8s.io/kube-scheduler/extender/v1"
)

const label = "karpenter.sh/capacity-type"

var spot = map[string]bool{}

func isSpot(node *v1.Node) bool { return node.Labels[label] == "spot" }

func main() {
	http.HandleFunc("PUT /nodes", fill)
	http.HandleFunc("POST /nodes/filter", answer(filterNodes))
	http.HandleFunc("POST /nodes/prioritize", answer(prioritizeNodes))
	http.HandleFunc("POST /names/filter", answer(filterNames))
	http.HandleFunc("POST /names/prioritize", answer(prioritizeNames))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}

func fill(w http.ResponseWriter, r *http.Request) {
	var list v1.NodeList
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for i := range list.Items {
		spot[list.Items[i].Name] = isSpot(&list.Items[i])
	}
}

func answer[T any](decide func(*extender.ExtenderArgs) T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var args extender.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(decide(&args)); err != nil {
			panic(err)
		}
	}
}

func filterNodes(args *extender.ExtenderArgs) *extender.ExtenderFilterResult {
	kept := &v1.NodeList{Items: make([]v1.Node, 0, len(args.Nodes.Items))}
	failed := extender.FailedNodesMap{}
	for i := range args.Nodes.Items {
		if node := &args.Nodes.Items[i]; isSpot(node) {
			kept.Items = append(kept.Items, *node)
		} else {
			failed[node.Name] = "not a spot node"
		}
	}
	if len(kept.Items) == 0 {
		return &extender.ExtenderFilterResult{Nodes: args.Nodes}
	}
	return &extender.ExtenderFilterResult{Nodes: kept, FailedNodes: failed}
}

func filterNames(args *extender.ExtenderArgs) *extender.ExtenderFilterResult {
	kept := make([]string, 0, len(*args.NodeNames))
	failed := extender.FailedNodesMap{}
	for _, name := range *args.NodeNames {
		if spot[name] {
			kept = append(kept, name)
		} else {
			failed[name] = "not a spot node"
		}
	}
	if len(kept) == 0 {
		return &extender.ExtenderFilterResult{NodeNames: args.NodeNames}
	}
	return &extender.ExtenderFilterResult{NodeNames: &kept, FailedNodes: failed}
}

func score(isSpot bool) int64 {
	if isSpot {
		return extender.MaxExtenderPriority
	}
	return extender.MinExtenderPriority
}

func prioritizeNodes(args *extender.ExtenderArgs) extender.HostPriorityList {
	result := make(extender.HostPriorityList, 0, len(args.Nodes.Items))
	for i := range args.Nodes.Items {
		node := &args.Nodes.Items[i]
		result = append(result, extender.HostPriority{Host: node.Name, Score: score(isSpot(node))})
	}
	return result
}

func prioritizeNames(args *extender.ExtenderArgs) extender.HostPriorityList {
	result := make(extender.HostPriorityList, 0, len(*args.NodeNames))
	for _, name := range *args.NodeNames {
		result = append(result, extender.HostPriority{Host: name, Score: score(spot[name])})
	}
	return result
}
