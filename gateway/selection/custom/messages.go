package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// maxState bounds the state that a model keeps, in bytes.
	maxState = 256 << 10
	// maxReply bounds what it says.
	maxReply = 1 << 20
	// combineFallback says that the fallback combines what the model selected.
	combineFallback = "fallback"
)

// request is what the model gets.
type request struct {
	Op    string          `json:"op"` // "select", "answer", "combine" or "train"
	App   string          `json:"app"`
	State json.RawMessage `json:"state"` // what it last returned; null at first
	about
	Budget     int64       `json:"budget_micros,omitempty"`
	Candidates []candidate `json:"candidates,omitempty"`

	// How far a query is.
	Elapsed *int64   `json:"elapsed_micros,omitempty"` // since "select"
	Left    *int64   `json:"left_micros,omitempty"`    // until the answer must leave
	Answers []answer `json:"answers,omitzero"`         // what has come, in the order of the plan
	Awaited []named  `json:"awaited,omitzero"`         // who is asked and silent
	Next    []named  `json:"next,omitzero"`            // who may be asked, the next one first

	Feedback *feedback `json:"feedback,omitempty"`
}

// about is what a query is about.
type about struct {
	User    string          `json:"user,omitempty"`
	Context string          `json:"context,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

type named struct {
	Model   string `json:"model"`
	Version string `json:"version"`
}

type candidate struct {
	Model   string  `json:"model"`
	Version string  `json:"version"`
	Ready   bool    `json:"ready"`
	Cost    float64 `json:"cost"`
	Median  int64   `json:"median_micros"`
	P95     int64   `json:"p95_micros"`
}

type answer struct {
	Model      string          `json:"model"`
	Version    string          `json:"version"`
	Output     json.RawMessage `json:"output,omitempty"`
	Outputs    json.RawMessage `json:"outputs,omitempty"` // all of them by name, of a model that names them
	Confidence *float64        `json:"confidence,omitempty"`
	Qualifiers json.RawMessage `json:"qualifiers,omitempty"`
	Failure    string          `json:"failure,omitempty"`
	Loss       *float64        `json:"loss,omitempty"`         // in feedback, where it is known
	After      *int64          `json:"after_micros,omitempty"` // since "select"
	New        bool            `json:"new,omitempty"`          // it was not told of before
}

type feedback struct {
	Label   json.RawMessage `json:"label,omitempty"`
	Loss    float64         `json:"loss"`
	Answers []answer        `json:"answers"`
}

// selected, decided and trained are what the model says.
type selected struct {
	Ask     []string `json:"ask"`     // models as they were offered, or "model:version"; the most important first
	First   int      `json:"first"`   // how many of them are asked at once; 0: all
	Answers bool     `json:"answers"` // it wants to be told of answers as they come
	Combine string   `json:"combine"` // "" or "fallback"
}

type decided struct {
	Output     json.RawMessage `json:"output"`      // the answer; or
	Model      string          `json:"model"`       // whose output is the answer, named as above
	Confidence float64         `json:"confidence"`  // may be left out
	Next       int             `json:"next"`        // to an answer: how many more models to ask
	Wait       int64           `json:"wait_micros"` // to an answer: when to be told so far though nothing comes
}

// finishes says whether it is meant as the answer.
func (d *decided) finishes() bool {
	return d.Model != "" || len(d.Output) > 0 && string(d.Output) != "null"
}

type trained struct {
	State json.RawMessage `json:"state"`
}

// ask asks the model, within the limit.
func (p *Policy) ask(limit time.Duration, r *request, reply any) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	said, err := p.asker.Ask(ctx, p.spec.Model, text)
	if err != nil {
		return err
	}
	if len(said) > maxReply {
		return fmt.Errorf("the policy's model answered with %d bytes: at most %d are accepted", len(said), maxReply)
	}
	return json.Unmarshal(said, reply)
}

func (p *Policy) request(op string, s *selection.State) *request {
	r := &request{Op: op, App: p.app}
	if s != nil {
		r.State = s.Blob
	}
	return r
}

func (p *Policy) selectRequest(s *selection.State, q *selection.Query, candidates []selection.Candidate, offered []int) *request {
	r := p.request("select", s)
	r.about, r.Budget = about{q.User, q.Context, inputJSON(q.Input)}, q.Budget.Microseconds()
	for _, i := range offered {
		c := &candidates[i]
		r.Candidates = append(r.Candidates, candidate{c.Model, c.Version, c.Ready, c.Cost, c.Median.Microseconds(), c.P95.Microseconds()})
	}
	return r
}

// answerRequest tells of a query on its way.
func (p *Policy) answerRequest(op string, s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) *request {
	g := plan.Own.(*progress)
	r := p.request(op, s)
	elapsed, remaining := at.Elapsed.Microseconds(), (at.Budget - at.Elapsed).Microseconds()
	r.about, r.Elapsed, r.Left = g.query, &elapsed, &remaining
	r.Answers, r.Awaited, r.Next = []answer{}, []named{}, []named{}
	for i := range answers {
		id, known := plan.Asks[i].ID, &g.known[i]
		switch {
		case !known.come && i < g.open:
			r.Awaited = append(r.Awaited, named{id.Model, id.Version})
		case !known.come:
			r.Next = append(r.Next, named{id.Model, id.Version})
		default:
			after := known.after.Microseconds()
			a := answer{Model: id.Model, Version: id.Version, After: &after, New: known.fresh}
			if out := answers[i].Output; out != nil {
				a.Output, a.Outputs, a.Confidence, a.Qualifiers = out.JSON, out.NamedJSON, out.Confidence, out.QualifiersJSON
			}
			if answers[i].Failure != nil {
				a.Failure = answers[i].Failure.Explain()
			}
			r.Answers = append(r.Answers, a)
		}
	}
	return r
}

func (p *Policy) trainRequest(s *selection.State, f *selection.Feedback) *request {
	r := p.request("train", s)
	r.User, r.Input = f.User, inputJSON(f.Input)
	r.Feedback = &feedback{Loss: clip(f.Loss)}
	if f.Label != nil {
		r.Feedback.Label = f.Label.JSON
	}
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		a := answer{Model: o.Model, Version: o.Version}
		if o.Output != nil {
			a.Output, a.Outputs = o.Output.JSON, o.Output.NamedJSON
		}
		if o.Judged {
			loss := clip(o.Loss)
			a.Loss = &loss
		}
		r.Feedback.Answers = append(r.Feedback.Answers, a)
	}
	return r
}

// clip is a loss from 0 to 1, which JSON can carry; NaN is 1.
func clip(loss float64) float64 {
	if loss < 1 {
		return max(loss, 0)
	}
	return 1
}

// plan is what the model wants asked, at the most so many (0: all), if all of it can be.
func (s *selected) plan(candidates []selection.Candidate, offered []int, most int, plan *selection.Plan) bool {
	if s.Combine != "" && s.Combine != combineFallback || len(s.Ask) > len(offered) {
		return false
	}
	for _, name := range s.Ask {
		i := slices.IndexFunc(offered, func(at int) bool { return names(name, candidates[at].ModelID) })
		if i < 0 || slices.ContainsFunc(plan.Asks, func(a selection.Ask) bool { return a.Candidate == offered[i] }) {
			return false
		}
		plan.Add(offered[i], &candidates[offered[i]], 1, 0)
	}
	if most > 0 {
		plan.Asks = plan.Asks[:min(most, len(plan.Asks))]
	}
	if plan.Now = len(plan.Asks); s.First > 0 && s.Answers {
		plan.Now = min(s.First, plan.Now)
	}
	return len(plan.Asks) > 0
}

// verdict is what the model makes of the answers, if it can be.
func (d *decided) verdict(plan *selection.Plan, answers []selection.Answer) (selection.Verdict, bool) {
	v := selection.Verdict{Confidence: min(max(d.Confidence, 0), 1)}
	if d.Model != "" {
		for i := range answers {
			if names(d.Model, plan.Asks[i].ID) && answers[i].Output != nil {
				v.Output, v.Model = answers[i].Output, plan.Asks[i].ID
				return v, true
			}
		}
		return v, false
	}
	if !d.finishes() {
		return v, false
	}
	out, err := serving.NewOutput(serving.Value{DType: serving.JSON, Data: d.Output})
	v.Output = out
	return v, err == nil
}
