// Package recent is a bounded memory.
package recent

// Memory remembers what was added last by its id. It is of one goroutine.
type Memory[V any] struct {
	values map[string]V
	ids    []string // a ring, the oldest at next
	next   int
}

// New makes a memory of so many ids.
func New[V any](size int) *Memory[V] {
	return &Memory[V]{values: map[string]V{}, ids: make([]string, size)}
}

// Of is what is known of an id.
func (m *Memory[V]) Of(id string) (value V, known bool) {
	value, known = m.values[id]
	return value, known
}

// Add remembers an id, and forgets the oldest one. What is known stays as it is.
func (m *Memory[V]) Add(id string, value V) {
	if _, known := m.values[id]; known {
		return
	}
	if oldest := m.ids[m.next]; oldest != "" {
		delete(m.values, oldest)
	}
	m.ids[m.next] = id
	m.values[id] = value
	m.next = (m.next + 1) % len(m.ids)
}
