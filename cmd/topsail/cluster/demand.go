package cluster

import (
	"cmp"
	"context"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/adapter/influxdemand"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// influxConfig is where InfluxDB is. InfluxDB's own variables are read where ours
// say nothing.
func (p *parts) influxConfig() influxdemand.Config {
	c := influxdemand.Config{
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
func (p *parts) openDemand() (*influxdemand.Store, error) {
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
	store, err := influxdemand.New(c)
	if err != nil {
		return nil, err
	}
	p.Metrics.CounterFunc("topsail_demand_dropped_total", "Demand reports that were not written to InfluxDB.", func() float64 { return float64(store.Dropped()) })
	p.Metrics.GaugeFunc("topsail_demand_waiting", "Demand reports waiting to be written to InfluxDB.", func() float64 { return float64(store.Waiting()) })
	return store, nil
}

// report writes what the meter counts to InfluxDB until ctx ends.
func (p *parts) report(ctx context.Context, as, name string, meter *demand.Meter) error {
	store, err := p.openDemand()
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all errgroup.Group
	all.Go(func() error { return role.Ended(writing, store.Run(writing)) })
	all.Go(func() error {
		defer stop() // after the last report
		reporter := demand.Reporter{Source: serving.DemandSource{Role: as, Name: name}, Meter: meter, Sink: store}
		reporter.Run(ctx)
		return nil
	})
	return all.Wait()
}

// decisions writes the scheduler's decisions to InfluxDB.
type decisions struct{ *influxdemand.Store }

// AddDecision implements scheduler.Journal.
func (d decisions) AddDecision(_ context.Context, one serving.Decision) error {
	d.WriteDecision(one)
	return nil
}
