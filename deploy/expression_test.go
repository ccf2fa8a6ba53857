package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The words of PromQL that our expressions use. Every other word is a metric.
var (
	words = []string{
		"and", "or", "unless",
		"absent", "avg", "changes", "count", "histogram_quantile", "increase", "max", "max_over_time", "min", "min_over_time", "offset", "rate", "sum", "time", "topk",
	}
	groupings = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	counting  = []string{"rate", "increase"}
)

// targetLabels are those that scrape.yml gives to every series.
var targetLabels = []string{"job", "instance", "role", "node"}

var piece = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9.]+[smhd]?|[=!]~|[=!<>]=|\S`)

// expression is one of PromQL in pieces, as far as it was read.
type expression struct {
	metrics  metrics
	recorded map[string][]string // labels of what rules record
	pieces   []string
	at       int

	names  []string // of the metrics in it
	labels []string // of those, and of targets
	asked  []string // labels that it groups by
}

// check says what is wrong with an expression, and which metrics it uses.
func (m metrics) check(text string, recorded map[string][]string) (names []string, err error) {
	e := &expression{metrics: m, recorded: recorded, pieces: piece.FindAllString(text, -1), labels: slices.Clone(targetLabels)}
	if strings.Count(text, "(") != strings.Count(text, ")") || strings.Count(text, "{") != strings.Count(text, "}") {
		return nil, fmt.Errorf("the brackets of %q do not match", text)
	}
	for ; e.at < len(e.pieces); e.at++ {
		if err := e.word(e.pieces[e.at]); err != nil {
			return nil, fmt.Errorf("in %q: %w", text, err)
		}
	}
	for _, l := range e.asked {
		if !slices.Contains(e.labels, l) {
			return nil, fmt.Errorf("in %q: nothing has the label %s", text, l)
		}
	}
	return e.names, nil
}

func (e *expression) word(w string) error {
	switch first := w[0]; {
	case !(first == '_' || first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z'):
		return nil
	case slices.Contains(groupings, w):
		for e.at++; e.pieces[e.at] != ")"; e.at++ {
			if p := e.pieces[e.at]; p != "(" && p != "," {
				e.asked = append(e.asked, p)
			}
		}
		return nil
	case slices.Contains(words, w):
		return nil
	}
	return e.series(w)
}

// series reads a metric and its selector.
func (e *expression) series(name string) error {
	labels, err := e.labelsOf(name)
	if err != nil {
		return err
	}
	e.labels = append(e.labels, labels...)
	if e.at+1 == len(e.pieces) || e.pieces[e.at+1] != "{" {
		return nil
	}
	for e.at += 2; e.pieces[e.at] != "}"; e.at++ {
		named := slices.Contains([]string{"=", "!=", "=~", "!~"}, e.pieces[e.at+1])
		if l := e.pieces[e.at]; named && !slices.Contains(labels, l) && !slices.Contains(targetLabels, l) {
			return fmt.Errorf("%s has no label %s", name, l)
		}
	}
	return nil
}

func (e *expression) labelsOf(name string) ([]string, error) {
	counted := e.at > 1 && slices.Contains(counting, e.pieces[e.at-2])
	if labels, ok := e.recorded[name]; ok {
		return labels, nil
	}
	if name == "up" { // Prometheus's own
		return nil, nil
	}
	family, known := e.metrics.family(name)
	one := e.metrics[family]
	switch {
	case !known:
		return nil, fmt.Errorf("there is no metric %s", name)
	case counted && one.kind == "gauge":
		return nil, fmt.Errorf("%s is a gauge, which has no rate", name)
	case !counted && one.kind != "gauge" && !slices.Contains([]string{"absent", "changes"}, e.pieces[max(0, e.at-2)]):
		return nil, fmt.Errorf("%s only grows: take its rate", name)
	}
	e.names = append(e.names, family)
	if strings.HasSuffix(name, "_bucket") {
		return append([]string{"le"}, one.labels...), nil
	}
	return one.labels, nil
}

func TestExpressionsAreChecked(t *testing.T) {
	m := metrics{
		"asked_total":  {kind: "counter", labels: []string{"app"}},
		"took_seconds": {kind: "histogram", labels: []string{"app"}},
		"held":         {kind: "gauge"},
	}
	recorded := map[string][]string{"a:b": {"app"}}
	for text, want := range map[string]string{
		`sum by (app) (rate(asked_total{app=~"$app"}[5m])) > 0.5`:                      "",
		`histogram_quantile(0.9, sum by (app, le) (rate(took_seconds_bucket{}[1m])))`:  "",
		`max(held{job="topsail"}) unless on (instance) absent(asked_total) or a:b > 1`: "",
		`sum(rate(asked[5m]))`:                               "there is no metric asked",
		`sum(held) + hled`:                                   "there is no metric hled",
		`sum(rate(took_seconds[5m]))`:                        "there is no metric took_seconds",
		`rate(asked_total{apps="x"}[5m])`:                    "asked_total has no label apps",
		`rate(asked_total{app="x", cause!~"app=\"y\""}[5m])`: "asked_total has no label cause",
		`sum by (model) (rate(asked_total[5m]))`:             "nothing has the label model",
		`sum by (le) (rate(took_seconds_sum[5m]))`:           "nothing has the label le",
		`rate(held[5m])`:                                     "held is a gauge",
		`asked_total > 1`:                                    "asked_total only grows",
		`sum(held`:                                           "brackets",
	} {
		_, err := m.check(text, recorded)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
