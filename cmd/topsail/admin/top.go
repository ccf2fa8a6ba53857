package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/retry"
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
	replicas []api.Replica     // by id
	raw      []json.RawMessage // the same
	lost     error             // why it is not live; nil: it is
}

// snapshot prints the picture once.
func (k *call) snapshot() error {
	var p picture
	if err := p.read(k, "hello"); err != nil {
		return err
	}
	if k.format == "json" {
		all, err := json.Marshal(map[string]any{"traffic": p.traffic, "replicas": p.raw, "alarms": p.cluster.Alarms})
		if err != nil {
			return err
		}
		return k.json(all)
	}
	for _, line := range k.lines(&p) {
		if _, err := io.WriteString(k.Out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

const reconnect = time.Second

// watch draws the picture at each event, and comes back when the stream breaks.
func (k *call) watch() error {
	ctx, leave := k.Full(k.ctx)
	defer leave()
	p := &picture{}
	draw := func(e apiclient.Event) error {
		if err := p.read(k, e.Topic); err != nil {
			return err
		}
		p.lost = nil
		return k.Draw(k.lines(p))
	}
	for {
		err := k.Events(ctx, draw, "events")
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
		if !retry.Sleep(ctx, reconnect) {
			return nil
		}
	}
}

// read asks for what events of a topic are about; for all of it at the beginning.
func (p *picture) read(k *call, topic string) error {
	next := *p
	all := topic == "hello"
	if all || topic == "traffic" {
		next.traffic = api.TrafficNow{}
		if _, err := k.Get(k.ctx, &next.traffic, nil, "traffic"); err != nil {
			return err
		}
	}
	if all || topic == "cluster" {
		next.cluster = api.Cluster{}
		if _, err := k.Get(k.ctx, &next.cluster, nil, "cluster"); err != nil {
			return err
		}
	}
	if all || topic == "replicas" {
		var err error
		if next.replicas, next.raw, err = items[api.Replica](k, 0, nil, "replicas"); err != nil {
			return err
		}
	}
	*p = next
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
		lines = append(lines, screen.Clean(string(a.State)+" "+a.Detail))
	}
	lines = append(append(lines, ""), nowTable(p.traffic).Lines()...)
	return append(append(lines, ""), k.replicaRows(p.replicas).Lines()...)
}

func up(all []api.Replica) (n int) {
	for _, r := range all {
		if r.State == "ready" {
			n++
		}
	}
	return n
}
