package backup

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/web/artifact"
)

// places makes places, of one Redis and many folders.
type places struct {
	t      *testing.T
	client *redis.Client
	addr   string
}

func newPlaces(t *testing.T) *places {
	t.Helper()
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.Redis(t.TempDir(), port)
	if err == nil {
		err = server.Start(t.Context())
	}
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { client.Close() })
	return &places{t, client, server.Addr}
}

// The kinds of places: local mode, and a cluster whose bundles are in its Redis.
const (
	disk    = "disk"
	inRedis = "redis"
)

// owner is a test, or a check of rapid, which closes the places that it has opened.
type owner interface {
	fatal
	Error(args ...any)
	Cleanup(do func())
}

// open makes a place with its real store of bundles, in which gateways learn.
func (p *places) open(t owner, kind, name string) *place {
	t.Helper()
	dir, err := os.MkdirTemp(p.t.TempDir(), "")
	require.NoError(t, err)
	made := &place{}
	var bucket artifact.Bucket
	switch kind {
	case inRedis:
		s, err := redisstore.Open(context.Background(), redisstore.Config{Server: redisclient.Server{Addrs: []string{p.addr}}, Prefix: name, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		made, bucket = placeOf(s, dir), s.Bundles(1<<30)
	default:
		made = onDisk(t, dir)
		if bucket, err = artifact.OpenFolder(filepath.Join(dir, "bundles")); err != nil {
			t.Fatal(err)
		}
	}
	if made.Bundles, err = artifact.Open(artifact.Config{Bucket: bucket, Spool: filepath.Join(dir, "uploads")}); err != nil {
		t.Fatal(err)
	}
	made.states = state.New(made.store, slog.New(slog.DiscardHandler), obs.NewRegistry())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = made.states.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// live has authors change a place, all at once, until they have taken their steps. meanwhile is
// called once so many steps were acknowledged.
func live(t *rapid.T, p *place, authors int, most int, meanwhile func(all []*author)) []*author {
	total := 0
	var all []*author
	acks := make(chan struct{}, authors*most)
	for i := range authors {
		w := newAuthor(t, p, fmt.Sprint("w", i), drawSteps(t, most), acks)
		total += len(w.steps)
		all = append(all, w)
	}
	moment := rapid.IntRange(0, total).Draw(t, "moment")
	var running errgroup.Group
	ctx := context.Background()
	for _, w := range all {
		running.Go(func() error { return w.run(ctx) })
	}
	end := time.After(time.Minute)
	for range moment {
		select {
		case <-acks:
		case <-end:
			t.Fatal("the steps are not taken") // one has failed
		}
	}
	if meanwhile != nil {
		meanwhile(all)
	}
	require.NoError(t, running.Wait())
	return all
}

// TestUsageOfAnotherTimeGoes restores an app without usage over one that has some.
func TestUsageOfAnotherTimeGoes(t *testing.T) {
	places := newPlaces(t)
	for _, kind := range []string{disk, inRedis} {
		from, to := places.open(t, disk, "from"), places.open(t, kind, "to")
		newAuthor(t, from, "w", nil, nil)
		counted := newAuthor(t, to, "w", []int{9}, make(chan struct{}, 1))
		require.NoError(t, counted.run(t.Context()))
		to.bring(t, from.take(t, true), false)
		usage, err := to.UsageOf(t.Context(), []serving.UsageKey{{App: "w-learns"}})
		if err != nil || len(usage) != 1 {
			t.Fatalf("%s: usage %+v, %v", kind, usage, err)
		}
		if u := usage[0]; u.Answers != 0 || u.Micros != 0 || u.Least != 0 || u.Most != 0 {
			t.Errorf("%s: %+v is left", kind, u)
		}
	}
}
