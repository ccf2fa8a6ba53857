package api

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
)

// maxWaiting is how many messages may wait for a subscriber. One that is further behind
// is disconnected; it reconnects and gets everything anew.
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
	of    *broadcast
	class *class
	admin bool
	queue chan []byte
	lost  chan struct{} // is closed when it is too far behind
	cut   bool          // lost is closed
}

// class is the subscribers with keys for the same apps. They get the same messages,
// but for what is for administrators.
type class struct {
	view    view // of the catalog that was sent to them; all see what a viewer sees
	members int
	whole   []byte // all of the catalog as a message; nil: not made yet
}

// enter adds a subscriber, which first gets the present state; nil where there are too many.
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
	classes     map[string]*class
	catalog     *serving.Catalog
	replicas    map[string]Replica // by id, as subscribers know them
}

func begin(a *api, glance *glance) *broadcast {
	ctx, cancel := context.WithCancel(context.Background())
	s := &broadcast{
		api: a, cancel: cancel, subscribers: map[*subscriber]struct{}{}, classes: map[string]*class{},
		catalog: a.Store.Catalog(), replicas: byID(a.measured()),
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
	c := s.class(caller.Apps)
	c.members++
	one := &subscriber{
		of: s, class: c, admin: caller.Role.Covers(serving.RoleAdmin),
		queue: make(chan []byte, maxWaiting), lost: make(chan struct{}),
	}
	if c.whole == nil {
		c.whole = event("catalog", c.view.whole())
	}
	one.tell(event("hello", hello{Me: s.api.me(caller), Revision: s.catalog.Revision}))
	one.tell(c.whole)
	one.tell(event("replicas", replicasEvent{Whole: true, Changed: c.view.replicas(inOrder(s.replicas)), Gone: []string{}}))
	s.subscribers[one] = struct{}{}
	return one
}

// class finds or makes the class of keys for some apps.
func (s *broadcast) class(apps []string) *class {
	apps = slices.Sorted(slices.Values(apps))
	name := strings.Join(apps, "/") // which no app has in its name
	c := s.classes[name]
	if c == nil {
		c = &class{view: viewOf(auth.Caller{Role: serving.RoleViewer, Apps: apps}, s.catalog)}
		s.classes[name] = c
	}
	return c
}

// leave says whether that was the last one.
func (s *broadcast) leave(one *subscriber) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscribers, one)
	one.class.members--
	for name, c := range s.classes {
		if c.members == 0 {
			delete(s.classes, name)
		}
	}
	return len(s.subscribers) == 0
}

// tell has a message wait for the subscriber, and cuts it off where too many do. What is
// nil is not told.
func (one *subscriber) tell(message []byte) {
	if message == nil || one.cut {
		return
	}
	select {
	case one.queue <- message:
	default:
		one.cut = true
		close(one.lost)
	}
}

// say sends all subscribers what write writes for their class, once for each. s.mu is held.
func (s *broadcast) say(write func(view) []byte) {
	written := map[*class][]byte{}
	for one := range s.subscribers {
		message, ok := written[one.class]
		if !ok {
			message = write(one.class.view)
			written[one.class] = message
		}
		one.tell(message)
	}
}

// hello is what a stream of events begins with.
type hello struct {
	Me       Me     `json:"me"`
	Revision uint64 `json:"revision"`
}
