package influxdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
)

// measurementProbe takes the points of Diagnose, one each.
const measurementProbe = "topsail_doctor"

// Diagnosis is how an InfluxDB does, for people.
type Diagnosis struct {
	Version string
	Ahead   *time.Duration // of its clock to ours, to the second; nil: it does not tell
	Write   error          // why the bucket cannot be written, nil where it can
	Read    error          // why what was written cannot be read, nil where it can
}

// Diagnose asks InfluxDB how it is, writes a point and reads it. The error says that
// it does not answer.
func (s *Store) Diagnose(ctx context.Context) (Diagnosis, error) {
	d, err := s.ping(ctx)
	if err != nil {
		return d, err
	}
	at, text := time.Now().UTC(), rand.Text()
	point := influxdb2.NewPoint(measurementProbe, nil, map[string]any{"probe": text}, at)
	if d.Write = s.client.WriteAPIBlocking(s.cfg.Org, s.cfg.Bucket).WritePoint(ctx, point); d.Write == nil {
		d.Read = s.find(ctx, at, text)
	}
	return d, nil
}

// ping asks for what needs no rights.
func (s *Store) ping(ctx context.Context) (Diagnosis, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.client.ServerURL()+"/ping", nil)
	if err != nil {
		return Diagnosis{}, fmt.Errorf("ping InfluxDB: %w", err)
	}
	asked := time.Now()
	resp, err := s.client.HTTPService().DoHTTPRequestWithResponse(req, nil)
	if err != nil {
		return Diagnosis{}, fmt.Errorf("ping InfluxDB: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		return Diagnosis{}, fmt.Errorf("ping InfluxDB: it answers %s", resp.Status)
	}
	d := Diagnosis{Version: resp.Header.Get("X-Influxdb-Version")}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		// The header leaves out the fraction: half a second is the best guess.
		d.Ahead = new(date.Add(time.Second / 2).Sub(asked.Add(time.Since(asked) / 2)))
	}
	return d, nil
}

// find says why the point of a probe is not found, or nil.
func (s *Store) find(ctx context.Context, at time.Time, text string) error {
	flux := fmt.Sprintf("from(bucket: %s)\n |> range(start: %s, stop: %s)\n |> filter(fn: (r) => r._measurement == %s)",
		quote(s.cfg.Bucket), at.Add(-time.Second).Format(time.RFC3339), at.Add(2*time.Second).Format(time.RFC3339), quote(measurementProbe))
	rows, err := s.client.QueryAPI(s.cfg.Org).Query(ctx, flux)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // what matters is what was read
	for rows.Next() {
		if rows.Record().Value() == text {
			return nil
		}
	}
	if rows.Err() != nil {
		return rows.Err()
	}
	return errors.New("what was written is not in the answer")
}
