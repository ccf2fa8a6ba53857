package influxdb

import (
	"hash/fnv"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/influxdata/influxdb-client-go/v2/api/write"

	"github.com/topsail-serving/topsail/internal/activity"
	"github.com/topsail-serving/topsail/serving"
)

const (
	measurementDemand    = "topsail_demand"
	measurementAlive     = "topsail_alive"
	measurementDecisions = "topsail_decisions"
)

// maxText bounds a string field, in bytes: 64 KB is what InfluxDB documents.
const maxText = 4 << 10

// append appends the points of the entry. Tags have few values; the reporting replica is a field,
// because names of replicas never repeat. Whole numbers are signed, which every version of
// InfluxDB takes.
func (e entry) append(points []*write.Point) []*write.Point {
	switch {
	case e.decision != nil:
		return append(points, decisionPoint(e.decision))
	case e.metrics != nil:
		return append(points, e.metrics...)
	}
	r := e.report
	points = append(points, alivePoint(r))
	for i := range r.Demands {
		points = append(points, demandPoint(r, &r.Demands[i]))
	}
	return points
}

// alivePoint says that a source lives, and is all that ReadDemand reads of a report.
func alivePoint(r *serving.DemandReport) *write.Point {
	return write.NewPointWithMeasurement(measurementAlive).
		AddTag("role", tag(r.Source.Role)).
		AddField("last", r.Last).
		AddField("report", encode(r)).
		AddField("source", r.Source.Name).
		AddField("versions", int64(len(r.Demands))).
		SetTime(moment(r.Second, r.Source.Name))
}

func demandPoint(r *serving.DemandReport, d *serving.Demand) *write.Point {
	p := write.NewPointWithMeasurement(measurementDemand).
		AddTag("model", tag(d.Model)).
		AddTag("role", tag(r.Source.Role)).
		AddTag("version", tag(d.Version))
	for i, v := range figures(d) {
		if says(r.Source.Role, i) {
			p.AddField(columns[i], int64(min(v, math.MaxInt64)))
		}
	}
	return p.AddField("source", r.Source.Name).SetTime(moment(r.Second, r.Source.Name))
}

// metricPoint is what a process of a role did for an app, version or stage.
func metricPoint(role string, p activity.Point, at time.Time) *write.Point {
	to := write.NewPointWithMeasurement(p.Measurement).AddTag("role", tag(role)).SetTime(at)
	for name, value := range p.Tags {
		to.AddTag(name, tag(value))
	}
	for name, value := range p.Fields {
		to.AddField(name, value)
	}
	return to.SortTags().SortFields()
}

func decisionPoint(d *serving.Decision) *write.Point {
	return write.NewPointWithMeasurement(measurementDecisions).
		AddTag("model", tag(d.Model)).
		AddTag("version", tag(d.Version)).
		AddField("error", short(d.Error)).
		AddField("fence", int64(min(d.Fence, math.MaxInt64))).
		AddField("from", int64(d.From)).
		AddField("leader", short(d.Leader)).
		AddField("outcome", d.Outcome).
		AddField("reason", short(d.Reason)).
		AddField("rule", d.Rule).
		AddField("to", int64(d.To)).
		SetTime(d.At)
}

// moment is the time of a report's points: its second, and within it a fraction that
// is the source's own forever. So points of two sources, which differ in nothing
// else that InfluxDB tells points apart by, do not overwrite each other, and those of
// a report that is written twice do.
func moment(second time.Time, source string) time.Time {
	h := fnv.New64a()
	h.Write([]byte(source))
	return second.Add(time.Duration(h.Sum64() % uint64(time.Second)))
}

// tag is a name without what the line protocol has no way to write in a tag. Names
// of models and versions have nothing of that.
func tag(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '\\' || unicode.IsControl(c) {
			return '_'
		}
		return c
	}, name)
}

// short cuts a text that may be of any length.
func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}
