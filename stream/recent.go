package stream

// recent is a bounded memory of the ids that got results lately, each with the place of
// its record.
type recent struct {
	places map[string]string
	ids    []string // a ring, the oldest at next
	next   int
}

func newRecent(size int) *recent {
	return &recent{places: map[string]string{}, ids: make([]string, size)}
}

// place is where the record of the id was.
func (r *recent) place(id string) (place string, known bool) {
	place, known = r.places[id]
	return place, known
}

// add remembers an id that is not known, and forgets the oldest one.
func (r *recent) add(id, place string) {
	if oldest := r.ids[r.next]; oldest != "" {
		delete(r.places, oldest)
	}
	r.ids[r.next] = id
	r.places[id] = place
	r.next = (r.next + 1) % len(r.ids)
}
