package serving

import "time"

// Explanation says how an answer came about, where the client asks for it.
type Explanation struct {
	Policy     string
	Ended      string // why the policy decided when it did
	Confidence float64
	Elapsed    time.Duration // from receiving the query to the decision
	Budget     time.Duration // what there was
	Priority   int           // with which it was asked
	Models     []ExplainedModel
}

// ExplainedModel is what one model had to do with an answer.
type ExplainedModel struct {
	ModelID            // of an app, the model that decided its answer; empty: several, or none
	App         string // of a stage that asked one, else empty
	Generation  string // of the definition that was asked; not for clients
	Asked       bool   // else it was in reserve, or left out
	Shed        bool   // left out because capacity or time was short
	Shadow      bool   // asked for comparison only
	Cached      bool   // from the cache or from an equal query in flight
	Output      []byte // JSON; nil: none came in time
	Failure     string // why none came
	Probability float64
	Weight      float64
	Confidence  *float64
	Took        time.Duration // until its answer came; 0: it did not
}

// Timing says where the time of one query went: the way of a query through a gateway, as the times at which it passed its
// points. A time is zero where it did not pass, and none is before the one above it.
type Timing struct {
	Received time.Time
	Decoded  time.Time // its body was understood
	Selected time.Time // the model that decided the answer was chosen
	Looked   time.Time // the cache had been looked into
	Sent     time.Time // a replica was asked
	Heard    time.Time // it answered, or an equal query's answer came, or there was no more time
	Combined time.Time // the answer was made
	Encoded  time.Time

	Cache   string        // "hit", "joined" (to an equal query), "missed" or "off"
	Model   ModelID       // that decided the answer, or was to
	Replica string        // that was asked for it last
	Service time.Duration // what the model took as the replica says; 0: it does not
}

// TimedStage is a part of the time.
type TimedStage struct {
	Name string
	Took time.Duration
	Note string // for people; may be empty
}

// Stages are the stages that the query went through, in order. Together they took the
// whole time.
func (t *Timing) Stages() []TimedStage {
	stages, at := make([]TimedStage, 0, 8), t.Received
	upTo := func(name string, end time.Time, note string) {
		if !end.IsZero() {
			stages, at = append(stages, TimedStage{name, max(end.Sub(at), 0), note}), end
		}
	}
	upTo("decode", t.Decoded, "")
	upTo("select", t.Selected, "")
	upTo("cache", t.Looked, t.Cache)
	if started := t.started(); started.IsZero() {
		upTo("wait", t.Heard, "")
	} else {
		upTo("wait", started, "")
		upTo("model", t.Heard, t.Model.String()+" "+t.Replica)
	}
	upTo("combine", t.Combined, "")
	upTo("encode", t.Encoded, "")
	return stages
}

// started is when the model began, as far as is known: where the replica does not say
// what it took, when the replica was asked.
func (t *Timing) started() time.Time {
	if t.Service > 0 && t.Service <= t.Heard.Sub(t.Sent) {
		return t.Heard.Add(-t.Service)
	}
	return t.Sent
}
