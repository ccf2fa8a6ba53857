package main

import (
	"bytes"
	"context"
	"fmt"
)

// target is something that answers queries: one process or several.
type target struct {
	name     string // for people
	url      string
	ops      string   // of the gateway; empty for bare routes, which give no defaults
	children []*child // by the order of their start
}

// bare starts one of the routes without Topsail.
func (b *bench) bare(ctx context.Context, name, role string) (*target, error) {
	c, err := b.role(ctx, role, setup{})
	if err != nil {
		return nil, err
	}
	t := &target{name: name, url: "http://" + c.Addr + queryPath, children: []*child{c}}
	return t, b.warm(ctx, t)
}

// stack starts a gateway, a sidecar and a container, and warms them up.
func (b *bench) stack(ctx context.Context, name string, s setup) (*target, error) {
	t, err := b.launch(ctx, name, s)
	if err != nil {
		return nil, err
	}
	return t, b.warm(ctx, t)
}

// launch starts them and returns when they can answer.
func (b *bench) launch(ctx context.Context, name string, s setup) (*target, error) {
	sidecar, err := b.role(ctx, "sidecar", s)
	if err != nil {
		return nil, err
	}
	s.Endpoint, s.Sidecar = sidecar.Addr, sidecar.Containers
	container, err := b.container(ctx, s)
	if err != nil {
		return nil, err
	}
	gateway, err := b.role(ctx, "gateway", s)
	if err != nil {
		return nil, err
	}
	t := &target{name: name, url: "http://" + gateway.Addr + queryPath, ops: gateway.Ops, children: []*child{sidecar, container, gateway}}
	return t, eventually(ctx, func(ctx context.Context) error {
		_, err := get(ctx, "http://"+gateway.Ops+"/health/ready")
		return err
	})
}

func (b *bench) container(ctx context.Context, s setup) (*child, error) {
	if s.Container == "python" {
		return b.pythonContainer(ctx, s)
	}
	return b.role(ctx, "container", s)
}

// warm asks until the answer is the right one, and then for a second, so that no
// measured query pays for what is done once.
func (b *bench) warm(ctx context.Context, t *target) error {
	err := eventually(ctx, func(ctx context.Context) error {
		reply, err := ask(ctx, t.url)
		if err == nil && !bytes.HasSuffix(reply, []byte(`"output":0.5,"default":false}`)) {
			err = fmt.Errorf("it answers %s", reply)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	_, err = b.wrk.run(ctx, t.url, many, 1)
	return err
}
