// Package inspect is Clipper's metrics page: a JSON object with counters, ratios, meters
// and histograms, whose numbers are texts. Its clients read it from the port for queries.
package inspect

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/serving"
)

// Page is the page of one gateway.
type Page struct {
	traffic func() []predict.Traffic

	mu     sync.Mutex       // guards the following
	meters map[string]meter // by app
}

// New is a page of what traffic says whenever it is asked.
func New(traffic func() []predict.Traffic) *Page {
	return &Page{traffic: traffic, meters: map[string]meter{}}
}

// Run keeps the rates up to date until ctx ends.
func (p *Page) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.measure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// measure moves the meters on, and forgets those of apps that are gone.
func (p *Page) measure() {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[string]meter{}
	for _, t := range p.traffic() {
		m := p.meters[t.App]
		if !m.since.Equal(t.Since) { // registered anew
			m = meter{since: t.Since}
		}
		next[t.App] = m.moved(t.Total())
	}
	p.meters = next
}

// report is the page before it is written: by category, a list of metrics by name.
type report map[string][]map[string]any

func (r report) add(category, name string, values any) {
	r[category] = append(r[category], map[string]any{name: values})
}

type (
	counter struct {
		Count string `json:"count"`
	}
	ratio struct {
		Ratio string `json:"ratio"`
	}
)

// Append appends the page.
func (p *Page) Append(page []byte) []byte {
	now, r := time.Now(), report{}
	var answers, found, asked uint64
	for _, t := range p.traffic() {
		all := t.Total()
		name := "app:" + t.App
		r.add("counters", name+":num_predictions", counter{whole(all)})
		r.add("ratio_counters", name+":default_prediction_ratio", ratio{share(all-t.Answers[serving.OK], all)})
		r.add("meters", name+":prediction_throughput", p.meter(t.App).rates(all, now.Sub(t.Since)))
		r.add("histograms", name+":prediction_latency", spread(t.Times))
		answers, found, asked = answers+all, found+t.Hits+t.Joined, asked+t.Hits+t.Joined+t.Missed
	}
	r.add("counters", "internal:aggregate_num_predictions", counter{whole(answers)})
	r.add("counters", "internal:prediction_cache_lookups", counter{whole(asked)})
	r.add("ratio_counters", "internal:prediction_cache_hit_ratio", ratio{share(found, asked)})
	b, _ := json.Marshal(r) // of texts alone, which never fails
	return append(page, b...)
}

func (p *Page) meter(app string) meter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.meters[app]
}

func whole(n uint64) string { return strconv.FormatUint(n, 10) }

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// share is a part of a whole; "nan" of nothing, as with Clipper.
func share(part, of uint64) string {
	if of == 0 {
		return "nan"
	}
	return decimal(float64(part) / float64(of))
}
