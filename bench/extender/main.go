// Three extenders in Go to compare with, all idiomatic: net/http and encoding/json.
//
//	/nodes/…  reads the nodes sent in full into the types of k8s.io, looks at their labels, and sends them back
//	/slim/…   reads and sends back only names and labels, with types of its own: quicker, but the scheduler that took
//	          its answer would go on with nodes that have no capacity
//	/names/…  reads names and looks them up in a map in memory, filled once by PUT /nodes
//
// All keep the spot nodes (all where there are none) and give spot 10, others 0. Prints the port it listens on.
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
	http.HandleFunc("POST /slim/filter", answer(filterSlim))
	http.HandleFunc("POST /slim/prioritize", answer(prioritizeSlim))
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

func answer[A, T any](decide func(*A) T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var args A
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

type slimNode struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

type slimNodes struct {
	Items []slimNode `json:"items"`
}

type slimArgs struct {
	Nodes slimNodes
}

type slimResult struct {
	Nodes       slimNodes
	FailedNodes extender.FailedNodesMap
}

func filterSlim(args *slimArgs) *slimResult {
	kept := make([]slimNode, 0, len(args.Nodes.Items))
	failed := extender.FailedNodesMap{}
	for _, node := range args.Nodes.Items {
		if node.Metadata.Labels[label] == "spot" {
			kept = append(kept, node)
		} else {
			failed[node.Metadata.Name] = "not a spot node"
		}
	}
	if len(kept) == 0 {
		return &slimResult{Nodes: args.Nodes}
	}
	return &slimResult{Nodes: slimNodes{kept}, FailedNodes: failed}
}

func prioritizeSlim(args *slimArgs) extender.HostPriorityList {
	result := make(extender.HostPriorityList, 0, len(args.Nodes.Items))
	for _, node := range args.Nodes.Items {
		spot := node.Metadata.Labels[label] == "spot"
		result = append(result, extender.HostPriority{Host: node.Metadata.Name, Score: score(spot)})
	}
	return result
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
