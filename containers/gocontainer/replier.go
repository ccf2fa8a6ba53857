package gocontainer

import (
	"cmp"
	"errors"
	"slices"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Unavailable is a Result's error that is not the model's answer: what answers for the container cannot be
// reached, or is overloaded. Another replica may be asked.
type Unavailable struct {
	Why  string
	Full bool // overloaded
}

func (u Unavailable) Error() string { return u.Why }

// status is how a query ends whose error it is.
func (u Unavailable) status() rpc.Status {
	if u.Full {
		return rpc.StatusFull
	}
	return rpc.StatusContainer
}

// BadInput is a Result's error for an input that the model does not take. Its client is told so.
type BadInput string

func (b BadInput) Error() string { return string(b) }

// replier turns the entries of a PREDICT into queries, and results into those of a REPLY.
type replier struct {
	conn    *rpc.Conn
	outputs []serving.Tensor // of the signature; none: whatever comes
}

func newReplier(conn *rpc.Conn, cfg *Config) replier {
	return replier{conn: conn, outputs: cfg.Signature.OutputTensors()}
}

// newQuery is the query of an entry, unless the status says that it is refused, and why.
func newQuery(ask *rpc.Ask, one bool) (q Query, status rpc.Status, why string) {
	if ask.Budget == 0 {
		return q, rpc.StatusExpired, "the deadline passed before the batch"
	}
	values, err := rpc.ParsePayload(ask.Payload)
	if err != nil || len(values) == 0 || one && len(values) != 1 {
		return q, rpc.StatusBadInput, "this container takes one value per input"
	}
	return Query{Inputs: values, User: string(ask.User), Context: string(ask.Context), Left: ask.Budget}, rpc.StatusOK, ""
}

// fill makes the answer that of a result. It returns payload with what the answer points into.
func (w *replier) fill(r *Result, a *rpc.Answer, payload []byte) []byte {
	if r.Err != nil {
		a.Status, a.Message = rpc.StatusModelError, []byte(r.Err.Error())
		if u, ok := errors.AsType[Unavailable](r.Err); ok {
			a.Status = u.status()
		}
		if _, bad := errors.AsType[BadInput](r.Err); bad {
			a.Status = rpc.StatusBadInput
		}
		// An older sidecar does not know of dropped inputs.
		if _, dropped := errors.AsType[Drop](r.Err); dropped && w.conn.Peer().Features&rpc.FeatureStages != 0 {
			a.Status = rpc.StatusDropped
		}
		return payload
	}
	payload = rpc.AppendPayload(payload, w.sorted(r)...)
	a.Payload = payload
	if r.Confidence != nil {
		a.Confidence, a.HasConfidence = *r.Confidence, true
	}
	if len(r.Qualifiers) > 0 {
		a.Qualifiers = rpc.AppendPayload(nil, r.Qualifiers...)
	}
	return payload
}

// sorted are the outputs of a result, in the order of the signature as far as that has their names.
func (w *replier) sorted(r *Result) []serving.Value {
	if len(r.Outputs) == 0 {
		return []serving.Value{r.Output}
	}
	slices.SortStableFunc(r.Outputs, func(a, b serving.Value) int {
		return cmp.Compare(serving.Index(w.outputs, a.Name), serving.Index(w.outputs, b.Name))
	})
	return r.Outputs
}
