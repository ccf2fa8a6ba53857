package influxdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// ReadDemand is the reports of the seconds from from, and before to, by second and
// source. A source that did not report a second is absent in it.
func (s *Store) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	start, stop := wholeSecond(from), wholeSecond(to)
	if ctx.Err() != nil || !start.Before(stop) {
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	reports, err := s.query(ctx, demandQuery(s.cfg.Bucket, start, stop))
	if err != nil {
		return nil, fmt.Errorf("read demand from InfluxDB: %w", err)
	}
	slices.SortFunc(reports, func(a, b serving.DemandReport) int {
		return cmp.Or(a.Second.Compare(b.Second), cmp.Compare(a.Source.Role, b.Source.Role), cmp.Compare(a.Source.Name, b.Source.Name))
	})
	return reports, nil
}

// wholeSecond is the first one that is not before t.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - 1).UTC().Truncate(time.Second)
}

// demandQuery is within what Flux 0.65 of InfluxDB 1.8 knows.
func demandQuery(bucket string, start, stop time.Time) string {
	return fmt.Sprintf("from(bucket: %s)\n |> range(start: %s, stop: %s)\n |> filter(fn: (r) => r._measurement == %s and r._field == \"report\")",
		quote(bucket), start.Format(time.RFC3339), stop.Format(time.RFC3339), quote(measurementAlive))
}

// quote writes a string literal of Flux.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func (s *Store) query(ctx context.Context, flux string) ([]serving.DemandReport, error) {
	rows, err := s.client.QueryAPI(s.cfg.Org).Query(ctx, flux) // an API of its own: it is not safe for two at once
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // what matters is what was read
	var reports []serving.DemandReport
	for rows.Next() {
		text, _ := rows.Record().Value().(string)
		r, err := decode(text)
		if err != nil {
			s.corrupt.Do(func() {
				s.cfg.Log.Warn("skipped a demand report that cannot be read, and will skip others", "err", err)
			})
			continue
		}
		reports = append(reports, r)
	}
	return reports, rows.Err()
}
