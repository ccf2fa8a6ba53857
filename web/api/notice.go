package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// hello is what a stream of events begins with.
type hello struct {
	Me       Me     `json:"me"`
	Revision uint64 `json:"revision"`
}

// notice is what every other event says: that there is something else to be read.
type notice struct {
	Revision uint64   `json:"revision,omitempty"` // of the catalog
	Changed  []object `json:"changed,omitzero"`   // nil: anything may be another
}

// object is something that has a name.
type object struct {
	Kind string `json:"kind"` // "app", "model", "stream", "version" or "replica"
	Name string `json:"name"`
}

// maxNamed is how many objects an event names.
const maxNamed = 100

// event is a message of the stream; nil for what cannot be said.
func event(topic string, document any) []byte {
	text, err := json.Marshal(document)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", topic, text)
}

// changed are the objects of a catalog that are shown in another way than those of the one before, with
// models for their versions. A model is shown with the apps that ask it.
func changed(before, after *serving.Catalog) []object {
	list := []object{}
	models := map[string]bool{}
	for _, name := range union(before.Apps, after.Apps) {
		was, is := before.Apps[name], after.Apps[name]
		if was == is {
			continue
		}
		list = append(list, object{"app", name})
		for _, app := range []*serving.App{was, is} {
			if app == nil {
				continue
			}
			for _, model := range app.Asked() {
				models[model] = true
			}
		}
	}
	for _, name := range union(before.Models, after.Models) {
		if before.Models[name] != after.Models[name] {
			models[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		list = append(list, object{"model", name})
	}
	for _, name := range union(before.Streams, after.Streams) {
		if before.Streams[name] != after.Streams[name] {
			list = append(list, object{"stream", name})
		}
	}
	return list
}

// watchCatalog tells subscribers of changes until ctx ends.
func (s *broadcast) watchCatalog(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.api.Store.Watch(ctx, s.takeCatalog) // the store reports its own errors
		retry.Sleep(ctx, time.Second)
	}
}

func (s *broadcast) takeCatalog(cat *serving.Catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cat == nil || cat == s.catalog {
		return
	}
	before := s.catalog
	s.catalog = cat
	s.say("catalog", notice{cat.Revision, changed(before, cat)})
}

const (
	replicasEvery = 500 * time.Millisecond
	// figuresEach is how many looks there are for each that also minds what always changes, such
	// as latencies: with thousands of replicas that is much to read again.
	figuresEach = 4
)

// lookOften tells subscribers of replicas, and of traffic every second.
func (s *broadcast) lookOften(ctx context.Context) {
	tick := time.NewTicker(replicasEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.takeReplicas(s.api.measured(), n%figuresEach == 0)
		if n%2 == 0 {
			s.mu.Lock()
			s.say("traffic", notice{})
			s.mu.Unlock()
		}
	}
}

func (s *broadcast) takeReplicas(list []Replica, figures bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]Replica, len(list))
	for _, r := range list {
		next[r.ID] = r
	}
	var others []object
	for _, id := range union(s.replicas, next) {
		if !reflect.DeepEqual(steady(s.replicas[id]), steady(next[id])) {
			others = append(others, object{"replica", id})
		}
	}
	if len(others) == 0 && (!figures || reflect.DeepEqual(s.replicas, next)) {
		return
	}
	s.replicas = next
	s.say("replicas", notice{Changed: others})
}

// steady is the replica without the figures that change all the time.
func steady(r Replica) Replica {
	return Replica{
		ID: r.ID, Model: r.Model, Version: r.Version, State: r.State, Reason: r.Reason, Node: r.Node,
		Allocation: r.Allocation, PID: r.PID, Restarts: r.Restarts, Since: r.Since,
	}
}

const (
	newsEvery  = time.Second
	newsWithin = 5 * time.Second
	newsLength = maxNamed // that are looked at each time
)

// followNews tells subscribers of decisions and, if they are administrators, of changes.
func (s *broadcast) followNews(ctx context.Context) {
	var decisions, audit news
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		s.takeNews(ctx, "decision", &decisions, s.decisions)
		s.takeNews(ctx, "audit", &audit, s.audit)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// entry is one of a list that grows.
type entry struct {
	id    string
	about object
}

func (s *broadcast) decisions(ctx context.Context) (list []entry, err error) {
	all, err := s.api.Scheduler.Decisions(ctx, newsLength, serving.ModelID{})
	for _, d := range all {
		id := fmt.Sprint(d.ModelID, d.At.UnixNano(), d.Fence, d.From, d.To, d.Outcome)
		list = append(list, entry{id, object{"version", d.ModelID.String()}})
	}
	return list, err
}

func (s *broadcast) audit(ctx context.Context) (list []entry, err error) {
	all, err := s.api.Audit.AuditLog(ctx, serving.AuditQuery{Limit: newsLength})
	for _, a := range all {
		list = append(list, entry{a.ID, object{a.Kind, a.Name}})
	}
	return list, err
}

func (s *broadcast) takeNews(ctx context.Context, topic string, past *news, read func(context.Context) ([]entry, error)) {
	ctx, cancel := context.WithTimeout(ctx, newsWithin)
	defer cancel()
	list, err := read(ctx)
	if err != nil {
		return // what comes meanwhile comes when it can be read again
	}
	if fresh := past.of(list); len(fresh) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.say(topic, notice{Changed: fresh})
	}
}

// news finds what is new in a list that has the newest first. The first list is old.
type news struct{ seen map[string]bool }

// of is what the new ones are about, the oldest first.
func (past *news) of(list []entry) (fresh []object) {
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		if past.seen != nil && !past.seen[e.id] {
			fresh = append(fresh, e.about)
		}
		seen[e.id] = true
	}
	past.seen = seen
	slices.Reverse(fresh)
	return fresh
}
