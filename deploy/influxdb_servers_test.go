//go:build servers

package deploy

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/activity"
	"github.com/topsail-serving/topsail/internal/adapter/influxdb"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

const influxToken = "the-token-of-the-test"

// TestTheDashboardReadsInfluxDB has a process asked, writes what its metrics say as a process of a cluster does, and runs
// each query of the dashboard, in both versions of InfluxDB.
func TestTheDashboardReadsInfluxDB(t *testing.T) {
	page := startLocal(t)
	began := time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
	points, tooMany := activity.NewCounts(func(readers obs.Readers) { readPage(t, page, readers) }).Take()
	if len(points) < 6 || tooMany != 0 {
		t.Fatalf("%d points, and %d too many", len(points), tooMany)
	}
	for name, server := range map[string]func(t *testing.T) influxdb.Config{"1.8": influx1, "2": influx2} {
		t.Run(name, func(t *testing.T) {
			cfg := server(t)
			write(t, cfg, func(s *influxdb.Store) {
				s.WriteMetrics(serving.DemandSource{Role: "gateway", Name: "g"}, began, points, 0)
				s.WriteMetrics(serving.DemandSource{Role: "gateway", Name: "busy"}, began, busy(), 0)
				s.WriteMetrics(serving.DemandSource{Role: "gateway", Name: "other"}, began, busy(), 0)
				forest := serving.ModelID{Model: "forest", Version: "1"}
				s.WriteDemand(serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "g"}, Second: began, Demands: []serving.Demand{{ModelID: forest, Arrivals: 50}}})
				s.WriteDecision(serving.Decision{ModelID: forest, From: 1, To: 3, At: began})
			})
			wait.Until(t, "what was written", func() bool {
				return len(ask(t, cfg, `from(bucket: v.defaultBucket) |> range(start: v.timeRangeStart, stop: v.timeRangeStop) |> filter(fn: (r) => r._measurement == "topsail_decisions" and r._field == "to")`, began)) > 0
			}, func() string { return "nothing" })
			got := map[string]map[string]float64{}
			for _, p := range readDashboard(t, "topsail-influxdb.json").Panels {
				for _, target := range p.Targets {
					rows := ask(t, cfg, target.Query, began)
					if len(rows) == 0 {
						t.Errorf("panel %s shows nothing of\n%s", p.Title, target.Query)
					}
					if got[p.Title] == nil {
						got[p.Title] = map[string]float64{}
					}
					maps.Copy(got[p.Title], rows)
				}
			}
			shown(t, got)
			for _, v := range readDashboard(t, "topsail-influxdb.json").Templating.List[1:] {
				if list, want := answer(t, cfg, v.Definition, began), map[string]string{"app": ",wine", "model": ",forest"}[v.Name]; !strings.Contains(list, want+"\r\n") {
					t.Errorf("the variable %s has %s", v.Name, list)
				}
			}
		})
	}
}

// busy is what one of two processes did that had much to do, of an app and a model that have nothing else.
func busy() []activity.Point {
	app, version := map[string]string{"app": "wine"}, map[string]string{"model": "forest", "version": "1"}
	both := map[string]string{"app": "wine", "model": "forest", "version": "1"}
	stage := map[string]string{"model": "forest", "version": "1", "stage": "scale"}
	return []activity.Point{
		{Measurement: "topsail_apps", Tags: app, Fields: map[string]float64{
			"answers_ok": 60, "answers_missed_slo": 40, "late_outputs": 10, "refused_limit": 20,
			"query_seconds_bucket_0.01": 0, "query_seconds_bucket_0.02": 90, "query_seconds_bucket_0.5": 0, "query_seconds_bucket_1": 10,
		}},
		{Measurement: "topsail_app_models", Tags: both, Fields: map[string]float64{"asked": 30, "answered": 15, "shed": 10, "feedback": 8}},
		{Measurement: "topsail_versions", Tags: version, Fields: map[string]float64{
			"dropped_full": 5, "queue_length": 7, "batch_size_sum": 64, "batch_size_count": 4, "containers_ready": 1,
			"first_part_seconds_bucket_0.1": 0, "first_part_seconds_bucket_0.25": 4, "next_part_seconds_bucket_0.01": 3,
		}},
		{Measurement: "topsail_stages", Tags: stage, Fields: map[string]float64{"queue_length": 2}},
	}
}

// shown holds what panels show of them to what it should be.
func shown(t *testing.T, got map[string]map[string]float64) {
	for _, want := range []struct {
		panel, series string
		value         float64
	}{
		{"Predictions in time", "app=wine", 0.6},
		{"Predictions in time", "app=sum", 1},
		{"Answers", "app=wine", 20}, // of both, in 10 s
		{"Time to the answer", "app=wine percentile=p50", 0.01 + 0.01*100/180},
		{"Time to the answer", "app=wine percentile=p99", 0.5 + 0.5*18/20},
		{"Defaults by cause", "cause=missed_slo", 8},
		{"Refused", "app=wine reason=limit", 4},
		{"Late outputs", "app=wine", 2},
		{"Requests to models", "model=forest version=1", 5},
		{"Refused or dropped", "model=forest status=full version=1", 1},
		{"Batch size", "model=forest version=1", 16},
		{"Queue", "model=forest version=1", 14},
		{"Containers", "model=forest version=1", 2},
		{"Parts of answers", "model=forest part=first percentile=p95 version=1", 0.1 + 0.15*0.95},
		{"Parts of answers", "model=forest part=next percentile=p95 version=1", 0.01 * 0.95},
		{"Decisions", "model=forest version=1", 3},
		{"Queue of stages", "model=forest stage=scale version=1", 4},
		{"Asked", "app=wine model=forest version=1", 6},
		{"Answered when asked", "app=wine model=forest version=1", 0.5},
		{"Agreement", "app=wine model=forest version=1", 0},
		{"Left out", "app=wine model=forest version=1", 0.25},
		{"Error of models", "app=wine model=forest version=1", 0},
	} {
		if v, there := got[want.panel][want.series]; !there || math.Abs(v-want.value) > 1e-9 {
			t.Errorf("panel %s shows %v for %q, want %v; it has %v", want.panel, v, want.series, want.value, slices.Sorted(maps.Keys(got[want.panel])))
		}
	}
}

// readPage has the metrics of a process read, as Registry.Read does in that process.
func readPage(t *testing.T, page string, readers obs.Readers) {
	t.Helper()
	query := url.Values{"name[]": slices.Sorted(maps.Keys(readers))}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"?"+query.Encode(), nil)
	require.NoError(t, err)
	req.Header.Set("Accept", obs.FamiliesType)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	families, err := obs.ReadFamilies(resp.Body, 1<<20)
	require.NoError(t, err)
	readers.ReadFamilies(families)
}

func influx1(t *testing.T) influxdb.Config {
	s, err := servers.InfluxDB(t.TempDir(), freePorts(t, 2))
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.NoError(t, s.Start(t.Context()))
	return influxdb.Config{URL: "http://" + s.Addr, Bucket: "topsail/autogen"}
}

func influx2(t *testing.T) influxdb.Config {
	s, err := servers.InfluxDB2(t.TempDir(), freePorts(t, 1), influxToken)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.NoError(t, s.Start(t.Context()))
	return influxdb.Config{URL: "http://" + s.Addr, Org: servers.InfluxOrg, Bucket: servers.InfluxBucket, Token: func(bool) []byte { return []byte(influxToken) }}
}

// write has a store written to, and everything out.
func write(t *testing.T, cfg influxdb.Config, some func(*influxdb.Store)) {
	t.Helper()
	s, err := influxdb.New(cfg)
	require.NoError(t, err)
	some(s)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, s.Run(ctx))
	if s.Dropped()+s.DroppedMetrics() > 0 {
		t.Fatalf("%d reports and %d intervals were refused", s.Dropped(), s.DroppedMetrics())
	}
}

var variable = regexp.MustCompile(`\$\{(app|model):regex\}`)

// ask says the last value of each series that a query has.
func ask(t *testing.T, cfg influxdb.Config, flux string, began time.Time) map[string]float64 {
	t.Helper()
	return lastOfEach(t, answer(t, cfg, flux, began))
}

// answer runs a query as Grafana does.
func answer(t *testing.T, cfg influxdb.Config, flux string, began time.Time) string {
	t.Helper()
	flux = variable.ReplaceAllString(flux, ".*")
	flux = strings.NewReplacer(
		"v.defaultBucket", strconv.Quote(cfg.Bucket), "v.windowPeriod", "10s",
		"v.timeRangeStart", began.Add(-time.Minute).Format(time.RFC3339), "v.timeRangeStop", began.Add(time.Minute).Format(time.RFC3339),
	).Replace(flux)
	body, err := json.Marshal(map[string]any{"query": flux, "dialect": map[string]any{"header": true}})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cfg.URL+"/api/v2/query?org="+cfg.Org, strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if cfg.Token != nil {
		req.Header.Set("Authorization", "Token "+string(cfg.Token(false)))
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode != http.StatusOK || strings.Contains(string(text), "\r\nerror,") || strings.Contains(string(text), ",error,reference") {
		t.Errorf("%s\n%s\n%s", resp.Status, text, flux)
		return ""
	}
	return string(text)
}

// lastOfEach reads tables of CSV, each with its own header.
func lastOfEach(t *testing.T, text string) map[string]float64 {
	t.Helper()
	last := map[string]float64{}
	for table := range strings.SplitSeq(text, "\r\n\r\n") {
		r := csv.NewReader(strings.NewReader(table))
		r.Comment = '#' // what version 1.8 says of columns
		rows, err := r.ReadAll()
		require.NoError(t, err)
		for i, row := range rows {
			if i == 0 {
				continue
			}
			var labels []string
			value := math.NaN()
			for j, column := range rows[0] {
				switch column {
				case "app", "model", "version", "stage", "cause", "status", "outcome", "reason", "percentile", "part":
					labels = append(labels, column+"="+row[j])
				case "_value":
					if row[j] != "" {
						value, err = strconv.ParseFloat(row[j], 64)
						require.NoError(t, err)
					}
				}
			}
			slices.Sort(labels)
			if !math.IsNaN(value) {
				last[strings.Join(labels, " ")] = value
			}
		}
	}
	return last
}
