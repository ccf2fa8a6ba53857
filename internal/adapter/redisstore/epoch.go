package redisstore

import (
	"encoding/json"
	"maps"
)

// epochHistory says how epochs follow each other, by the older one.
type epochHistory map[string]succession

// succession is the end of an epoch.
type succession struct {
	To   string `json:"to"`
	UpTo uint64 `json:"up_to,omitempty"` // the last revision that lives on; 0: all do
}

// leads says whether a catalog at p lives on in epoch to.
func (l epochHistory) leads(p position, to string) bool {
	end, ok := l[p.Epoch]
	if end.UpTo != 0 && p.Revision > end.UpTo {
		return false
	}
	for range l { // no loops forever
		if !ok || end.To == to {
			break
		}
		end, ok = l[end.To] // of a newer epoch, we would have its beginning: that lives on
	}
	return ok && end.To == to
}

// join is the history of epoch to, which ends two others: the known one, with its
// revisions up to upTo (0: all), and what Redis holds instead, all of it.
func join(known *snapshot, r *reading, to string, upTo uint64) epochHistory {
	l := epochHistory{}
	maps.Copy(l, r.epochHistory)
	maps.Copy(l, known.epochHistory)
	if r.at.Epoch != "" {
		l[r.at.Epoch] = succession{To: to}
	}
	l[known.at.Epoch] = succession{To: to, UpTo: upTo}
	return l
}

// fields are the names and values for the catalog's hash.
func (l epochHistory) fields() ([]any, error) {
	var fields []any
	for epoch, end := range l {
		b, err := json.Marshal(end)
		if err != nil {
			return nil, err
		}
		fields = append(fields, epochPrefix+epoch, b)
	}
	return fields, nil
}
