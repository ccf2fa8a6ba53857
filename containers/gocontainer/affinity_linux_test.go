package gocontainer

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// A worker computes on the CPUs of its place among those of its stage, and the rest of the program on any.
func TestWorkersRunOnTheirCPUs(t *testing.T) {
	var usable unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &usable))
	last := -1
	for cpu := range 1024 {
		if usable.IsSet(cpu) {
			last = cpu
		}
	}
	found := make(chan unix.CPUSet)
	go func() {
		var set unix.CPUSet
		if err := pin([]int{last}); err == nil {
			_ = unix.SchedGetaffinity(0, &set)
		}
		found <- set
	}()
	if set := <-found; set.Count() != 1 || !set.IsSet(last) {
		t.Errorf("it runs on %d CPUs, want CPU %d alone", set.Count(), last)
	}
	var after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	if after != usable {
		t.Error("the rest of the program runs on other CPUs than before")
	}

	stage := serving.Stage{CPUs: []int{4, 5, 6}, PerWorker: 2}
	for i, want := range [][]int{{4, 5}, {6, 4}, {5, 6}} {
		if got := stage.CPUsOf(i); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("worker %d has the CPUs %v, want %v", i, got, want)
		}
	}
	err := ServePipeline(context.Background(), Config{}, Stage{Stage: serving.Stage{Name: "a", CPUs: []int{1023}}})
	if err == nil || !strings.Contains(err.Error(), `stage "a": run on the CPUs [1023]`) {
		t.Errorf("a CPU that is not there: %v", err)
	}
}
