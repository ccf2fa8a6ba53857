package rest

import (
	"encoding/json"

	"github.com/topsail-serving/topsail/internal/schema"
)

// Patch is a JSON merge patch, as RFC 7396 has it.
type Patch struct{ members map[string]any }

// ReadPatch reads a patch of the document that like points to.
func ReadPatch(text []byte, like any) (Patch, error) {
	tree, err := parse(text)
	if err != nil {
		return Patch{}, err
	}
	members, ok := tree.(map[string]any)
	if !ok {
		return Patch{}, Invalid("a patch must be a JSON object with the members to change")
	}
	return Patch{members}, fill(&schema.Decoder{Partial: true}, tree, like)
}

// Apply puts the document with the patch applied into another one.
func (p Patch) Apply(document, into any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	tree, err := parse(text)
	if err != nil {
		return err
	}
	return fill(&schema.Decoder{}, schema.Merge(tree, p.members), into)
}
