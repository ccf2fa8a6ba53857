package access

// Shown is the key that the values of the headers X-Api-Key and Authorization show, or
// nil. If both do, the first one counts.
func Shown(apiKey, authorization []byte) []byte {
	if len(apiKey) > 0 {
		return apiKey
	}
	return bearer(authorization)
}

// Find says whose key is shown, and what to know it by afterwards: a digest that only this process
// can compute.
func (k *Keys) Find(shown []byte) (name string, digest []byte, ok bool) {
	if k == nil || len(shown) < minKey || len(shown) > maxKey {
		return "", nil, false
	}
	d := k.salt.digest(shown)
	name, ok = k.file.get()[d]
	return name, d[:], ok
}

// Digests are those of the present keys of a name, as Find returns them.
func (k *Keys) Digests(name string) [][]byte {
	if k == nil {
		return nil
	}
	var digests [][]byte
	for d, of := range k.file.get() {
		if of == name {
			digests = append(digests, d[:])
		}
	}
	return digests
}
