package sidecar

import (
	"fmt"

	"github.com/topsail-serving/topsail/rpc"
)

// Ready says why the replica does not serve, or nil: every model version needs a
// ready container.
func (s *Sidecar) Ready() error {
	for _, p := range s.pools {
		switch p.state() {
		case rpc.StateReady:
		case rpc.StateDraining:
			return fmt.Errorf("%v is draining", p.model.ModelID)
		default:
			return fmt.Errorf("no container of %v is ready", p.model.ModelID)
		}
	}
	return nil
}
