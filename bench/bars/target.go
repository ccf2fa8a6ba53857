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
	grpc     string   // address of the gateway's
	request  *request // nil: the usual query
	children []*child // by the order of their start
	whole    bool     // the processor time of a child is also that of the processes below it
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

// stack starts a gateway and its models, and warms them up.
func (b *bench) stack(ctx context.Context, name string, s setup) (*target, error) {
	t, err := b.launch(ctx, name, s)
	if err != nil {
		return nil, err
	}
	return t, b.warm(ctx, t)
}

// launch starts them and returns when they can answer.
func (b *bench) launch(ctx context.Context, name string, s setup) (*target, error) {
	models, err := b.models(ctx, s)
	if err != nil {
		return nil, err
	}
	return b.gateway(ctx, name, s, models)
}

// model is the processes of one model.
type model struct{ sidecar, container *child }

// models starts a sidecar and a container for each model.
func (b *bench) models(ctx context.Context, s setup) ([]model, error) {
	models := make([]model, len(s.Containers))
	for place := range models {
		var err error
		m := &models[place]
		s.Place = place
		if m.sidecar, err = b.role(ctx, "sidecar", s); err != nil {
			return nil, err
		}
		s.Sidecar = m.sidecar.Containers
		if m.container, err = b.container(ctx, s); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// gateway starts a gateway for models that are there, and returns when it can answer.
func (b *bench) gateway(ctx context.Context, name string, s setup, models []model) (*target, error) {
	t := &target{name: name}
	for _, m := range models {
		s.Endpoints = append(s.Endpoints, m.sidecar.Addr)
		t.children = append(t.children, m.sidecar, m.container)
	}
	gateway, err := b.role(ctx, "gateway", s)
	if err != nil {
		return nil, err
	}
	t.url, t.ops, t.grpc, t.children = "http://"+gateway.Addr+queryPath, gateway.Ops, gateway.GRPC, append(t.children, gateway)
	return t, eventually(ctx, func(ctx context.Context) error {
		_, err := get(ctx, "http://"+gateway.Ops+"/health/ready")
		return err
	})
}

func (b *bench) container(ctx context.Context, s setup) (*child, error) {
	switch s.Containers[s.Place] {
	case "python", "stages":
		return b.pythonContainer(ctx, s)
	}
	return b.role(ctx, "container", s)
}

// warm asks until the answer is the right one, and then for a second, so that no
// measured query pays for what is done once.
func (b *bench) warm(ctx context.Context, t *target) error {
	err := eventually(ctx, func(ctx context.Context) error {
		reply, err := ask(ctx, t.url)
		if err == nil && !predicted(reply) {
			err = fmt.Errorf("it answers %s", reply)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	_, err = b.wrk.run(ctx, t.url, nil, many, 1)
	return err
}

// rightOutput is in every answer of the models.
const rightOutput = `"output":0.5,"default":false`

// predicted says whether a reply is what the models answer.
func predicted(reply []byte) bool { return bytes.Contains(reply, []byte(rightOutput)) }
