package gocontainer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

// HostedModel is a version that a host has loaded.
type HostedModel struct {
	Predict StreamPredict
	Memory  int64                           // bytes that it takes
	Unload  func(ctx context.Context) error // nil: nothing has to be done
}

// LoadModel loads a version whose bundle is unpacked in a folder. It is called for one version at a time, while others answer.
type LoadModel func(ctx context.Context, v rpc.Load, folder string) (*HostedModel, error)

// ServeHost is ServeStreams for a host: its sidecar says which versions it is to load and to unload.
func ServeHost(ctx context.Context, cfg Config, load LoadModel) error {
	if cfg.ModelsDir == "" {
		return errors.New("TOPSAIL_MODELS_DIR is not set: Topsail sets it for hosts that it starts")
	}
	cfg.Concurrency, cfg.hosts = 0, true
	reports := newLearning(nil, cfg.Metrics, cfg.logger())
	return cfg.serve(ctx, func(ctx context.Context, announcer *announcer, conn *rpc.Conn) error {
		s := newStreams(conn, &cfg, nil, reports)
		s.hosting = &hosting{cfg: &cfg, load: load, announcer: announcer, requests: make(chan func(context.Context), maxRequests), models: map[uint32]*HostedModel{}, last: hostID}
		return s.run(ctx)
	})
}

const (
	hostID       = 1 // which the host announces itself under
	maxRequests  = 1024
	unloadWithin = 5 * time.Second // of what is left when the connection ends
)

// hosting is the versions that are loaded on one connection.
type hosting struct {
	cfg       *Config
	load      LoadModel
	announcer *announcer
	requests  chan func(context.Context) // to load and unload, in order
	last      uint32                     // id; only of the goroutine that loads

	mu     sync.Mutex // guards the following
	models map[uint32]*HostedModel
}

// run loads and unloads until ctx ends, and then unloads what is left.
func (h *hosting) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case do := <-h.requests:
			do(ctx)
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unloadWithin)
	defer cancel()
	for _, m := range h.models { // no one else is there any more
		h.free(ctx, m)
	}
}

// model is the version of an id; nil: there is none.
func (h *hosting) model(id uint32) StreamPredict {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.models[id]; m != nil {
		return m.Predict
	}
	return nil
}

// take takes in a LOAD or UNLOAD frame.
func (h *hosting) take(f rpc.Frame) error {
	if f.Kind == rpc.KindUnload {
		id, err := rpc.ParseUnload(f.Body)
		if err != nil {
			return err
		}
		return h.queue(func(ctx context.Context) { h.unload(ctx, id) })
	}
	list, err := rpc.ParseLoad(f.Body)
	if err != nil {
		return err
	}
	for _, v := range list {
		if err := h.queue(func(ctx context.Context) { h.begin(ctx, v) }); err != nil {
			return err
		}
	}
	return nil
}

func (h *hosting) queue(do func(context.Context)) error {
	select {
	case h.requests <- do:
		return nil
	default:
		return errors.New("gocontainer: the sidecar has too many versions loaded at a time")
	}
}

// begin loads a version, and announces what became of it.
func (h *hosting) begin(ctx context.Context, v rpc.Load) {
	h.last++
	entry := rpc.Announcement{ID: h.last, State: rpc.StateReady, InputType: v.InputType, InputLength: v.InputLength, Model: v.Model, Concurrency: rpc.AnyConcurrency}
	m, err := h.loaded(ctx, v)
	if err != nil {
		entry = rpc.Announcement{ID: h.last, State: rpc.StateGone, Model: v.Model, Reason: err.Error()}
	} else {
		entry.Memory = uint64(m.Memory)
		h.mu.Lock()
		h.models[h.last] = m
		h.mu.Unlock()
	}
	h.announcer.announce(h.memory(), entry)
}

// loaded calls the program's own function, and turns its panic into an error.
func (h *hosting) loaded(ctx context.Context, v rpc.Load) (m *HostedModel, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if !filepath.IsLocal(v.Folder) {
		return nil, fmt.Errorf("the folder %q is not below that of the host's models", v.Folder)
	}
	return h.load(ctx, v, filepath.Join(h.cfg.ModelsDir, v.Folder))
}

func (h *hosting) unload(ctx context.Context, id uint32) {
	h.mu.Lock()
	m := h.models[id]
	delete(h.models, id)
	h.mu.Unlock()
	if m != nil {
		h.free(ctx, m)
	}
	h.announcer.announce(h.memory(), rpc.Announcement{ID: id, State: rpc.StateGone})
}

func (h *hosting) free(ctx context.Context, m *HostedModel) {
	if m.Unload == nil {
		return
	}
	if err := m.Unload(ctx); err != nil {
		h.cfg.logger().Warn("a version cannot be unloaded", "err", err)
	}
}

// memory is what the versions take.
func (h *hosting) memory() (sum uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.models {
		sum += uint64(m.Memory)
	}
	return sum
}
