package custom

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
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
	case serving.Tensors:
		values, _ := rpc.ParsePayload(in.Data) // which the gateway made
		text, err := serving.AppendNamed(nil, values)
		if err != nil { // a number that JSON cannot carry
			return nil
		}
		return text
	case serving.Chat:
		return in.Data
	case 0:
		return nil
	}
	text, err := serving.AppendJSON(nil, serving.Value{DType: in.Type.DType(), Shape: []int{in.Len()}, Data: in.Data})
	if err != nil { // a number that JSON cannot carry
		return nil
	}
	return text
}

// sorted makes candidates, as policies want them, of those that a plan asks, and says
// where in it each is.
func sorted(plan *selection.Plan) (candidates []selection.Candidate, places []int) {
	for i := range plan.Asks {
		places = append(places, i)
	}
	slices.SortFunc(places, func(i, j int) int { return plan.Asks[i].ID.Compare(plan.Asks[j].ID) })
	for _, i := range places {
		candidates = append(candidates, selection.Candidate{ModelID: plan.Asks[i].ID, Ready: true, Cost: 1})
	}
	return candidates, places
}

// names says whether a name means a version: by its model, or as "model:version".
func names(name string, id serving.ModelID) bool {
	model, version, pinned := strings.Cut(name, ":")
	return model == id.Model && (!pinned || version == id.Version)
}
