package serving

import (
	"crypto/rand"
	"strings"
)

// Definition names the present form of a model version: the version and its generation. Answers
// belong to a definition, and so does everything that is kept of them.
type Definition struct {
	ModelID
	Generation string `json:"generation,omitempty"`
}

// Definition is the present form of the version, wherever it runs.
func (v *Version) Definition() Definition { return Definition{v.ModelID, v.Generation} }

// Defines says whether d is the present form of v, as far as it says.
func (d Definition) Defines(v *Version) bool {
	return d.ModelID == v.ModelID && (d.Generation == "" || d.Generation == v.Generation)
}

// NewGeneration draws a generation: one that was never before, in any catalog, whatever
// was deleted or restored since.
func NewGeneration() string { return strings.ToLower(rand.Text()[:generationLength]) }

// generationLength is in characters of 5 bits: two of a version's generations are the same
// once in 2^60 pairs.
const generationLength = 12

// MaxGeneration bounds a generation, in bytes: that of a version and that of its host.
const MaxGeneration = 64

// Definitions are what the replicas that answer for v announce: those of its own, or of the hosts
// that load it, the one that serves first. What a host runs is part of the definition.
func (c *Catalog) Definitions(v *Version) []Definition {
	var held []Definition
	for _, id := range c.Hosts(v) {
		held = append(held, v.heldBy(c.Version(id)))
	}
	if len(held) == 0 {
		return []Definition{v.Definition()}
	}
	return held
}

// heldBy is what v is in replicas of a host.
func (v *Version) heldBy(host *Version) Definition {
	d := v.Definition()
	if host.Generation != "" { // of what was never registered there is none
		d.Generation += "@" + host.Generation
	}
	return d
}
