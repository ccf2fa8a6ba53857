package clipper

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
)

// TestManyClientsChangeTheSameApps: of 200 at once, each has its own model to link to
// the one app, and all fight over one other app and one version.
func TestManyClientsChangeTheSameApps(t *testing.T) {
	store, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h := handler(store, nobody)
	post(h, "add_app", `{"name":"app","input_type":"d","default_output":"0","latency_slo_micros":20000}`)
	const clients = 200
	var all sync.WaitGroup
	var mu sync.Mutex
	won := map[string]int{}
	note := func(name, body string) {
		status, text := post(h, name, body)
		mu.Lock()
		defer mu.Unlock()
		if status != 200 && status != 400 {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if status == 200 {
			won[name]++
		}
	}
	for i := range clients {
		all.Go(func() {
			own := fmt.Sprintf("m-%d", i)
			note("add_model", with(newModel, `"q"`, `"`+own+`"`))
			note("add_model_links", `{"app_name":"app","model_names":["`+own+`"]}`)
			note("set_model_version", newModel)
			if i%2 == 0 {
				note("delete_model_links", `{"app_name":"app","model_names":["`+own+`"]}`)
			}
			note("add_app", `{"name":"other","input_type":"d","default_output":"0","latency_slo_micros":20000}`)
			note("delete_app", `{"name":"other"}`)
		})
	}
	all.Wait()
	if won["add_model"] != clients || won["add_model_links"] != clients || won["delete_model_links"] != clients/2 {
		t.Errorf("made %v", won)
	}
	cat := store.Catalog()
	left := won["add_app"] - won["delete_app"] // of the other app
	if there := cat.Apps["other"] != nil; left != 0 && left != 1 || there != (left == 1) {
		t.Errorf("the other app was made %d times and deleted %d times; it exists: %v", won["add_app"], won["delete_app"], there)
	}
	var want []string
	for i := 1; i < clients; i += 2 {
		want = append(want, fmt.Sprintf("m-%d", i))
	}
	got := slices.Sorted(slices.Values(cat.Apps["app"].Models))
	if slices.Sort(want); !slices.Equal(got, want) || len(cat.Models) != clients {
		t.Errorf("linked %v of %d models", got, len(cat.Models))
	}
}

// TestTwoProcesses: handlers that know nothing of each other share a store.
func TestTwoProcesses(t *testing.T) {
	store := having(t)
	var all sync.WaitGroup
	made := make(chan int, 100)
	for range 10 {
		h := handler(store, nobody)
		for range 10 {
			all.Go(func() {
				status, _ := post(h, "add_model", newModel)
				made <- status
			})
		}
	}
	all.Wait()
	close(made)
	wins := 0
	for status := range made {
		if status == 200 {
			wins++
		}
	}
	if wins != 1 || store.Catalog().Version(serving.ModelID{Model: "q", Version: "1"}) == nil {
		t.Errorf("%d made the same version", wins)
	}
}
