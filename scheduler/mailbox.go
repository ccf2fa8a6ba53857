package scheduler

import (
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// maxWakes bounds the wakes that wait for the loop; they are repeated.
const maxWakes = 10_000

// mailbox holds what watchers saw until the loop looks. Only the newest counts.
type mailbox struct {
	bell chan struct{} // rings when there is something

	mu   sync.Mutex // guards mail
	mail mail
}

// mail is what has come; a nil or false field has not.
type mail struct {
	catalog  *serving.Catalog
	replicas map[serving.Definition]int // ready ones
	wakes    map[serving.ModelID]struct{}
	hint     bool
}

func newMailbox() *mailbox { return &mailbox{bell: make(chan struct{}, 1)} }

func (b *mailbox) put(change func(*mail)) {
	b.mu.Lock()
	change(&b.mail)
	b.mu.Unlock()
	select {
	case b.bell <- struct{}{}:
	default: // it rings already
	}
}

// take empties the box.
func (b *mailbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.mail
	b.mail = mail{}
	return m
}

func (b *mailbox) putCatalog(c *serving.Catalog) { b.put(func(m *mail) { m.catalog = c }) }

func (b *mailbox) putHint() { b.put(func(m *mail) { m.hint = true }) }

func (b *mailbox) putReplicas(list []serving.Endpoint) {
	ready := readyByDefinition(list)
	b.put(func(m *mail) { m.replicas = ready })
}

func (b *mailbox) putWake(id serving.ModelID) {
	b.put(func(m *mail) {
		if m.wakes == nil {
			m.wakes = map[serving.ModelID]struct{}{}
		}
		if len(m.wakes) < maxWakes {
			m.wakes[id] = struct{}{}
		}
	})
}

func readyByDefinition(list []serving.Endpoint) map[serving.Definition]int {
	ready := map[serving.Definition]int{}
	for _, e := range list {
		if e.Ready {
			for _, d := range e.Models {
				ready[d]++
			}
		}
	}
	return ready
}
