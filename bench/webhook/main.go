// A mutating webhook in Go to compare with, idiomatic (net/http, encoding/json and the types of k8s.io), and the client
// that asks it and Wukong's alike, which is net/http as well, as in an API server.
//
//	webhook [CERTIFICATE KEY]                            serves, and prints the port it listens on:
//	    PUT /patches                                     the operations that each app's pods get, filled once
//	    POST /mutate                                     reads an AdmissionReview and its pod, finds the operations by
//	                                                     the pod's label app, answers them
//	webhook ask URL CONNECTIONS FIRST COUNT FILE         sends lines of the file from the FIRST on, so many at a time,
//	                                                     and prints the nanoseconds that each of them and all took
//
// It looks for no policy and decides nothing: it answers what it was told.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

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
	if len(os.Args) == 7 && os.Args[1] == "ask" {
		ask(os.Args[2], number(os.Args[3]), number(os.Args[4]), number(os.Args[5]), os.Args[6])
		return
	}
	http.HandleFunc("PUT /patches", fill)
	http.HandleFunc("POST /mutate", mutate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if len(os.Args) == 3 {
		// Without HTTP/2, as kubebuilder sets up webhooks.
		server := &http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
		check(server.ServeTLS(listener, os.Args[1], os.Args[2]))
	}
	check(http.Serve(listener, nil))
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
	check(err)
	kind := admission.PatchTypeJSONPatch
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &kind}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	check(json.NewEncoder(w).Encode(review))
}

// ---- the client

func ask(url string, connections, first, count int, file string) {
	bodies := lines(file)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		MaxIdleConnsPerHost: connections,
	}}
	took := make([]int64, count)
	send := func(body []byte) {
		request, err := http.NewRequest("POST", url, bytes.NewReader(body))
		check(err)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		check(err)
		text, err := io.ReadAll(response.Body)
		check(err)
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			panic(fmt.Sprint(response.Status, " ", string(text)))
		}
	}
	var opened, done sync.WaitGroup
	start := make(chan struct{})
	for worker := range connections {
		opened.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			send(bodies[first]) // opens a connection, which is kept; not counted
			opened.Done()
			<-start
			for index := worker; index < count; index += connections {
				began := time.Now()
				send(bodies[(first+index)%len(bodies)])
				took[index] = time.Since(began).Nanoseconds()
			}
		}()
	}
	opened.Wait()
	began := time.Now()
	close(start)
	done.Wait()
	elapsed := time.Since(began).Nanoseconds()
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"elapsed": elapsed, "took": took}))
}

func lines(name string) (found [][]byte) {
	file, err := os.Open(name)
	check(err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		found = append(found, bytes.Clone(scanner.Bytes()))
	}
	check(scanner.Err())
	return found
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
