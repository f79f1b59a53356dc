// A mutating webhook in Go to compare with, idiomatic: net/http, encoding/json and the types of k8s.io.
//
//	PUT /patches   the operations that each app's pods get, filled once
//	POST /mutate   reads an AdmissionReview and its pod, finds the operations by the pod's label app, answers them
//
// It looks for no policy and decides nothing: it answers what it was told. Prints the port it listens on.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
)

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

var patches = map[string][]operation{}

func main() {
	http.HandleFunc("PUT /patches", fill)
	http.HandleFunc("POST /mutate", mutate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}

func fill(w http.ResponseWriter, r *http.Request) {
	if err := json.NewDecoder(r.Body).Decode(&patches); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func mutate(w http.ResponseWriter, r *http.Request) {
	var review admission.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	var pod core.Pod
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	patch, err := json.Marshal(patches[pod.Labels["app"]])
	if err != nil {
		panic(err)
	}
	kind := admission.PatchTypeJSONPatch
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &kind}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(err)
	}
}
