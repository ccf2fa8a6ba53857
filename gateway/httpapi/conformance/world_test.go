package conformance

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// core is behind the server. Queries and feedback say what is to become of them.
type core struct {
	apps     map[string]*serving.App
	unknown  atomic.Bool // it knows no apps yet
	lastWord map[string]error
}

func newCore(cat *serving.Catalog) *core {
	return &core{apps: cat.Apps, lastWord: map[string]error{
		"unknown": &serving.QueryError{Cause: "it is not known"}, "fail": errors.New("secret"), "unavailable": serving.ErrUnavailable, "unjudged": serving.ErrUnjudged,
	}}
}

func (c *core) App(name string) (*serving.App, error) {
	if c.unknown.Load() {
		return nil, serving.ErrNoCatalog
	}
	if app := c.apps[name]; app != nil {
		return app, nil
	}
	return nil, serving.ErrUnknownApp
}

// predict answers with something in every member, if it is to explain.
func (c *core) predict(q *serving.Query) (serving.Prediction, error) {
	p := serving.Prediction{QueryID: 1<<53 - 1, Output: []byte(`{"a":[1,null,"b"]}`)}
	one, two := serving.ModelID{Model: "m", Version: "1"}, serving.ModelID{Model: "m", Version: "2"}
	if q.NoCache {
		p = serving.Prediction{QueryID: 1, Output: []byte("null"), Default: true, Explanation: "No connected models found for query"}
		p.Missing, p.Shed, p.Failover = []serving.ModelID{one}, []serving.ModelID{two}, []serving.ModelID{two, one}
	}
	if q.Explain {
		x := 0.5
		p.Explained = &serving.Explanation{Policy: "vote", Ended: "deadline", Confidence: math.Inf(1), Elapsed: time.Second, Budget: time.Minute, Models: []serving.ExplainedModel{
			{ModelID: one, Asked: true, Output: []byte(`"a"`), Probability: x, Weight: math.NaN(), Confidence: &x, Took: time.Millisecond, Cached: true, Shadow: true},
			{ModelID: two, Shed: true, Failure: "it was late"},
		}}
	}
	return p, c.lastWord[q.Version]
}

func (c *core) Stream(*serving.Query) (serving.Parts, error) { return nil, serving.ErrUnknownApp }

func (c *core) Predict(_ context.Context, qs ...serving.Query) (ps []serving.Prediction, err error) {
	for i := range qs {
		p, err := c.predict(&qs[i])
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func (c *core) Ready(app, _ string) (bool, error) {
	_, err := c.App(app)
	return err == nil, err
}

func (c *core) Wake(app, _ string) error {
	_, err := c.App(app)
	return err
}

func (c *core) Inferences(string) serving.Inferences { return serving.Inferences{} }

func (c *core) Feedback(_ context.Context, list []serving.Feedback) (all []serving.Learned, err error) {
	for _, f := range list {
		l := serving.Learned{Joined: serving.FromModels, Loss: math.NaN(), Trained: []serving.StateScope{}}
		if f.QueryID != 0 {
			one := serving.ModelID{Model: "m", Version: "1"}
			l = serving.Learned{QueryID: f.QueryID, Joined: serving.FromRecord, Duplicate: true, Loss: 0.5, Forwarded: 2,
				Trained: []serving.StateScope{{}, {User: "u", Context: "c"}}, Models: []serving.LearnedModel{{ModelID: one, Loss: 1, Judged: true}, {ModelID: one}}}
		}
		all = append(all, l)
		err = errors.Join(err, c.lastWord[f.ID])
	}
	return all, err
}

// catalog has an app of each type, and some that refuse.
func catalog() (*serving.Catalog, map[string]string) {
	cat := &serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}, Keys: map[string]*serving.Key{}}
	app := func(a serving.App) {
		a.SLO = serving.Duration(20 * time.Millisecond)
		cat.Apps[a.Name] = &a
	}
	for of := serving.Bytes; of <= serving.Strings; of++ {
		app(serving.App{Name: of.String(), InputType: of})
	}
	for _, name := range []string{"wine", "image"} {
		id := serving.ModelID{Model: name, Version: "1"}
		v := &serving.Version{ModelID: id, InputType: map[string]serving.InputType{"wine": serving.Doubles, "image": serving.Bytes}[name], InputLength: 2}
		cat.Models[name] = &serving.Model{Name: name, Current: "1", Versions: map[string]*serving.Version{"1": v}}
		app(serving.App{Name: name, Description: "of two", InputType: v.InputType, Models: []string{name}})
	}
	app(serving.App{Name: "locked", InputType: serving.Doubles, RequireKey: true})
	app(serving.App{Name: "limited", InputType: serving.Doubles, Limit: &serving.Limit{PerSecond: 1e-6, Burst: 3}})
	secrets := map[string]string{}
	for _, k := range []serving.Key{{Name: "all", Role: serving.RoleOperator}, {Name: "wine", Role: serving.RoleQuery, Apps: []string{"wine"}}, {Name: "viewer", Role: serving.RoleViewer}} {
		made, secret := serving.NewKey()
		k.ID, k.Hash = made.ID, made.Hash
		cat.Keys[k.ID], secrets[k.Name] = &k, secret
	}
	return cat, secrets
}

// port is a server over loopback, which ends with the test.
type port struct {
	addr string
	core *core
	keys map[string]string // secrets by name
}

func start(t *testing.T) *port {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cat, keys := catalog()
	core := newCore(cat)
	config := httpapi.Config{MaxBatch: 3, MaxBodyBytes: 16 << 10, ReadTimeout: 300 * time.Millisecond, Inspect: func(page []byte) []byte { return append(page, `{"counters":[]}`...) }}
	server := httpapi.New(config, core, core, slog.New(slog.DiscardHandler))
	server.Serve(cat)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &port{addr: ln.Addr().String(), core: core, keys: keys}
}
