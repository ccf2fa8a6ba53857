package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// store keeps in memory what a program would keep in a database of its own.
type store struct {
	mu       sync.Mutex // guards the following
	states   map[serving.StateKey]revised
	revision uint64                  // the last one, of any state
	records  map[int]*serving.Record // by their slots, so that there are serving.MaxRecords at the most
	demand   map[serving.ModelID]uint64
}

// revised is a state with the revision by which it is swapped.
type revised struct {
	text     []byte
	revision uint64
}

func newStore() *store {
	return &store{states: map[serving.StateKey]revised{}, records: map[int]*serving.Record{}, demand: map[serving.ModelID]uint64{}}
}

// LoadState implements state.Store, as the next two do.
func (s *store) LoadState(_ context.Context, key serving.StateKey) ([]byte, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.states[key]
	return is.text, is.revision, nil
}

func (s *store) SwapState(_ context.Context, key serving.StateKey, revision uint64, text []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[key].revision != revision {
		return 0, serving.ErrStateConflict
	}
	s.revision++
	s.states[key] = revised{text, s.revision}
	return s.revision, nil
}

func (s *store) SetStateAside(_ context.Context, key serving.StateKey, revision uint64, why string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[key].revision != revision {
		return "", serving.ErrStateConflict
	}
	aside := key
	aside.Context = fmt.Sprintf("set aside at revision %d: %s", revision, why)
	s.states[aside] = s.states[key]
	delete(s.states, key)
	return aside.Context, nil
}

// PutRecords implements feedback.Store, as the next three do.
func (s *store) PutRecords(_ context.Context, list []*serving.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range list {
		s.records[serving.RecordSlot(r.QueryID)] = r
	}
	return nil
}

func (s *store) RecordOf(_ context.Context, app string, queryID int64) (*serving.Record, error) {
	return s.find(func(r *serving.Record) bool { return r.App == app && r.QueryID == queryID })
}

func (s *store) NewestRecord(_ context.Context, app, user, about string, input serving.InputHash) (*serving.Record, error) {
	return s.find(func(r *serving.Record) bool {
		return r.App == app && r.User == user && r.Context == about && r.InputHash == input
	})
}

func (s *store) MarkLearned(_ context.Context, app string, queryID int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[serving.RecordSlot(queryID)]; r != nil && r.App == app && r.QueryID == queryID {
		marked := *r
		marked.Learned = true
		s.records[serving.RecordSlot(queryID)] = &marked
	}
	return nil
}

// find is a copy of the newest record that fits.
func (s *store) find(fits func(*serving.Record) bool) (*serving.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest *serving.Record
	for _, r := range s.records {
		if fits(r) && (newest == nil || r.At.After(newest.At)) {
			newest = r
		}
	}
	if newest == nil {
		return nil, serving.ErrNoRecord
	}
	found := *newest
	return &found, nil
}

// WriteDemand implements gateway.DemandSink.
func (s *store) WriteDemand(report serving.DemandReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range report.Demands {
		s.demand[d.ModelID] += d.Arrivals
	}
}

// show prints what it holds.
func (s *store) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, is := range s.states {
		fmt.Printf("the store has the state of %s at revision %d\n", key.App, is.revision)
	}
	for id, arrivals := range s.demand {
		fmt.Printf("the store has the demand of %v: %t\n", id, arrivals > 0)
	}
}
