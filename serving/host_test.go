package serving

import (
	"slices"
	"strings"
	"testing"
)

func goodHost() Version {
	return Version{ModelID: ModelID{Model: "small", Version: "1"}, Replicas: 4, Host: &HostSpec{MemoryMB: 64}, Container: Container{Command: []string{"host"}}}
}

func goodGuest() Version {
	return Version{ModelID: ModelID{Model: "ann", Version: "1"}, InputType: Doubles, HostedBy: "small", Container: Container{Bundle: "sha256:" + strings.Repeat("ab", 32)}}
}

func TestHostCheck(t *testing.T) {
	for want, spoil := range map[string]func(host, guest *Version){
		"cannot be hosted by another":             func(h, _ *Version) { h.HostedBy = "other" },
		"leave input_type and input_length":       func(h, _ *Version) { h.InputType = Doubles },
		"batch and stages are for the versions":   func(h, _ *Version) { h.Batch.MaxSize = 4 },
		"give it a command or a bundle":           func(h, _ *Version) { h.Container = Container{Addr: "127.0.0.1:1", Protocol: "v1"} },
		"memory_mb must be between 32 and":        func(h, _ *Version) { h.Host.MemoryMB = 31 },
		"hosted_by: model name":                   func(_, g *Version) { g.HostedBy = "a b" },
		"needs a bundle":                          func(_, g *Version) { g.Container = Container{Command: []string{"x"}} },
		"env, watch, driver, artifact":            func(_, g *Version) { g.Container.Env = map[string]string{"A": "b"} },
		"resources on the host":                   func(_, g *Version) { g.Resources.CPU = 100 },
		"set replicas, scale and pin on the host": func(_, g *Version) { g.Replicas = 2 },
		"which a host cannot load":                func(_, g *Version) { g.Stages = Pipeline{{Name: "a"}} },
		"needs an input_type":                     func(_, g *Version) { g.InputType = 0 },
	} {
		h, g := goodHost(), goodGuest()
		if h.Check() != nil || g.Check() != nil {
			t.Fatal(h.Check(), g.Check())
		}
		spoil(&h, &g)
		if err := h.Check(); err == nil || !strings.Contains(err.Error(), want) {
			if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want an error with %q, got %v and %v", want, h.Check(), err)
			}
		}
	}
}

func TestHostsInACatalog(t *testing.T) {
	catalog := func(change func(host, guest *Model)) *Catalog {
		h, h2, g := goodHost(), goodHost(), goodGuest()
		h2.Version = "2"
		host := &Model{Name: "small", Current: "2", Serving: "1", Versions: map[string]*Version{"1": &h, "2": &h2}}
		guest := &Model{Name: "ann", Current: "1", Versions: map[string]*Version{"1": &g}}
		change(host, guest)
		cat := &Catalog{Apps: map[string]*App{}, Models: map[string]*Model{guest.Name: guest}}
		if host.Name != "" {
			cat.Models[host.Name] = host
		}
		return cat
	}
	cat := catalog(func(_, _ *Model) {})
	if err := cat.Check(); err != nil {
		t.Error(err)
	}
	ids := cat.Hosts(cat.Version(ModelID{Model: "ann", Version: "1"}))
	if want := []ModelID{{Model: "small", Version: "1"}, {Model: "small", Version: "2"}}; !slices.Equal(ids, want) {
		t.Errorf("its hosts are %v, want the one that serves before the current one", ids)
	}
	if ids := cat.Hosts(cat.Version(want1)); ids != nil {
		t.Errorf("a host is held by %v", ids)
	}
	for want, change := range map[string]func(host, guest *Model){
		`hosted by model "small", which does not exist`: func(h, _ *Model) { h.Name = "" },
		`whose current version is not a host`:           func(h, _ *Model) { h.Versions["2"].Host, h.Versions["2"].InputType = nil, Doubles },
	} {
		if err := catalog(change).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	app := goodApp()
	app.Models = []string{"small"}
	cat.Apps[app.Name] = &app
	if err := cat.Check(); err == nil || !strings.Contains(err.Error(), "is a host and answers no queries") {
		t.Errorf("an app that links a host: %v", err)
	}
}

var want1 = ModelID{Model: "small", Version: "1"}
