package rollout

import "github.com/topsail-serving/topsail/serving"

// uniform is a number between 0 and 1, without both, that depends on a user and a version
// alone: FNV-1a, whose bits are then mixed as MurmurHash3 does at its end.
func uniform(user uint64, id serving.ModelID) float64 {
	h := fnv1a(fnv1a(user, id.Model), id.Version)
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return (float64(h>>11) + 0.5) / (1 << 53)
}

func hash(text string) uint64 {
	const offset = 14695981039346656037
	return fnv1a(offset, text)
}

// fnv1a goes on hashing with a text and the zero byte that ends it.
func fnv1a(h uint64, text string) uint64 {
	const prime = 1099511628211
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	return h * prime
}
