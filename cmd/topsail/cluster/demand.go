package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/internal/activity"
	"github.com/topsail-serving/topsail/internal/adapter/influxdb"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/serving"
)

// influxConfig is where InfluxDB is. InfluxDB's own variables are read where ours
// say nothing.
func (p *parts) influxConfig() influxdb.Config {
	c := influxdb.Config{
		URL: p.Config.InfluxDB.URL, Org: cmp.Or(p.Config.InfluxDB.Org, os.Getenv("INFLUX_ORG")), Bucket: p.Config.InfluxDB.Bucket, Log: p.Log,
	}
	if p.Config.ByDefault("influxdb.url") {
		c.URL = cmp.Or(os.Getenv("INFLUX_HOST"), c.URL)
	}
	if p.Config.ByDefault("influxdb.bucket") {
		c.Bucket = cmp.Or(os.Getenv("INFLUX_BUCKET"), c.Bucket)
	}
	return c
}

// openDemand opens the demand in InfluxDB.
func (p *parts) openDemand() (*influxdb.Store, error) {
	c := p.influxConfig()
	if token := os.Getenv("INFLUX_TOKEN"); token != "" {
		c.Token = func(bool) []byte { return []byte(token) }
	}
	if file := p.Config.InfluxDB.TokenFile; file != "" {
		token, err := p.Token(file)
		if err != nil {
			return nil, err
		}
		c.Token = func(refused bool) []byte {
			if refused {
				return token.Fresh()
			}
			return token.Bytes()
		}
	}
	if p.Config.TLS.CAFile != "" {
		tls, err := p.TLS.Client()
		if err != nil {
			return nil, err
		}
		c.TLS = tls
	}
	if every := p.Config.InfluxDB.Metrics; every > 0 && every < time.Second {
		return nil, fmt.Errorf("influxdb.metrics_micros is %d: it is at least 1000000, or 0 for no metrics", every.Microseconds())
	}
	store, err := influxdb.New(c)
	if err != nil {
		return nil, err
	}
	p.Metrics.CounterFunc("topsail_demand_dropped_total", "Demand reports that were not written to InfluxDB.", func() float64 { return float64(store.Dropped()) })
	p.Metrics.GaugeFunc("topsail_demand_waiting", "Demand reports waiting to be written to InfluxDB.", func() float64 { return float64(store.Waiting()) })
	p.Metrics.CounterFunc("topsail_metrics_dropped_total", "Intervals whose metrics were not written to InfluxDB, or not all of them.", func() float64 { return float64(store.DroppedMetrics()) })
	return store, nil
}

// reportMetrics reports what the apps, versions and stages of this process do, as its metrics count it.
func (p *parts) reportMetrics(source serving.DemandSource, to *influxdb.Store) phase.Job {
	return func(ctx context.Context) error {
		if p.Config.InfluxDB.Metrics == 0 {
			return nil
		}
		reporter := activity.Reporter{Counts: activity.NewCounts(p.Metrics.Read), Every: p.Config.InfluxDB.Metrics}
		reporter.Write = func(began time.Time, points []activity.Point, tooMany int) {
			to.WriteMetrics(source, began, points, tooMany)
		}
		reporter.Run(ctx)
		return nil
	}
}

// metricsMicros is what sidecars are told, or nothing for what they know.
func (p *parts) metricsMicros() string {
	if p.Config.ByDefault("influxdb.metrics_micros") {
		return ""
	}
	return strconv.FormatInt(p.Config.InfluxDB.Metrics.Microseconds(), 10)
}

// counted is what one role of a process counts.
type counted struct {
	as, name string
	meter    *demand.Meter
	from     <-chan struct{} // when it is closed, reports begin; nil: at once
}

// report reports what is counted, the last second when it ends.
func (c counted) report(to demand.Sink) phase.Job {
	reporter := demand.Reporter{Source: serving.DemandSource{Role: c.as, Name: c.name}, Meter: c.meter, Sink: to}
	return func(ctx context.Context) error {
		if c.from != nil {
			select {
			case <-c.from:
			case <-ctx.Done():
				return nil
			}
		}
		reporter.Run(ctx)
		return nil
	}
}

// decisions writes the scheduler's decisions to InfluxDB.
type decisions struct{ *influxdb.Store }

// AddDecision implements scheduler.Journal.
func (d decisions) AddDecision(_ context.Context, one serving.Decision) error {
	d.WriteDecision(one)
	return nil
}
