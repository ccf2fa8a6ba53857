package cluster

import (
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/records"
)

// informed is a scorer that knows no app until it is ready: the records that wait for it in a
// stream would all get defaults while it is not known yet where replicas are.
type informed struct {
	records.Scorer
	ready func() error
}

func (s informed) App(name string) (*serving.App, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.Scorer.App(name)
}
