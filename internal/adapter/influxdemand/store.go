package influxdemand

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api/write"

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

// Store writes and reads demand. Run must run for what is written to leave.
type Store struct {
	cfg     Config
	client  influxdb2.Client
	writer  *writer
	corrupt sync.Once // is said once
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
	s := &Store{cfg: cfg, client: influxdb2.NewClientWithOptions(cfg.URL, "", options)}
	api := s.client.WriteAPIBlocking(cfg.Org, cfg.Bucket)
	s.writer = newWriter(func(ctx context.Context, points []*write.Point) error { return api.WritePoint(ctx, points...) }, cfg.Log)
	return s, nil
}

// WriteDemand hands over a report, which is the store's from then on. It does not block: while
// InfluxDB is unavailable the newest reports are kept, and the oldest dropped.
func (s *Store) WriteDemand(r serving.DemandReport) { s.writer.put(entry{report: &r}) }

// WriteDecision records what the scheduler decided, as WriteDemand does a report.
func (s *Store) WriteDecision(d serving.Decision) { s.writer.put(entry{decision: &d}) }

// Dropped is how many reports and decisions were given up since the start, for lack of room or
// because InfluxDB refused them for good.
func (s *Store) Dropped() uint64 { return s.writer.dropped() }

// Waiting is how many reports and decisions wait to be written.
func (s *Store) Waiting() int { return s.writer.waiting() }

// Run writes until ctx ends, and then tries once more for a moment. What writes
// is to have ended by then.
func (s *Store) Run(ctx context.Context) error { return s.writer.run(ctx) }
