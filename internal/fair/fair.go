// Package fair shares out a resource by weight, max-min: who asks for less than its share gets all that it asks
// for, and the others get what it leaves.
//
// It is start-time fair queueing (Goyal, Vin and Cheng, "Start-time fair queueing", 1996), with units of work that
// all cost the same and a credit for those that asked for less than their share: with it a burst is not held
// against an app that is quiet on the whole.
package fair

// Weight is what a weight counts as: between bounds that keep virtual time exact, and 1 where none is given.
func Weight(w float64) float64 {
	if !(w > 0) {
		return 1
	}
	return min(max(w, 0.01), 1000)
}

// Clock is the virtual time of one resource: a unit of work takes 1/weight of it. The zero Clock is ready for use.
type Clock struct{ now float64 }

// Share is what one of those that share the resource has had of it.
type Share struct {
	Weight float64 // as Weight gives it
	next   float64 // when its next unit of work is due, in virtual time
}

// Join makes s one of those that share: it has saved up nothing, and owes nothing.
func (c *Clock) Join(s *Share) { s.next = c.now }

// Wake is for a share that has work after it had none. It has then saved up at most so many units of work.
func (c *Clock) Wake(s *Share, credit int) {
	s.next = max(s.next, c.now-float64(credit)/s.Weight)
}

// Take counts a unit of work of s.
func (c *Clock) Take(s *Share) {
	c.now = max(c.now, s.next)
	s.next += 1 / s.Weight
}

// Due says whether the next unit of s is due before that of other (-1), with it (0) or after it (1).
func (s *Share) Due(other *Share) int {
	switch {
	case s.next < other.next:
		return -1
	case s.next > other.next:
		return 1
	}
	return 0
}

// Before is how many units of other are due before the next one of s but n, or with it.
func (s *Share) Before(n int, other *Share) int {
	ahead := s.next + float64(n)/s.Weight - other.next
	if ahead < 0 {
		return 0
	}
	return int(ahead*other.Weight) + 1
}
