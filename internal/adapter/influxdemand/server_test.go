package influxdemand

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/servers"
)

// shared is the InfluxDB 1.8 of all tests that do no harm to it, from the first of
// them on.
var shared struct {
	start sync.Once
	dir   string
	*servers.Server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.Server != nil {
		shared.Stop()
	}
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

// server is the address of the shared InfluxDB.
func server(t testing.TB) string {
	t.Helper()
	shared.start.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "influxdemand"); shared.err == nil {
			shared.Server, shared.err = start(shared.dir)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.Addr
}

func start(dir string) (*servers.Server, error) {
	port, err := servers.FreePorts(2)
	if err != nil {
		return nil, err
	}
	s, err := servers.InfluxDB(dir, port)
	if err != nil {
		return nil, err
	}
	return s, s.Start(context.Background())
}

var databases atomic.Int64

// database makes one of its own for a test, and says its bucket.
func database(t testing.TB, addr string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	resp, err := http.PostForm("http://"+addr+"/query", url.Values{"q": {`CREATE DATABASE "` + name + `"`}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || strings.Contains(string(body), "error") {
		t.Fatalf("create database: %s: %s, %v", resp.Status, body, err)
	}
	return name + "/autogen"
}

// open makes a store that runs until the test ends.
func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return s
}

func TestDemandContract(t *testing.T) {
	t.Parallel()
	contract.Demand(t, func(t *testing.T) contract.DemandStore {
		return open(t, Config{URL: "http://" + server(t), Bucket: database(t, server(t)), Log: testLog(t)})
	})
}

// testLog shows what is logged when the test fails.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, nil))
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(line []byte) (int, error) {
	w.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// report is what one gateway saw of some versions.
func report(source string, second time.Time, versions int) serving.DemandReport {
	r := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: source}, Second: second}
	for i := range versions {
		r.Demands = append(r.Demands, serving.Demand{
			ModelID:  serving.ModelID{Model: fmt.Sprintf("model-%03d", i), Version: "1"},
			Arrivals: uint64(100 + i), Unserved: 1, Defaults: 2, Concurrency: 123456789,
		})
	}
	return r
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, within time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
