package stream

import "sync"

// memory remembers what is known of the last messages by their ids.
type memory struct {
	mu     sync.Mutex
	values map[string]known
	ids    []string // a ring, the oldest at next
	next   int
}

// newMemory makes a memory of so many ids.
func newMemory(size int) *memory {
	return &memory{values: map[string]known{}, ids: make([]string, size)}
}

// of is what is known of an id.
func (m *memory) of(id string) (value known, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, is = m.values[id]
	return value, is
}

// add remembers an id, and forgets the oldest one. What is known stays as it is.
func (m *memory) add(id string, value known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, is := m.values[id]; is {
		return
	}
	if oldest := m.ids[m.next]; oldest != "" {
		delete(m.values, oldest)
	}
	m.ids[m.next] = id
	m.values[id] = value
	m.next = (m.next + 1) % len(m.ids)
}
