//go:build bars

package sidecar

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/rpc/v1/v1test"
)

// A container that hangs is not taken for ready before it has ended: its port still accepts.
func TestV1AContainerThatHangsIsNotDialledAgain(t *testing.T) {
	_, g := hanging(t, v1test.Start(t, firsts))
	time.Sleep(300 * time.Millisecond) // three times as long as a new connection takes to be ready
	if s := g.state(0); s != rpc.StateLoading {
		t.Errorf("a container that hangs is %v", s)
	}
}
