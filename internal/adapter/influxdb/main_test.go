package influxdb

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// open makes a store that runs until the test ends.
func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
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
