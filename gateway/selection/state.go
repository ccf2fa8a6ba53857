package selection

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// State is what a policy has learned for one app, user and context. What makes one
// changes it until it is shared; from then on it is immutable. A zero field is left
// out of its stored form, so that fields can be added.
type State struct {
	Kind    string          `json:"kind"`
	Format  int             `json:"format"`            // of what the kind keeps in Models and Numbers
	Steps   float64         `json:"steps,omitempty"`   // pieces of feedback so far
	Loss    float64         `json:"loss,omitempty"`    // sum of the answers' losses over all Steps
	Models  []ModelState    `json:"models"`            // sorted by id
	Past    []PastModel     `json:"past,omitempty"`    // models that are not asked any more, the latest last
	Numbers []float64       `json:"numbers,omitempty"` // the kind's, beside those of the models
	Note    string          `json:"note,omitempty"`    // the kind's word for people
	Blob    json.RawMessage `json:"blob,omitempty"`    // of a custom policy
	Trained []int64         `json:"trained,omitempty"` // the newest queries that feedback was learned of, the oldest first
}

// ModelState is what is known of one model. Count, Sum, Weight and Vector are the
// kind's own; Asked and Loss are kept for every kind.
type ModelState struct {
	serving.ModelID
	Generation string    `json:"generation,omitempty"` // of the definition that it is known of
	Asked      float64   `json:"asked,omitempty"`      // pieces of feedback that judged it
	Loss       float64   `json:"loss,omitempty"`       // sum of its losses in them
	Count      float64   `json:"count,omitempty"`      // as Asked, perhaps discounted
	Sum        float64   `json:"sum,omitempty"`        // as Loss, perhaps discounted
	Weight     float64   `json:"weight,omitempty"`     // logarithmic where the kind multiplies weights
	Vector     []float64 `json:"vector,omitempty"`
}

// PastModel is what was known of a model when the app no longer asked it. Its Weight is against the one with which the
// kind would have taken it in then.
type PastModel struct {
	ModelState
	Left int64 `json:"left"` // when, in unix seconds
}

// Definition is what the entry is about.
func (m *ModelState) Definition() serving.Definition {
	return serving.Definition{ModelID: m.ModelID, Generation: m.Generation}
}

const (
	// MaxModels and MaxNumbers bound a state.
	MaxModels  = 4096
	MaxNumbers = 1 << 16
	// MaxPast and MaxPastNumbers bound what is kept of models that are not asked any more.
	MaxPast        = 32
	MaxPastNumbers = 1 << 14
	// maxTrained bounds the queries that a state remembers, to know feedback that
	// comes twice.
	maxTrained = 64
	maxBlob    = 1 << 20
)

// NewState makes a state of a kind with an entry for each model.
func NewState(kind string, models []serving.ModelID) *State {
	s := &State{Kind: kind, Format: 1, Models: make([]ModelState, 0, len(models))}
	for _, id := range models {
		s.Models = append(s.Models, ModelState{ModelID: id})
	}
	slices.SortFunc(s.Models, func(a, b ModelState) int { return a.ModelID.Compare(b.ModelID) })
	return s
}

// Clone is a copy that can be changed.
func (s *State) Clone() *State {
	c := *s
	c.Models = slices.Clone(s.Models)
	for i := range c.Models {
		c.Models[i].Vector = slices.Clone(c.Models[i].Vector)
	}
	c.Numbers, c.Trained = slices.Clone(s.Numbers), slices.Clone(s.Trained)
	return &c
}

// Find is the place of a model's entry, or -1. Of several versions it is the first.
func (s *State) Find(model string) int {
	i, _ := slices.BinarySearchFunc(s.Models, model, func(m ModelState, model string) int { return cmp.Compare(m.Model, model) })
	if i < len(s.Models) && s.Models[i].Model == model {
		return i
	}
	return -1
}

// FindVersion is the place of a version's entry, or -1.
func (s *State) FindVersion(id serving.ModelID) int {
	i, found := slices.BinarySearchFunc(s.Models, id, func(m ModelState, id serving.ModelID) int { return m.ModelID.Compare(id) })
	if !found {
		return -1
	}
	return i
}

// Places appends the places of the candidates' entries, by their models' names; -1
// where there is none. Both are sorted, so that it walks through them once.
func (s *State) Places(dst []int, candidates []Candidate) []int {
	at := 0
	for i := range candidates {
		for at < len(s.Models) && s.Models[at].Model < candidates[i].Model {
			at++
		}
		if at < len(s.Models) && s.Models[at].Model == candidates[i].Model {
			dst = append(dst, at)
		} else {
			dst = append(dst, -1)
		}
	}
	return dst
}

// Insert puts an entry into its place, or over the one of the same id.
func (s *State) Insert(m ModelState) {
	i, found := slices.BinarySearchFunc(s.Models, m.ModelID, func(e ModelState, id serving.ModelID) int { return e.ModelID.Compare(id) })
	if found {
		s.Models[i] = m
		return
	}
	s.Models = slices.Insert(s.Models, i, m)
}

// Learned says whether feedback of a query has been learned already.
func (s *State) Learned(query int64) bool { return query != 0 && slices.Contains(s.Trained, query) }

// Remember notes that feedback of a query has been learned.
func (s *State) Remember(query int64) {
	if query == 0 {
		return
	}
	if over := len(s.Trained) + 1 - maxTrained; over > 0 {
		s.Trained = append(s.Trained[:0:0], s.Trained[over:]...)
	}
	s.Trained = append(s.Trained, query)
}

// Encode is the stored form.
func (s *State) Encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// ErrCorrupt says that the stored bytes are not a state of the policy.
var ErrCorrupt = errors.New("the stored selection state is corrupt")

// Decode reads what Encode wrote, perhaps in an older or a newer release. Its error is
// ErrCorrupt.
func Decode(text []byte, kind string) (*State, error) {
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if s.Kind != kind {
		return nil, fmt.Errorf("%w: it is of policy %q, not %q", ErrCorrupt, s.Kind, kind)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return s, nil
}

func (s *State) check() error {
	if len(s.Models) > MaxModels || len(s.Numbers) > MaxNumbers || len(s.Trained) > maxTrained || len(s.Past) > MaxPast || len(s.Blob) > maxBlob {
		return errors.New("it is too large")
	}
	if !finite(s.Steps, s.Loss) || !finite(s.Numbers...) {
		return errors.New("it has numbers that are not finite")
	}
	for i := range s.Models {
		if i > 0 && s.Models[i-1].ModelID.Compare(s.Models[i].ModelID) >= 0 {
			return errors.New("its models are not in order")
		}
		if err := s.Models[i].check(); err != nil {
			return err
		}
	}
	for i := range s.Past {
		if err := s.Past[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *ModelState) check() error {
	switch {
	case !finite(m.Asked, m.Loss, m.Count, m.Sum, m.Weight) || !finite(m.Vector...):
		return fmt.Errorf("model %q has numbers that are not finite", strings.ToValidUTF8(m.Model, "?"))
	case len(m.Vector) > MaxNumbers:
		return fmt.Errorf("model %q has too many numbers", strings.ToValidUTF8(m.Model, "?"))
	}
	return nil
}

func finite(list ...float64) bool {
	for _, x := range list {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// Regret is by how much the losses of the answers exceed what the best single model
// would have lost, had it answered all of them at its mean loss.
func (s *State) Regret() float64 {
	best := math.Inf(1)
	for i := range s.Models {
		if m := &s.Models[i]; m.Asked > 0 {
			best = min(best, m.Loss/m.Asked)
		}
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return s.Loss - best*s.Steps
}
