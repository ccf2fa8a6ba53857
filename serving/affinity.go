package serving

// MaxOwners bounds the owners of an affinity.
const MaxOwners = 64

// Affinity is what queries have in common that had better go to the same replicas of a model, as
// far as that can be.
type Affinity struct {
	Key    string // empty: the query goes to any replica
	Owners int    // how many replicas the key has; 0: as many as its queries need
}
