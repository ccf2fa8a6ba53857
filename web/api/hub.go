package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

// maxWaiting is how many messages may wait for a subscriber. One that is further behind
// is disconnected; it reconnects and reads everything anew.
const maxWaiting = 64

// hub sends events to subscribers. It polls the system only while there are any.
type hub struct {
	api    *api
	glance *glance

	mu  sync.Mutex // guards what follows
	now *broadcast // nil: there is no follower
}

// subscriber is a client that gets events.
type subscriber struct {
	of     *broadcast
	admin  bool
	scoped bool // its key is for some apps: it is not told the names of others
	queue  chan []byte
	lost   chan struct{} // is closed when it is too far behind
	cut    bool          // lost is closed
}

// enter adds a subscriber; nil where there are too many.
func (h *hub) enter(caller auth.Caller) *subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		h.now = begin(h.api, h.glance)
	}
	return h.now.enter(caller)
}

// leave removes a subscriber. After the last one nothing is polled.
func (h *hub) leave(s *subscriber) {
	h.mu.Lock()
	empty := s.of.leave(s)
	if empty {
		h.now = nil
	}
	h.mu.Unlock()
	if empty {
		s.of.end()
	}
}

// broadcast looks at the system for subscribers, from the first one's coming to the last
// one's leaving.
type broadcast struct {
	api     *api
	cancel  context.CancelFunc
	lookers sync.WaitGroup

	mu          sync.Mutex // guards what follows
	subscribers map[*subscriber]struct{}
	catalog     *serving.Catalog   // as subscribers know it
	replicas    map[string]Replica // the same, by id
}

func begin(a *api, glance *glance) *broadcast {
	ctx, cancel := context.WithCancel(context.Background())
	s := &broadcast{api: a, cancel: cancel, subscribers: map[*subscriber]struct{}{}, catalog: a.Store.Catalog(), replicas: map[string]Replica{}}
	for _, r := range a.measured() {
		s.replicas[r.ID] = r
	}
	for _, look := range []func(context.Context){s.watchCatalog, s.lookOften, s.followNews, (&changes{broadcast: s, glance: glance}).follow} {
		s.lookers.Go(func() { look(ctx) })
	}
	return s
}

func (s *broadcast) end() {
	s.cancel()
	s.lookers.Wait()
}

func (s *broadcast) enter(caller auth.Caller) *subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.subscribers) == maxSubscribers {
		return nil
	}
	one := &subscriber{
		of: s, admin: caller.Role.Covers(serving.RoleAdmin), scoped: len(caller.Apps) > 0,
		queue: make(chan []byte, maxWaiting), lost: make(chan struct{}),
	}
	one.tell(event("hello", hello{Me: s.api.me(caller), Revision: s.catalog.Revision}))
	s.subscribers[one] = struct{}{}
	return one
}

// leave says whether that was the last one.
func (s *broadcast) leave(one *subscriber) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscribers, one)
	return len(s.subscribers) == 0
}

// tell has a message wait for the subscriber, and cuts it off where too many do.
func (one *subscriber) tell(message []byte) {
	if one.cut {
		return
	}
	select {
	case one.queue <- message:
	default:
		one.cut = true
		close(one.lost)
	}
}

// say tells all subscribers, but of the audit log those who may read it. s.mu is held.
func (s *broadcast) say(topic string, n notice) {
	if len(n.Changed) > maxNamed {
		n.Changed = nil
	}
	named, unnamed := event(topic, n), event(topic, notice{Revision: n.Revision})
	for one := range s.subscribers {
		switch {
		case topic == "audit" && !one.admin:
		case one.scoped:
			one.tell(unnamed)
		default:
			one.tell(named)
		}
	}
}

// commentEvery keeps proxies from taking a quiet stream for a dead one.
const commentEvery = 15 * time.Second

// followEvents sends events to the client until it leaves.
func (l *live) followEvents(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		newStream(w, "text/event-stream")
		return nil
	}
	caller := auth.Of(r.Context())
	s := l.hub.enter(caller)
	if s == nil {
		return rest.Later(http.StatusServiceUnavailable, "too_many", fmt.Sprintf("%d clients already follow events; try again later", maxSubscribers))
	}
	defer l.hub.leave(s)
	out := newStream(w, "text/event-stream")
	comment, check, end := time.NewTicker(commentEvery), time.NewTicker(checkEvery), time.NewTimer(streamLasts)
	defer comment.Stop()
	defer check.Stop()
	defer end.Stop()
	for {
		piece := []byte(":\n\n")
		select {
		case <-r.Context().Done():
			return nil
		case <-l.over:
			return nil
		case <-s.lost:
			return nil
		case <-end.C:
			return nil
		case <-check.C:
			if !l.holds(caller) {
				return nil
			}
			continue
		case <-comment.C:
		case piece = <-s.queue:
		}
		if out.send(piece) != nil {
			return nil // it left
		}
	}
}
