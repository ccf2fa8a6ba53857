//go:build servers

package redisstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/servers"
)

// Whatever Redis goes through, each record of an ordered stream has one result, in its order.
func TestOrderOverFaults(t *testing.T) {
	t.Parallel()
	const takeover = 500 * time.Millisecond
	// Each kills Redis; more waits until there are as many more results.
	for name, fault := range map[string]func(t *testing.T, server *servers.Server, file string, more func(n int)){
		"away until leases are over": func(_ *testing.T, server *servers.Server, _ string, _ func(int)) {
			server.Kill()
			time.Sleep(takeover + takeover/4) // the outage
		},
		"forgets what it has done": func(t *testing.T, server *servers.Server, file string, more func(int)) {
			kept := t.TempDir()
			server.Freeze()
			if err := os.CopyFS(kept, os.DirFS(file)); err != nil {
				t.Fatal(err)
			}
			server.Thaw()
			more(500)
			server.Kill()
			if err := errors.Join(tear(kept), os.RemoveAll(file), os.CopyFS(file, os.DirFS(kept))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const records, streams, rounds = 12_000, 3, 3
			dir := t.TempDir()
			server, err := launch(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Kill)
			b, out := broker(t, server.Addr), fresh()
			group := Group{Name: "group", Takeover: takeover, Ordered: true}
			for i := range streams {
				group.Streams = append(group.Streams, fresh())
				write(t, b, numbered(group.Streams[i], records/streams)...)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			admin := client(t, server)
			until := func(n int) {
				for int(admin.XLen(ctx, out).Val()) < n && ctx.Err() == nil {
					time.Sleep(time.Millisecond) // the tick of a poll
				}
			}
			var working sync.WaitGroup
			defer working.Wait()
			defer cancel()
			for i := range 3 {
				group.Member = fmt.Sprintf("member-%d", i)
				c := join(t, b, group)
				working.Go(func() { echo(ctx, c, out) })
			}
			for round := range rounds {
				until(records * (round + 1) / (rounds + 1))
				now := int(admin.XLen(ctx, out).Val())
				fault(t, server, filepath.Join(dir, "appendonlydir"), func(n int) { until(min(now+n, records)) })
				if err := server.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				rewrite(ctx, t, admin)
			}
			until(records)
			wantOrder(t, read(t, b, out), group.Streams, records/streams)
		})
	}
}

// tear takes some bytes off the end of what Redis has written: it may be in the middle of a commit.
func tear(folder string) error {
	written, err := filepath.Glob(filepath.Join(folder, "*.incr.aof"))
	if err != nil || len(written) == 0 {
		return errors.Join(err, errors.New("redis has written no file"))
	}
	last := written[len(written)-1]
	info, err := os.Stat(last)
	if err != nil {
		return err
	}
	return os.Truncate(last, max(0, info.Size()-rand.Int64N(4096)))
}

// rewrite has Redis write its file anew. One that was killed in the middle of a commit has a
// part of that in the file, and would carry it out when it starts for the second time.
func rewrite(ctx context.Context, t *testing.T, admin *redis.Client) {
	t.Helper()
	if err := admin.BgRewriteAOF(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		info := admin.Info(ctx, "persistence").Val()
		if strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") {
			return
		}
		time.Sleep(time.Millisecond) // the tick of a poll
	}
}

// Nor does it matter how many answers are lost: of several members with Ordered, of one without.
func TestOrderWithoutAnswers(t *testing.T) {
	t.Parallel()
	for members, ordered := range map[int]bool{1: false, 3: true} {
		t.Run(fmt.Sprintf("ordered %v", ordered), func(t *testing.T) {
			t.Parallel()
			const each = 1000
			server := shared.start(t)
			b, out := broker(t, server.Addr), fresh()
			group := Group{Name: "group", Takeover: time.Second, Streams: []string{fresh(), fresh(), fresh()}, Ordered: ordered}
			for _, stream := range group.Streams {
				write(t, b, numbered(stream, each)...)
			}
			var losses atomic.Int64
			lossy := b
			lossy.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				var dialer net.Dialer
				conn, err := dialer.DialContext(ctx, network, addr)
				return &lossyConn{conn, &losses}, err
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			var working sync.WaitGroup
			defer working.Wait()
			defer cancel()
			for i := range members {
				group.Member = fmt.Sprintf("member-%d", i)
				c := join(t, lossy, group)
				working.Go(func() { echo(ctx, c, out) })
			}
			for int(client(t, server).XLen(ctx, out).Val()) < each*len(group.Streams) && ctx.Err() == nil {
				time.Sleep(time.Millisecond) // the tick of a poll
			}
			wantOrder(t, read(t, b, out), group.Streams, each)
			if losses.Load() == 0 {
				t.Error("no answer was lost")
			}
		})
	}
}

// lossyConn ends at one answer of twenty, which is lost.
type lossyConn struct {
	net.Conn
	losses *atomic.Int64
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && rand.IntN(20) == 0 {
		c.losses.Add(1)
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// wantOrder wants the results of echo to be those of each numbered record of streams, once and in order.
func wantOrder(t *testing.T, results []serving.StreamRecord, streams []string, each int) {
	t.Helper()
	next := map[string]int{}
	for _, r := range results {
		if n, err := strconv.Atoi(string(r.Value)); err != nil || n != next[string(r.Key)] {
			t.Fatalf("record %s of %s comes instead of %d", r.Value, r.Key, next[string(r.Key)])
		}
		next[string(r.Key)]++
	}
	for _, stream := range streams {
		if next[stream] != each {
			t.Errorf("%d results of %d in %s", next[stream], each, stream)
		}
	}
}

// echo has a member work, with a window: it polls on while some records are in flight, and commits them in a mixed
// order, but that of their stream. The results have their stream as their key.
func echo(ctx context.Context, c *Consumer, out string) {
	var window []serving.StreamRecord
	for ctx.Err() == nil {
		waiting, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		records, err := c.Poll(waiting, 50)
		stop()
		window = append(window, records...)
		if err == nil && len(window) < 100 {
			continue
		}
		some := slices.Clone(window[:min(len(window), 75)])
		messages := make([]serving.StreamMessage, len(some))
		for i, r := range some {
			messages[i] = serving.StreamMessage{Stream: out, Key: []byte(r.Stream), Value: r.Value}
		}
		if len(some) > 0 && try(ctx, c, some, messages) == nil {
			window = window[len(some):]
		}
		window = slices.DeleteFunc(window, func(r serving.StreamRecord) bool { return r.IsLost() })
	}
}
