package gocontainer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// hostDesk is the sidecar's end of the connection of a host.
type hostDesk struct {
	*testing.T
	conn *rpc.Conn

	mu        sync.Mutex // guards the following
	announced []string
	entries   []string
	unloaded  []string
}

// atHost runs a test in a bubble with a host that loads what load does.
func atHost(t *testing.T, load func(d *hostDesk) LoadModel, run func(d *hostDesk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &hostDesk{T: t}
		dialled := make(chan net.Conn)
		cfg := Config{
			Model: serving.ModelID{Model: "engine", Version: "1"}, ModelsDir: "/models",
			Dial: func(ctx context.Context, _ string) (net.Conn, error) {
				near, far := net.Pipe()
				select {
				case dialled <- far:
					return near, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := ServeHost(ctx, cfg, load(d)); err != nil {
				t.Error(err)
			}
		})
		conn, err := rpc.Accept(t.Context(), <-dialled, rpc.Hello{Role: rpc.RoleSidecar, Features: rpc.FeatureParts | rpc.FeatureHost, MaxFrame: rpc.MaxFrame}, nil)
		require.NoError(t, err)
		if conn.Peer().Features&rpc.FeatureHost == 0 {
			t.Error("the container does not say that it hosts")
		}
		d.conn = conn
		connection, lose := context.WithCancel(t.Context())
		running.Go(func() { conn.Run(connection, d.handle) })
		pass(0)
		run(d)
		stop()
		lose()
		running.Wait()
	})
}

func (d *hostDesk) handle(f rpc.Frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch f.Kind {
	case rpc.KindAnnounce:
		list, err := rpc.ParseAnnounce(f.Body)
		for _, a := range list {
			d.announced = append(d.announced, fmt.Sprintf("%d %v %v %d %v %s", a.ID, a.State, a.Model, a.Memory, a.Concurrency > 0, a.Reason))
		}
		return err
	case rpc.KindReply:
		r, err := rpc.ParseReply(f)
		if err != nil {
			return err
		}
		var a rpc.Answer
		for r.Next(&a) {
			d.entries = append(d.entries, entry(&r, &a))
		}
		return r.Err()
	}
	return nil
}

func (d *hostDesk) toLoad(model, folder string) {
	d.conn.Send(rpc.KindLoad, 0, rpc.AppendLoad(nil, rpc.Load{InputType: serving.Chat, Model: serving.ModelID{Model: model, Version: "1"}, Folder: folder}))
	pass(0)
}

func (d *hostDesk) toAnswer(id uint32, text string) {
	b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: uint64(id), Model: id, Count: 1})
	d.conn.Send(rpc.KindPredict, 0, rpc.AppendAsk(b, &rpc.Ask{Budget: -1, Payload: rpc.AppendPayload(nil, serving.Text(text))}))
	pass(0)
}

// expect compares what came since the last call.
func (d *hostDesk) expect(what string, got *[]string, want ...string) {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(*got, want) {
		d.Errorf("%s are %q, want %q", what, *got, want)
	}
	*got = nil
}

func TestHosting(t *testing.T) {
	load := func(d *hostDesk) LoadModel {
		return func(_ context.Context, v rpc.Load, folder string) (*HostedModel, error) {
			switch v.Model.Model {
			case "bad":
				return nil, errors.New("no such adapter")
			case "worse":
				panic("no idea")
			}
			predict := func(_ context.Context, q *Query, _ func(...serving.Value) error) Result {
				return Result{Output: serving.Text(folder + " says " + string(q.Inputs[0].Data))}
			}
			return &HostedModel{Predict: predict, Memory: int64(len(folder)), Unload: func(ctx context.Context) error {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.unloaded = append(d.unloaded, folder)
				return ctx.Err()
			}}, nil
		}
	}
	var all *hostDesk
	atHost(t, load, func(d *hostDesk) {
		all = d
		host := func(memory int) string { return fmt.Sprintf("1 2 engine:1 %d false ", memory) }
		d.expect("announcements", &d.announced, host(0))
		d.toLoad("a", "x/a")
		d.expect("announcements", &d.announced, host(11), "2 2 a:1 11 true ")
		d.toLoad("bad", "b")
		d.toLoad("worse", "b")
		d.toLoad("c", "../../etc")
		d.expect("announcements", &d.announced, host(11), "3 0 bad:1 0 false no such adapter", host(11), "4 0 worse:1 0 false panic: no idea",
			host(11), `5 0 c:1 0 false the folder "../../etc" is not below that of the host's models`)
		d.toLoad("b", "b")
		d.toAnswer(6, "hi")
		d.toAnswer(2, "ho")
		d.toAnswer(9, "hm")
		d.expect("announcements", &d.announced, host(20), "6 2 b:1 9 true ")
		d.expect("answers", &d.entries, "0 ok /models/b says hi END", "0 ok /models/x/a says ho END", "0 unknown_model the version is not loaded END")
		d.conn.Send(rpc.KindUnload, 0, rpc.AppendUnload(nil, 6))
		pass(0)
		d.expect("announcements", &d.announced, host(11), "6 0 : 0 false ")
		d.expect("unloaded versions", &d.unloaded, "/models/b")
		d.toAnswer(6, "hi")
		d.expect("answers", &d.entries, "0 unknown_model the version is not loaded END")
	})
	if got := strings.Join(all.unloaded, " "); got != "/models/x/a" {
		t.Errorf("when the connection had ended, %q were unloaded", got)
	}
}

func TestAHostWithoutAFolder(t *testing.T) {
	if err := ServeHost(t.Context(), Config{}, nil); err == nil || !strings.Contains(err.Error(), "TOPSAIL_MODELS_DIR") {
		t.Error(err)
	}
}
