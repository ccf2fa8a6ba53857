package models

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"
	"time"
)

// location is a location with one model, which answers as it is told.
type location struct {
	url   string
	model *Model
	asked chan chan answer // each request, which waits for its answer
	left  chan struct{}    // of requests that were cut off
}

// answer is what the location does about a request.
type answer int

const (
	give answer = iota
	fail
)

func (w *world) newLocation() *location {
	s := &location{model: source("1"), asked: make(chan chan answer), left: make(chan struct{}, 1)}
	body := s.model.Data
	sum := sha256.Sum256(body)
	s.url = w.net.Serve(w, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how := make(chan answer)
		select {
		case s.asked <- how:
		case <-r.Context().Done():
			return
		}
		select {
		case a := <-how:
			if a == fail {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_, _ = w.Write(body) // who has left needs nothing
		case <-r.Context().Done():
			s.left <- struct{}{}
		}
	}))
	s.model.Data, s.model.Location, s.model.SHA256 = nil, s.url+"/wine.py", hex.EncodeToString(sum[:])
	return s
}

// allow lets a job fetch from the location.
func (s *location) allow(c *Config) { c.Locations.Prefixes = []string{s.url + "/"} }

// next is the next request, which waits.
func (s *location) next(t *testing.T) chan<- answer {
	t.Helper()
	select {
	case how := <-s.asked:
		return how
	case <-time.After(patience):
		t.Fatal("nobody asks for the model")
		return nil
	}
}

// cut waits until a request is cut off.
func (s *location) cut(t *testing.T) {
	t.Helper()
	select {
	case <-s.left:
	case <-time.After(patience):
		t.Fatal("it is still waited for")
	}
}
