package custom

import (
	"encoding/json"
	"slices"

	"topsail/gateway/selection"
	"topsail/serving"
)

// inputJSON is an input as clients write it.
func inputJSON(in serving.Input) json.RawMessage {
	switch in.Type {
	case serving.Strings:
		text, _ := json.Marshal(string(in.Data)) // cannot fail on a string
		return text
	case serving.Bytes:
		text, _ := json.Marshal(in.Data) // base64
		return text
	case 0:
		return nil
	}
	text, err := serving.AppendJSON(nil, serving.Value{DType: in.Type.DType(), Shape: []int{in.Len()}, Data: in.Data})
	if err != nil { // a number that JSON cannot carry
		return nil
	}
	return text
}

// sorted sorts candidates as policies want them, and says where each was.
func sorted(candidates []selection.Candidate) (places []int) {
	type placed struct {
		selection.Candidate
		at int
	}
	all := make([]placed, len(candidates))
	for i, c := range candidates {
		all[i] = placed{c, i}
	}
	slices.SortFunc(all, func(a, b placed) int { return a.ModelID.Compare(b.ModelID) })
	for i, c := range all {
		candidates[i], places = c.Candidate, append(places, c.at)
	}
	return places
}
