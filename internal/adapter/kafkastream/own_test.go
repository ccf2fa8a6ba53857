//go:build servers

package kafkastream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestOwn has the tests that need a broker of their own, one after the other: it takes seconds
// to start.
func TestOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := testca.New(t, "authority")
	pair := ca.Issue(t, "localhost", "127.0.0.1")
	server := own(t, servers.KafkaOptions{
		Users:       map[string]string{"topsail": "secret"},
		Features:    []string{"transaction.version=1"}, // as before Kafka 4
		Certificate: testca.Write(t, dir, "server.pem", slices.Concat(pair.Key, pair.Cert)),
	})
	for addr, want := range map[string]bool{server.Addr: false, shared.start(t).Addr: true} {
		if implicit, err := broker(t, addr).implicit(t.Context(), newConditions(slog.New(slog.DiscardHandler))); err != nil || implicit != want {
			t.Errorf("transactions are implicit: %v, %v, want %v", implicit, err, want)
		}
	}
	t.Run("secure", func(t *testing.T) { secure(t, server, testca.Write(t, dir, "ca.pem", ca.PEM)) })
	t.Run("frozen", func(t *testing.T) { frozen(t, server) })
	t.Run("troubles", func(t *testing.T) { lagSaysWhy(t, server) })
}

// lagSaysWhy says within seconds that a topic does not exist, and that the broker is away.
func lagSaysWhy(t *testing.T, server *servers.Server) {
	b := broker(t, server.Addr)
	in, out := fresh(t, b, 1, nil), fresh(t, b, 1, nil)
	missing := join(t, b, Group{Name: "missing", Member: "a", Streams: []string{"missing"}, Takeover: takeover})
	if _, err := missing.Lag(t.Context()); !errors.Is(err, kerr.UnknownTopicOrPartition) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without the topic: %v", err)
	}
	write(t, b, numbered(in, 10)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	records := poll(t, c, 5)
	commit(t, c, records, numbered(out, len(records)))
	want := int64(10 - len(records))
	await := func(what string, good func(records int64, err error) bool) {
		t.Helper()
		for end := time.Now().Add(patience); ; {
			records, err := c.Lag(t.Context())
			if good(records, err) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: a lag of %d, error %v", what, records, err)
			}
		}
	}
	reached := func(records int64, err error) bool { return err == nil && records == want }
	await("at first", reached)
	server.Kill()
	await("killed", func(_ int64, err error) bool { return err != nil && strings.Contains(err.Error(), server.Addr) })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await("started again", reached)
}

// secure goes through TLS and each mechanism, with a password that is wrong at first.
func secure(t *testing.T, server *servers.Server, caFile string) {
	plain := broker(t, server.Addr)
	tls, err := access.TLS{CAFile: caFile, ServerName: "localhost"}.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			var said buffer
			var right atomic.Bool
			b := Broker{
				Addrs: []string{next(t, server.Addr)}, TLS: tls, Mechanism: mechanism, Username: "topsail",
				Password: func() (string, error) {
					if right.Load() {
						return "secret", nil
					}
					return "hunter2", nil
				},
				Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			in, out := fresh(t, plain, 1, nil), fresh(t, plain, 1, nil)
			write(t, plain, numbered(in, 3)...)
			c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}})
			refused := func() bool {
				text := said.String()
				return strings.Contains(text, "cannot get into a broker of kafka") && strings.Contains(strings.ToLower(text), "authentication")
			}
			for end := time.Now().Add(patience); !refused(); {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err := c.Poll(ctx, 3)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("with a wrong password: %v", err)
				}
				if time.Now().After(end) {
					t.Fatalf("the log says %s", said.String())
				}
			}
			right.Store(true)
			commit(t, c, poll(t, c, 3), numbered(out, 3))
			results(t, b, out, 3)
			write(t, b, numbered(in, 1)...)
			poll(t, c, 1)
			if text := said.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "secret") {
				t.Errorf("the log has a password: %s", text)
			}
		})
	}
}

// While the broker is frozen, Poll ends with its context, and Commit within its time.
func frozen(t *testing.T, server *servers.Server) {
	b := broker(t, server.Addr)
	in, out := fresh(t, b, 1, nil), fresh(t, b, 1, nil)
	write(t, b, numbered(in, 10)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	var records []serving.StreamRecord
	for len(records) < 10 { // and the client has no more
		records = append(records, poll(t, c, 10)...)
	}
	server.Freeze()
	t.Cleanup(server.Thaw)
	began := time.Now()
	if err := try(t.Context(), c, records, numbered(out, len(records))); err == nil {
		t.Fatal("a frozen broker commits")
	}
	if took := time.Since(began); took > 3*(takeover+leaveWithin) {
		t.Errorf("Commit takes %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began = time.Now()
	if _, err := c.Poll(ctx, 5); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Poll: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Poll takes %v", took)
	}
	server.Thaw()
	for len(read(t, b, out)) < 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		records, err := c.Poll(ctx, 5)
		cancel()
		if err == nil {
			err = try(t.Context(), c, records, numbered(out, len(records)))
		}
		if err != nil {
			t.Log(err) // it comes again
		}
	}
	results(t, b, out, 10)
}

// next is the address one port on.
func next(t *testing.T, addr string) string {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}
