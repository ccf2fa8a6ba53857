package clipper

import (
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

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
