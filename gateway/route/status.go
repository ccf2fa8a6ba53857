package route

import (
	"cmp"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Status is how a replica is doing, for people.
type Status struct {
	Replica   string
	Addr      string
	Connected bool
	Ejected   bool
	Models    []serving.Definition // ready ones
	InFlight  int
	Wait      time.Duration // as last reported
	Latency   time.Duration // moving average
}

// Replicas lists how all replicas are doing, by name.
func (t *Table) Replicas() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Status
	for _, r := range t.known {
		list = append(list, r.status())
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Replica, b.Replica) })
	return list
}

func (r *replica) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait, _ := r.load.waiting(serving.LowestPriority, time.Now())
	s := Status{
		Replica: r.endpoint.Replica, Addr: r.endpoint.Addr, Connected: r.conn != nil, Ejected: r.health.ejected(),
		InFlight: int(r.load.all()), Wait: wait, Latency: time.Duration(r.load.latency.value.Load()),
	}
	for _, a := range r.models {
		if a.State == rpc.StateReady {
			s.Models = append(s.Models, a.Definition())
		}
	}
	return s
}
