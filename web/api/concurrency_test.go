package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

// TestManyClientsChangeTheSameApps: 200 at once, in groups that share an app, read it,
// add one to its weight and put it back under the condition that nobody else has, and
// each links a model of its own to one app. No change is lost, and nothing fails but the
// conditions.
func TestManyClientsChangeTheSameApps(t *testing.T) {
	w := having(t)
	store, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer store.Close()
	w.keys = nil
	w.api.System.Store, w.api.Audit = store, store
	guard := auth.New(auth.Config{Catalog: store.Catalog, Hosts: []string{"example.com"}})
	served := New(w.api.System, guard, Options{})
	w.handler = guard.Handler(served)
	const clients, groups = 200, 8
	var models []string
	for i := range clients {
		models = append(models, fmt.Sprintf(`{"model":"m-%d","version":"1","input_type":"d","command":["m"]}`, i))
	}
	expect(t, w.ask("POST", "/catalog", `{"versions":[`+strings.Join(models, ",")+`]}`), 200)
	for i := range groups {
		expect(t, w.ask("POST", "/apps", fmt.Sprintf(`{"name":"counted-%d","input_type":"d","latency_slo_micros":1000,"weight":0}`, i)), 201)
	}
	expect(t, w.ask("POST", "/apps", `{"name":"linked","input_type":"d","latency_slo_micros":1000}`), 201)

	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range clients {
		all.Go(func() {
			model, counted := fmt.Sprintf("m-%d", i), fmt.Sprintf("counted-%d", i%groups)
			expect(t, w.ask("PUT", "/apps/linked/links/"+model, ""), 200)
			for status := 0; status != http.StatusOK; {
				read := w.ask("GET", "/apps/"+counted, "")
				var app serving.App
				if err := rest.Decode(read.Body.Bytes(), &app); err != nil {
					t.Error(err)
					return
				}
				method, body := "PATCH", fmt.Sprintf(`{"weight":%v}`, app.Weight+1)
				if i/groups%2 == 0 {
					method, body = "PUT", fmt.Sprintf(`{"name":%q,"input_type":"d","latency_slo_micros":1000,"weight":%v}`, counted, app.Weight+1)
				}
				answer := w.ask(method, "/apps/"+counted, body, "If-Match", read.Header().Get("ETag"))
				status = answer.Code
				mu.Lock()
				statuses[status]++
				mu.Unlock()
				if status != 200 && status != 412 {
					t.Errorf("%d %s", status, answer.Body)
					return
				}
			}
		})
	}
	all.Wait()
	cat := store.Catalog()
	for i := range groups {
		if got := cat.Apps[fmt.Sprintf("counted-%d", i)].Weight; got != clients/groups {
			t.Errorf("group %d counted to %v", i, got)
		}
	}
	if statuses[200] != clients {
		t.Errorf("the answers were %v", statuses)
	}
	if got := len(cat.Apps["linked"].Models); got != clients {
		t.Errorf("%d models are linked", got)
	}
}

// TestTwoProcesses: APIs that know nothing of each other share a store.
func TestTwoProcesses(t *testing.T) {
	w := having(t)
	var all sync.WaitGroup
	created := make(chan int, 100)
	for range 10 {
		guard := auth.New(auth.Config{Catalog: w.Catalog, Require: true})
		one := *w
		one.handler = guard.Handler(New(w.api.System, guard, Options{}))
		for j := range 10 {
			all.Go(func() {
				created <- one.ask("POST", "/apps", small).Code
				expect(t, one.ask("PATCH", "/apps/a", fmt.Sprintf(`{"cache":{"ttl_micros":%d}}`, j+1)), 200)
			})
		}
	}
	all.Wait()
	close(created)
	wins := 0
	for status := range created {
		switch status {
		case http.StatusCreated:
			wins++
		case http.StatusOK:
		default:
			t.Errorf("got %d", status)
		}
	}
	if wins != 1 || w.cat.Apps["c"] == nil || w.cat.Apps["c"].Origin != serving.FromAPI {
		t.Errorf("%d created the same app", wins)
	}
}
