package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

type scorer struct{}

func (scorer) App(name string) (*serving.App, error) { return &serving.App{Name: name}, nil }

func (scorer) Capacity(string) (int, time.Duration) { return 1, 0 }

func (scorer) Predict(context.Context, ...serving.Query) ([]serving.Prediction, error) {
	return nil, nil
}

func TestNoAppIsKnownBeforeReplicasAre(t *testing.T) {
	why := errors.New("it has no list of replicas from Consul yet")
	s := informed{scorer{}, func() error { return why }}
	if app, err := s.App("a"); !errors.Is(err, why) || app != nil {
		t.Errorf("got %v, %v", app, err)
	}
	why = nil
	if app, err := s.App("a"); err != nil || app.Name != "a" {
		t.Errorf("got %v, %v", app, err)
	}
}
