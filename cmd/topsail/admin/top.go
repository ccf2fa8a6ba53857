package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/web/api"
)

func topCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Show apps and replicas live, until q; once if there is no terminal",
		Args:  cobra.NoArgs,
	}
	return single(c, func(k *call) error {
		if !k.Terminal || k.format == "json" {
			return k.snapshot()
		}
		return k.watch()
	})
}

// picture is what top shows.
type picture struct {
	traffic  api.TrafficNow
	cluster  api.Cluster
	replicas map[string]api.Replica // by id
	lost     error                  // why it is not live; nil: it is
}

// snapshot prints the picture once.
func (k *call) snapshot() error {
	p := picture{replicas: map[string]api.Replica{}}
	traffic, err := k.Get(k.ctx, &p.traffic, nil, "traffic")
	if err != nil {
		return err
	}
	replicas, raw, err := items[api.Replica](k, 0, nil, "replicas")
	if err != nil {
		return err
	}
	if err := p.look(k); err != nil {
		return err
	}
	if k.format == "json" {
		both, err := json.Marshal(map[string]any{"traffic": traffic, "replicas": raw, "alarms": p.cluster.Alarms})
		if err != nil {
			return err
		}
		return k.json(both)
	}
	for _, r := range replicas {
		p.replicas[r.ID] = r
	}
	for _, line := range k.lines(&p) {
		if _, err := io.WriteString(k.Out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// look asks for what is wrong: the stream of events tells only what changes.
func (p *picture) look(k *call) error {
	p.cluster = api.Cluster{}
	_, err := k.Get(k.ctx, &p.cluster, nil, "cluster")
	return err
}

const reconnect = time.Second

// watch draws the picture at each event, and comes back when the stream breaks.
func (k *call) watch() error {
	ctx, leave := k.Full(k.ctx)
	defer leave()
	p := &picture{replicas: map[string]api.Replica{}}
	draw := func(e apiclient.Event) error {
		if err := p.take(e); err != nil {
			return err
		}
		p.lost = nil
		return k.Draw(k.lines(p))
	}
	for {
		err := p.look(k)
		if err == nil {
			err = k.Events(ctx, draw, "events")
		}
		if ctx.Err() != nil {
			return nil
		}
		if _, away := errors.AsType[*apiclient.Away](err); !away {
			return err
		}
		p.lost = err
		if err := k.Draw(k.lines(p)); err != nil {
			return err
		}
		if !pause(ctx, reconnect) {
			return nil
		}
	}
}

// pause is false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// take puts an event into the picture.
func (p *picture) take(e apiclient.Event) error {
	switch e.Topic {
	case "traffic":
		p.traffic = api.TrafficNow{}
		return json.Unmarshal(e.Data, &p.traffic)
	case "cluster":
		p.cluster = api.Cluster{}
		return json.Unmarshal(e.Data, &p.cluster)
	case "replicas":
		var r replicasEvent
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return err
		}
		if r.Whole {
			clear(p.replicas)
		}
		for _, one := range r.Changed {
			p.replicas[one.ID] = one
		}
		for _, id := range r.Gone {
			delete(p.replicas, id)
		}
	}
	return nil
}

// lines are the picture: what is wrong, the apps, the replicas.
func (k *call) lines(p *picture) []string {
	k.now = time.Now()
	lines := []string{fmt.Sprintf("topsail  %s  %d of %d replicas are up", queried(p.traffic), up(p.replicas), len(p.replicas))}
	if p.lost != nil {
		lines = append(lines, screen.Clean("not live: "+p.lost.Error()))
	}
	for _, a := range p.cluster.Alarms {
		lines = append(lines, screen.Clean(a.Severity+" "+a.Text))
	}
	lines = append(append(lines, ""), nowTable(p.traffic).Lines()...)
	var replicas []api.Replica
	for _, id := range slices.Sorted(maps.Keys(p.replicas)) {
		replicas = append(replicas, p.replicas[id])
	}
	return append(append(lines, ""), k.replicaRows(replicas).Lines()...)
}

func up(all map[string]api.Replica) (n int) {
	for _, r := range all {
		if r.State == "ready" {
			n++
		}
	}
	return n
}
