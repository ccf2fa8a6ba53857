package consulregistry

// index is where a blocking query goes on; 0 asks at once.
type index uint64

// follow goes on from the index of an answer, by Consul's rules: it says whether
// that went back, after which everything may be different, and it is never 0, with
// which the next query would not block.
func (i *index) follow(answered uint64) (back bool) {
	if back = answered < uint64(*i); back {
		*i = 0
		return true
	}
	*i = index(max(answered, 1))
	return false
}
