package stream

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
)

// TestWhile ends when the gate closes, and at once where it is closed.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(true)
		during, stop := gate.While(t.Context())
		defer stop()
		gate.set(nil) // nothing new
		synctest.Wait()
		if during.Err() != nil {
			t.Error("it ends while the gate is open")
		}
		gate.set(&serving.Suspension{})
		synctest.Wait()
		if during.Err() == nil {
			t.Error("it goes on while the gate is closed")
		}
		late, stop := gate.While(t.Context())
		defer stop()
		if late.Err() == nil {
			t.Error("it begins while the gate is closed")
		}
		gate.set(nil)
		ctx, cancel := context.WithCancel(t.Context())
		during, stop = gate.While(ctx)
		defer stop()
		cancel()
		if during.Err() == nil {
			t.Error("it outlives what it is of")
		}
	})
}
