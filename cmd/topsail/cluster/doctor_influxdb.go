package cluster

import (
	"context"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/check"
)

// checkInfluxDB asks InfluxDB how it is, writes a point and reads it.
func (p *parts) checkInfluxDB(ctx context.Context) []check.Finding {
	const name = "influxdb"
	store, err := newParts(p.Config, p.Log).openDemand() // it has metrics, which can be registered once
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, "correct the settings [influxdb]")}
	}
	d, err := store.Diagnose(ctx)
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, "start InfluxDB, or set influxdb.url")}
	}
	bucket := check.Good("influxdb bucket", "%s can be written and read", p.influxConfig().Bucket)
	switch {
	case d.Write != nil:
		bucket = check.Broken(ctx, bucket.Name, d.Write, "create the bucket influxdb.bucket (in version 1 the database), and give the token write access")
	case d.Read != nil:
		bucket = check.Broken(ctx, bucket.Name, d.Read, "give the token read access; in version 1 set flux-enabled = true under [http]")
	}
	return append([]check.Finding{check.Good(name, "version %s", d.Version), bucket}, doctor.Clock("influxdb clock", d.Ahead)...)
}
