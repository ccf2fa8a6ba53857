package gocontainer

import (
	"sync"

	"github.com/topsail-serving/topsail/rpc"
)

// announcer announces the model on each connection, and there again when its state changes.
type announcer struct {
	mu    sync.Mutex // guards the following, and the order of what is sent
	conn  *rpc.Conn  // the last one; nil: there was none
	entry rpc.Announcement
}

func newAnnouncer(cfg *Config) *announcer {
	state := rpc.StateReady
	if cfg.Ready != nil {
		state = rpc.StateLoading
	}
	return &announcer{entry: rpc.Announcement{
		ID: 1, State: state, InputType: cfg.InputType, InputLength: cfg.InputLength, Model: cfg.Model,
		Stage: cfg.stageWorker.stage, Pipeline: cfg.stageWorker.pipeline, Concurrency: cfg.Concurrency,
	}}
}

func (a *announcer) connected(conn *rpc.Conn) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
	return a.send()
}

func (a *announcer) setReady(ready bool) {
	state := rpc.StateLoading
	if ready {
		state = rpc.StateReady
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entry.State == state {
		return
	}
	a.entry.State = state
	if a.conn != nil {
		_ = a.send() // where the connection has ended, the next one begins with it
	}
}

// announce announces versions that a host has loaded or unloaded, after the host with the memory that they take.
func (a *announcer) announce(memory uint64, hosted rpc.Announcement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entry.Memory = memory
	_ = a.send(hosted) // where the connection has ended, the sidecar has forgotten them
}

func (a *announcer) send(hosted ...rpc.Announcement) error {
	entry := a.entry
	if a.conn.Peer().Features&rpc.FeatureParts == 0 {
		entry.Concurrency = 0 // an older sidecar sends batches
	}
	return a.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, append([]rpc.Announcement{entry}, hosted...)...))
}
