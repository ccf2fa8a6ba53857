package gocontainer

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// listening is a sidecar that containers dial.
type listening struct {
	*testing.T
	net.Listener
}

func listenForContainers(t *testing.T) *listening {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return &listening{t, ln}
}

// next takes a connection, on which frames go to the channel.
func (l *listening) next(features rpc.Features) (conn *rpc.Conn, theirs rpc.Features, announced chan rpc.Announcement, bye func()) {
	l.Helper()
	nc, err := l.Accept()
	require.NoError(l, err)
	conn, err = rpc.Accept(l.Context(), nc, rpc.Hello{Role: rpc.RoleSidecar, Features: features, MaxFrame: rpc.MaxFrame}, nil)
	require.NoError(l, err)
	announced = make(chan rpc.Announcement, 10)
	ctx, cancel := context.WithCancel(l.Context())
	var running sync.WaitGroup
	running.Go(func() {
		conn.Run(ctx, func(f rpc.Frame) error {
			if f.Kind == rpc.KindAnnounce {
				list, err := rpc.ParseAnnounce(f.Body)
				announced <- list[0]
				return err
			}
			return nil
		})
	})
	return conn, conn.Peer().Features, announced, func() { cancel(); running.Wait() }
}

func TestServeStreamsAnnouncesWhatItIs(t *testing.T) {
	l := listenForContainers(t)
	states := make(chan bool)
	cfg := Config{
		Sidecar: l.Addr().String(), Model: serving.ModelID{Model: "m", Version: "1"},
		Ready: func(ctx context.Context, set func(bool)) {
			for {
				select {
				case ready := <-states:
					set(ready)
				case <-ctx.Done():
					return
				}
			}
		},
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ServeStreams(ctx, cfg, spell) }()

	_, features, announced, bye := l.next(rpc.FeatureParts)
	if features&rpc.FeatureParts == 0 {
		t.Error("it does not offer parts")
	}
	if a := <-announced; a.State != rpc.StateLoading || a.Concurrency != rpc.AnyConcurrency {
		t.Errorf("first it announces %+v", a)
	}
	for _, ready := range []bool{true, true, false, true} {
		states <- ready
	}
	for _, want := range []rpc.State{rpc.StateReady, rpc.StateLoading, rpc.StateReady} {
		if a := <-announced; a.State != want {
			t.Errorf("it announces %+v, want state %v", a, want)
		}
	}
	bye()

	_, _, announced, bye = l.next(0) // an older one
	if a := <-announced; a.State != rpc.StateReady || a.Concurrency != 0 {
		t.Errorf("on a new connection it announces %+v", a)
	}
	stop()
	bye()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestBatchContainersOfferNoParts(t *testing.T) {
	l := listenForContainers(t)
	cfg := Config{Sidecar: l.Addr().String(), Model: serving.ModelID{Model: "m", Version: "1"}, Concurrency: 5}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, cfg, func([]serving.Value) []Result { return nil }) }()
	_, features, announced, bye := l.next(rpc.FeatureParts)
	if a := <-announced; features&rpc.FeatureParts != 0 || a.Concurrency != 0 || a.State != rpc.StateReady {
		t.Errorf("features %b, it announces %+v", features, a)
	}
	stop()
	bye()
	if err := <-served; err != nil {
		t.Error(err)
	}
	cfg.Corrector = &pupil{}
	if err := ServeStreams(t.Context(), cfg, spell); err == nil || !strings.Contains(err.Error(), "Corrector") {
		t.Errorf("with a Corrector: %v", err)
	}
}
