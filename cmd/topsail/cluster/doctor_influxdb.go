package cluster

import (
	"context"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
)

// checkInfluxDB asks InfluxDB how it is, writes a point and reads it.
func (p *parts) checkInfluxDB(ctx context.Context) []doctor.Finding {
	const check = "influxdb"
	store, err := newParts(p.Config, p.Log).openDemand() // it has metrics, which can be registered once
	if err != nil {
		return []doctor.Finding{doctor.Broken(ctx, check, err, "correct the settings [influxdb]")}
	}
	d, err := store.Diagnose(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Broken(ctx, check, err, "start InfluxDB, or set influxdb.url")}
	}
	bucket := doctor.Good("influxdb bucket", "%s can be written and read", p.influxConfig().Bucket)
	switch {
	case d.Write != nil:
		bucket = doctor.Broken(ctx, bucket.Check, d.Write, "create the bucket influxdb.bucket (in version 1 the database), and give the token write access")
	case d.Read != nil:
		bucket = doctor.Broken(ctx, bucket.Check, d.Read, "give the token read access; in version 1 set flux-enabled = true under [http]")
	}
	return append([]doctor.Finding{doctor.Good(check, "version %s", d.Version), bucket}, doctor.Clock("influxdb clock", d.Ahead)...)
}
