package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

const partEvery = 50 * time.Millisecond // 20 a second

// talking is how many queries the model "talk" answers in this process.
var talking atomic.Int64

// talk answers in parts until it is cancelled, the first one at once.
func talk(ctx context.Context, _ *gocontainer.Query, part func(...serving.Value) error) gocontainer.Result {
	return gocontainer.Result{Err: speak(ctx, func() error { return part(serving.Text("word ")) })}
}

func speak(ctx context.Context, part func() error) error {
	talking.Add(1)
	defer talking.Add(-1)
	tick := time.NewTicker(partEvery)
	defer tick.Stop()
	for {
		if err := part(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func countTalking(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, talking.Load()) }

// serveTalk serves the model "talk", and how many queries it answers.
func serveTalk(ctx context.Context, s setup) error {
	ln, err := listen(1)
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(ln[0], http.HandlerFunc(countTalking)) }() // for as long as the process lives
	if err := announce(listening{Addr: ln[0].Addr().String()}); err != nil {
		return err
	}
	of, length := s.input()
	return gocontainer.ServeStreams(ctx, gocontainer.Config{
		Sidecar: s.Sidecar, Model: modelVersion(s.Place), InputType: of, InputLength: length, Replica: replicaName(s.Place), Concurrency: 2 * openStreams,
	}, talk)
}

// bareTalk starts a server of net/http that answers in the same parts, and does nothing else.
func (b *bench) bareTalk(ctx context.Context) (*target, error) {
	c, err := b.role(ctx, "baretalk", setup{})
	if err != nil {
		return nil, err
	}
	return &target{name: "a bare server", url: "http://" + c.Addr + queryPath, children: []*child{c}}, nil
}

func serveBareTalk(ctx context.Context) error {
	ln, err := listen(1)
	if err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /", countTalking)
	routes.HandleFunc("POST "+queryPath, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		_ = speak(r.Context(), func() error { // it ends with the client
			if _, err := io.WriteString(w, spoken+" \"}\n\n"); err != nil {
				return err
			}
			return out.Flush()
		})
	})
	server := &http.Server{Handler: routes}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // the process ends next
	if err := announce(listening{Addr: ln[0].Addr().String()}); err != nil {
		return err
	}
	return server.Serve(ln[0])
}

// silent waits until the model of a target answers no query any more.
func (b *bench) silent(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, freeWithin)
	defer cancel()
	return eventually(ctx, func(ctx context.Context) error {
		n, err := t.talking(ctx)
		if err == nil && n > 0 {
			err = fmt.Errorf("%v queries run on", n)
		}
		return err
	})
}

// talking is how many queries its model answers.
func (t *target) talking(ctx context.Context) (int64, error) {
	for _, c := range t.children {
		if c.name == "container" || c.name == "baretalk" {
			return askTalking(ctx, c.Addr)
		}
	}
	return 0, errors.New("the target has no container")
}

func askTalking(ctx context.Context, addr string) (n int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(text), &n)
	return n, err
}
