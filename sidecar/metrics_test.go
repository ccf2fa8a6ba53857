package sidecar

import (
	"math"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// scrape is what a scraper gets. It must be whole, by the server's own account too:
// each series once, each label of it once, each name of one kind.
func scrape(t interface{ Fatalf(string, ...any) }, r *obs.Registry, accept string) string {
	w := httptest.NewRecorder()
	q := httptest.NewRequest("GET", "/metrics", nil)
	q.Header.Set("Accept", accept)
	r.Handler().ServeHTTP(w, q)
	if w.Code != 200 {
		t.Fatalf("a scrape failed with %d: %s", w.Code, w.Body)
	}
	if accept != "" {
		return ""
	}
	if !utf8.Valid(w.Body.Bytes()) {
		t.Fatalf("a scrape is no text: %q", w.Body)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		series := line
		if !strings.HasPrefix(line, "#") {
			series = line[:strings.LastIndexByte(line, ' ')]
			checkLabels(t, series)
		} else if fields := strings.Fields(line); len(fields) > 2 {
			series = fields[1] + fields[2] // HELP or TYPE of a name
		}
		if seen[series] {
			t.Fatalf("%s is exposed twice in\n%s", series, w.Body)
		}
		seen[series] = true
		if strings.HasPrefix(series, "promhttp_metric_handler_errors_total") && !strings.HasSuffix(line, " 0") {
			t.Fatalf("a scrape was cut short: %s", line)
		}
	}
	return w.Body.String()
}

// checkLabels reads the labels of one series: names, each once, with quoted values.
func checkLabels(t interface{ Fatalf(string, ...any) }, series string) {
	_, rest, labelled := strings.Cut(series, "{")
	seen := map[string]bool{}
	for labelled && rest != "}" {
		name, after, _ := strings.Cut(strings.TrimPrefix(rest, ","), "=")
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil || seen[name] || !metricName.MatchString(name) {
			t.Fatalf("the label %q of %s is no label, or one of two: %v", name, series, err)
		}
		seen[name] = true
		rest = after[len(quoted):]
	}
}

func (r *rig) scraped(line string) bool {
	return strings.Contains(scrape(r.t, r.registry, ""), line+"\n")
}

func TestMetricsOfQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.model(slow(10 * ms))
		g := r.gateway()
		for range 3 {
			g.ask(0, -1, tagged(1))
			pass(20 * ms)
		}
		g.ask(0, 5*ms, tagged(2))
		pass(20 * ms)
		for _, line := range []string{
			`topsail_sidecar_answers_total{model="m",replica="m/0",status="ok",version="1"} 3`,
			`topsail_sidecar_answers_total{model="m",replica="m/0",status="late",version="1"} 1`,
			`topsail_sidecar_dropped_total{model="m",replica="m/0",status="late",version="1"} 1`,
			`topsail_sidecar_dropped_total{model="m",replica="m/0",status="full",version="1"} 0`,
			`topsail_sidecar_batch_size_count{model="m",replica="m/0",version="1"} 3`,
			`topsail_sidecar_batch_seconds_sum{model="m",replica="m/0",version="1"} 0.03`,
			`topsail_sidecar_queue_seconds_count{model="m",replica="m/0",version="1"} 3`,
			`topsail_sidecar_containers_ready{model="m",replica="m/0",version="1"} 1`,
			`topsail_sidecar_queue_length{model="m",replica="m/0",version="1"} 0`,
			`topsail_sidecar_wait_seconds{model="m",replica="m/0",version="1"} 0`,
			`topsail_sidecar_profile_seconds{container="0",model="m",replica="m/0",size="1",version="1"} 0.01`,
		} {
			if !r.scraped(line) {
				t.Errorf("%s is missing in\n%s", line, scrape(t, r.registry, ""))
			}
		}
		r.end()
		if text := scrape(t, r.registry, ""); strings.Contains(text, `replica="m/0"`) {
			t.Errorf("the replica has ended, and there is\n%s", text)
		}
	})
}

func TestMetricsOfStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "scale", Workers: 2}, serving.Stage{Name: "rank", After: []string{"scale", serving.QueryInput}})
		r.worker("scale", text, stamps(1, 10*ms))
		r.worker("rank", text, stamps(2, 20*ms))
		pass(0)
		g := r.gateway()
		pass(0)
		for range 3 {
			g.ask(0, -1, tagged(1))
			pass(40 * ms)
		}
		for _, line := range []string{
			`topsail_stage_inputs_total{model="m",replica="m/0",stage="scale",status="ok",version="1"} 3`,
			`topsail_stage_inputs_total{model="m",replica="m/0",stage="rank",status="container",version="1"} 0`,
			`topsail_stage_batch_size_sum{model="m",replica="m/0",stage="rank",version="1"} 3`,
			`topsail_stage_batch_seconds_sum{model="m",replica="m/0",stage="rank",version="1"} 0.06`,
			`topsail_stage_queue_seconds_count{model="m",replica="m/0",stage="scale",version="1"} 3`,
			`topsail_stage_queue_length{model="m",replica="m/0",stage="scale",version="1"} 0`,
			`topsail_stage_workers_ready{model="m",replica="m/0",stage="scale",version="1"} 1`,
			`topsail_stage_workers{after="input",model="m",position="0",replica="m/0",stage="scale",version="1"} 2`,
			`topsail_stage_workers{after="scale,input",model="m",position="1",replica="m/0",stage="rank",version="1"} 1`,
		} {
			if !r.scraped(line) {
				t.Errorf("%s is missing in\n%s", line, scrape(t, r.registry, ""))
			}
		}
		r.end()
		if text := scrape(t, r.registry, ""); strings.Contains(text, `replica="m/0"`) {
			t.Errorf("the replica has ended, and there is\n%s", text)
		}
	})
}

func TestMetricsOfModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(nil)
		send := func(list ...rpc.Metric) {
			m.conn.Send(rpc.KindMetrics, 0, rpc.AppendMetrics(nil, list...))
			pass(ms)
		}
		send(
			rpc.Metric{Kind: rpc.MetricCounter, Name: "rows_total", Help: "Rows.", Value: 3},
			rpc.Metric{Kind: rpc.MetricGauge, Name: "latin", Labels: []rpc.Label{{Key: "at", Value: "caf\xe9"}}},
			rpc.Metric{Kind: rpc.MetricGauge, Name: "loss", Labels: []rpc.Label{{Key: "set", Value: "b"}, {Key: "at", Value: "1"}}, Value: 0.5},
			rpc.Metric{Kind: rpc.MetricHistogram, Name: "tokens", Count: 3, Sum: 30, Buckets: []rpc.Bucket{{Upper: 10, Count: 2}}},
		)
		send(rpc.Metric{Kind: rpc.MetricCounter, Name: "rows_total", Value: 5}) // the latest total
		send(rpc.Metric{Kind: rpc.MetricGauge, Name: "loss", Labels: []rpc.Label{{Key: "at", Value: "1"}, {Key: "set", Value: "b"}}, Value: 0.25})
		m.conn.Send(rpc.KindDrain, 0, nil) // what it said last stays
		pass(ms)
		for _, line := range []string{
			`rows_total{model="m",replica="m/0",version="1"} 5`,
			`latin{at="caf?",model="m",replica="m/0",version="1"} 0`,
			`loss{at="1",model="m",replica="m/0",set="b",version="1"} 0.25`,
			`tokens_bucket{model="m",replica="m/0",version="1",le="10"} 2`,
			`tokens_bucket{model="m",replica="m/0",version="1",le="+Inf"} 3`,
			`tokens_sum{model="m",replica="m/0",version="1"} 30`,
		} {
			if !r.scraped(line) {
				t.Errorf("%s is missing in\n%s", line, scrape(t, r.registry, ""))
			}
		}
		r.end()
		if text := scrape(t, r.registry, ""); strings.Contains(text, "rows_total") || strings.Contains(text, "tokens") {
			t.Errorf("the replica has ended, and there is\n%s", text)
		}
	})
}

// A container that serves several models counts for the first.
func TestMetricsOfAContainerWithTwoModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", nil), version("n", nil)}})
		m := r.model(nil)
		m.announce(2, "n", rpc.StateReady)
		m.conn.Send(rpc.KindMetrics, 0, rpc.AppendMetrics(nil, rpc.Metric{Kind: rpc.MetricGauge, Name: "depth", Value: 1}))
		pass(ms)
		if text := scrape(t, r.registry, ""); strings.Count(text, "\ndepth{") != 1 || !strings.Contains(text, `depth{model="m"`) {
			t.Errorf("got\n%s", text)
		}
		r.end()
	})
}

// A name that one model gave a kind is free again when that model is gone.
func TestAKindIsForgottenWithItsReplica(t *testing.T) {
	registry := obs.NewRegistry()
	m := NewMetrics(registry).custom
	a, b := metricSource{model: serving.ModelID{Model: "a", Version: "1"}, replica: "a/0"}, metricSource{model: serving.ModelID{Model: "b", Version: "1"}, replica: "b/0"}
	m.put(a, []rpc.Metric{{Kind: rpc.MetricCounter, Name: "x", Value: 1}})
	m.put(b, []rpc.Metric{{Kind: rpc.MetricGauge, Name: "x", Value: 2}, {Kind: rpc.MetricGauge, Name: "y", Value: 2}})
	if text := scrape(t, registry, ""); !strings.Contains(text, "# TYPE x counter") || !strings.Contains(text, `y{model="b"`) {
		t.Errorf("got\n%s", text)
	}
	m.forget(a.model, a.replica)
	if text := scrape(t, registry, ""); !strings.Contains(text, "# TYPE x gauge") {
		t.Errorf("got\n%s", text)
	}
}

func drawMetric(t *rapid.T) rpc.Metric {
	name := rapid.SampledFrom([]string{"a", "a_count", "a_sum", "a_bucket", "a_total", "b", "b_count_sum", "topsail_x", "go_info", "process_x", "promhttp_x",
		"", "1a", "a b", "a{x=\"1\"}", "ä", "a\n", "a:b", "__name__", "le"})
	key := rapid.SampledFrom([]string{"k", "l", "model", "version", "replica", "le", "quantile", "__k", "", "k\n", "k:k", "1", "ä"})
	value := rapid.SampledFrom([]string{"", "x", "y", "\xff", "\xfe\xff", "?", "\"", "\\", "new\nline", "} 1\nfake 2", "\x00", strings.Repeat("long", 2000)})
	number := rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64})
	m := rpc.Metric{
		Kind:  rpc.MetricKind(rapid.IntRange(1, 3).Draw(t, "kind")),
		Name:  name.Draw(t, "name"),
		Help:  value.Draw(t, "help"),
		Value: number.Draw(t, "value"),
		Sum:   number.Draw(t, "sum"),
		Count: rapid.Uint64().Draw(t, "count"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		m.Labels = append(m.Labels, rpc.Label{Key: key.Draw(t, "key"), Value: value.Draw(t, "value")})
	}
	for range rapid.IntRange(0, 4).Draw(t, "buckets") {
		m.Buckets = append(m.Buckets, rpc.Bucket{Upper: number.Draw(t, "upper"), Count: rapid.Uint64().Draw(t, "below")})
	}
	return m
}

func TestNoMetricOfAModelBreaksAScrape(t *testing.T) {
	registry := obs.NewRegistry()
	m := NewMetrics(registry).custom
	rapid.Check(t, func(t *rapid.T) {
		for _, name := range []string{"a/0", "a/1", "b/0"} {
			from := metricSource{model: serving.ModelID{Model: name[:1], Version: "1"}, replica: name}
			m.forget(from.model, from.replica)
			m.put(from, rapid.SliceOfN(rapid.Custom(drawMetric), 0, 12).Draw(t, "metrics"))
		}
		text := scrape(t, registry, "")
		scrape(t, registry, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		if strings.Contains(text, "fake 2\n") && !strings.Contains(text, `\nfake 2`) {
			t.Fatalf("a label became a line of its own:\n%s", text)
		}
	})
}

func TestMetricsOfAModelAreBounded(t *testing.T) {
	m := newModelMetrics()
	from := metricSource{model: serving.ModelID{Model: "m", Version: "1"}, replica: "m/0"}
	many := make([]rpc.Label, maxModelLabels+1)
	for i := range many {
		many[i] = rpc.Label{Key: "k" + strings.Repeat("k", i), Value: "v"}
	}
	m.put(from, []rpc.Metric{
		{Kind: rpc.MetricGauge, Name: "labels", Labels: many},
		{Kind: rpc.MetricGauge, Name: "help", Help: strings.Repeat("x", maxModelText)},
		{Kind: rpc.MetricGauge, Name: "value", Labels: []rpc.Label{{Key: "k", Value: strings.Repeat("x", maxModelText)}}},
	})
	if len(m.latest[from]) != 0 {
		t.Errorf("what is too large was kept: %d series", len(m.latest[from]))
	}
	for i := range 20 {
		var list []rpc.Metric
		for j := range 1000 {
			list = append(list, rpc.Metric{Kind: rpc.MetricGauge, Name: "x" + strings.Repeat("y", i), Labels: []rpc.Label{{Key: "k", Value: strings.Repeat("z", j)}}})
		}
		m.put(from, list)
	}
	if n := len(m.latest[from]); n != maxModelMetrics {
		t.Errorf("%d series are kept, want %d", n, maxModelMetrics)
	}
	known := m.latest[from]["x"]
	m.put(from, []rpc.Metric{{Kind: rpc.MetricGauge, Name: "x", Value: known.Value + 1}})
	if m.latest[from]["x"].Value != known.Value+1 {
		t.Error("a series that is known is not brought up to date once there are too many")
	}
}

// Each worker of a stage counts for itself, and one that is started again goes on under
// the name of the one before.
func TestWorkersCountForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "only"})
		count := func(m *model, n float64) {
			m.conn.Send(rpc.KindMetrics, 0, rpc.AppendMetrics(nil, rpc.Metric{Name: "seen", Kind: rpc.MetricCounter, Value: n}))
			pass(0)
		}
		first := r.worker("only", text, echo)
		pass(0)
		second := r.worker("only", text, echo)
		pass(0)
		count(first, 1)
		count(second, 2)
		first.nc.Close()
		pass(0)
		third := r.worker("only", text, echo)
		pass(0)
		count(third, 3)
		for _, want := range []string{`seen{container="only/0",model="m",replica="m/0",version="1"} 3`, `seen{container="only/1",model="m",replica="m/0",version="1"} 2`} {
			if !r.scraped(want) {
				t.Errorf("there is no %s", want)
			}
		}
		r.end()
	})
}
