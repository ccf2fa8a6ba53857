package manage

import (
	"testing"

	"github.com/topsail-serving/topsail/web/api"
)

// TestOfPools: a version without a ready replica is an alarm, but not while its first ones start.
func TestOfPools(t *testing.T) {
	replica := func(state string, restarts int) []api.Replica {
		return []api.Replica{{Model: "m", Version: "1", State: state, Restarts: restarts}, {Model: "m", Version: "2", State: "starting"}}
	}
	pool := api.Pool{Model: "m", Version: "1", Desired: 2}
	cannot := pool
	cannot.Problem = true
	for _, tt := range []struct {
		pool     api.Pool
		replicas []api.Replica
		want     string
	}{
		{pool, nil, "m:1 has no ready replica, of 2 wanted"},
		{pool, replica("failed", 0), "m:1 has no ready replica, of 2 wanted"},
		{pool, replica("starting", 1), "m:1 has no ready replica, of 2 wanted"},
		{pool, replica("starting", 0), ""},
		{cannot, replica("starting", 0), "m:1 has 0 of 2 replicas, and cannot be scaled as decided"},
		{api.Pool{Model: "m", Version: "1"}, nil, ""},
	} {
		said := ""
		for _, a := range ofPools([]api.Pool{tt.pool}, tt.replicas) {
			said += a.Detail
		}
		if said != tt.want {
			t.Errorf("%+v with %+v: %q, want %q", tt.pool, tt.replicas, said, tt.want)
		}
	}
}
