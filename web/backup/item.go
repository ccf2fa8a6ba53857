package backup

import (
	"encoding/json"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Item is one piece of the state: one of its fields is set.
type Item struct {
	Document *Document           `json:"document,omitempty"`
	State    *State              `json:"state,omitempty"`
	Usage    *Usage              `json:"usage,omitempty"`
	Entry    *serving.AuditEntry `json:"audit,omitempty"`
}

// Document is an object of the catalog as it is stored; see catalog.Document.
type Document struct {
	Kind string          `json:"kind"`
	Key  string          `json:"key"`
	JSON json.RawMessage `json:"object"`
}

// State is a selection state.
type State struct {
	App     string `json:"app"`
	Kind    string `json:"kind"`
	User    string `json:"user,omitempty"`
	Context string `json:"context,omitempty"`
	Text    []byte `json:"text"`
}

func (s *State) key() serving.StateKey {
	return serving.StateKey{App: s.App, Kind: s.Kind, User: s.User, Context: s.Context}
}

// Usage is serving.Usage.
type Usage struct {
	App     string                `json:"app,omitempty"`
	Model   string                `json:"model,omitempty"`
	Version string                `json:"version,omitempty"`
	Stage   string                `json:"stage,omitempty"`
	Since   time.Time             `json:"since,omitzero"`
	Answers uint64                `json:"answers,omitempty"`
	Cached  uint64                `json:"cached,omitempty"`
	Failed  uint64                `json:"failed,omitempty"`
	Missed  uint64                `json:"missed,omitempty"`
	Micros  uint64                `json:"micros,omitempty"`
	Least   int64                 `json:"least_nanos,omitempty"`
	Most    int64                 `json:"most_nanos,omitempty"`
	Last    *serving.UsageFailure `json:"last_failure,omitempty"`
}

func usageItem(u serving.Usage) *Usage {
	return &Usage{
		App: u.Key.App, Model: u.Key.Model, Version: u.Key.Version, Stage: u.Key.Stage, Since: u.Since,
		Answers: u.Answers, Cached: u.Cached, Failed: u.Failed, Missed: u.Missed, Micros: u.Micros,
		Least: u.Least.Nanoseconds(), Most: u.Most.Nanoseconds(), Last: u.Last,
	}
}

func (u *Usage) usage() serving.Usage {
	return serving.Usage{
		Key:   serving.UsageKey{App: u.App, ModelID: serving.ModelID{Model: u.Model, Version: u.Version}, Stage: u.Stage},
		Since: u.Since, Answers: u.Answers, Cached: u.Cached, Failed: u.Failed, Missed: u.Missed, Micros: u.Micros,
		Least: time.Duration(u.Least), Most: time.Duration(u.Most), Last: u.Last,
	}
}
