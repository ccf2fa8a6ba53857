package influxdb

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api/write"

	"github.com/topsail-serving/topsail/internal/activity"
	"github.com/topsail-serving/topsail/serving"
)

// Config says which InfluxDB, and how to get in.
type Config struct {
	URL    string      // such as http://127.0.0.1:8086
	Org    string      // of 2.x; 1.8 takes no notice
	Bucket string      // of 1.8: "database/retention policy", such as topsail/autogen
	TLS    *tls.Config // nil: the system's authorities
	// Token is asked for each request, and once more, with refused, after a server has
	// refused what it gave: then the source is to be read again. nil or no bytes: none
	// is shown. The one of 1.8 is "user:password".
	Token func(refused bool) []byte
	Log   *slog.Logger // nil: nothing is logged
}

// Store writes and reads demand, and writes metrics. Run must run for what is written to leave.
type Store struct {
	cfg     Config
	client  influxdb2.Client
	demand  *writer
	metrics *writer       // of their own: there are more, and no scheduler waits for them
	start   string        // tells this process from an earlier one of its name
	corrupt sync.Once     // is said once
	cut     atomic.Uint64 // intervals of which points were too many
}

// New makes a store; it connects to nothing yet.
func New(cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("influxdb: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("influxdb: %q is not an address: write it as http://HOST:PORT", cfg.URL)
	}
	if cfg.Bucket == "" {
		return nil, errors.New("influxdb: no bucket: name it, for version 1.8 as DATABASE/autogen")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	options := influxdb2.DefaultOptions().SetHTTPClient(newHTTPClient(cfg)).SetUseGZip(true).SetLogLevel(0).SetApplicationName("topsail")
	s := &Store{cfg: cfg, start: rand.Text(), client: influxdb2.NewClientWithOptions(cfg.URL, "", options)}
	api := s.client.WriteAPIBlocking(cfg.Org, cfg.Bucket)
	write := func(ctx context.Context, points []*write.Point) error { return api.WritePoint(ctx, points...) }
	s.demand = newWriter("demand", maxDemand, write, cfg.Log)
	s.metrics = newWriter("metrics", maxMetrics, write, cfg.Log)
	return s, nil
}

// WriteDemand hands over a report, which is the store's from then on. It does not block: while
// InfluxDB is unavailable the newest reports are kept, and the oldest dropped.
func (s *Store) WriteDemand(r serving.DemandReport) { s.demand.put(entry{report: &r}) }

// WriteDecision records what the scheduler decided, as WriteDemand does a report.
func (s *Store) WriteDecision(d serving.Decision) { s.demand.put(entry{decision: &d}) }

// WriteMetrics hands over what a process did in the interval that began at a time, with the number of points that were
// left out. It does not block, either.
func (s *Store) WriteMetrics(source serving.DemandSource, began time.Time, points []activity.Point, tooMany int) {
	at := moment(began, source.Name+s.start)
	list := make([]*write.Point, len(points))
	for i, p := range points {
		list[i] = metricPoint(source.Role, p, at)
	}
	s.metrics.put(entry{metrics: list})
	if tooMany > 0 && s.cut.Add(1) == 1 {
		s.cfg.Log.Warn("more apps, versions and stages are active than InfluxDB is told of; metrics of some are left out", "written", len(points), "left_out", tooMany)
	}
}

// Dropped is how many reports and decisions were given up since the start, for lack of room or
// because InfluxDB refused them for good.
func (s *Store) Dropped() uint64 { return s.demand.dropped() }

// DroppedMetrics is of how many intervals metrics were given up since the start, for the same reasons or because there
// were too many.
func (s *Store) DroppedMetrics() uint64 { return s.metrics.dropped() + s.cut.Load() }

// Waiting is how many reports and decisions wait to be written.
func (s *Store) Waiting() int { return s.demand.waiting() }

// Run writes until ctx ends, and then tries once more for a moment. What writes
// is to have ended by then.
func (s *Store) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { s.metrics.run(ctx) })
	s.demand.run(ctx)
	both.Wait()
	return nil
}
