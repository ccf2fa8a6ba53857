package openaiengine

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

const (
	scrapeWithin = time.Second
	maxScrape    = 8 << 20
)

// gauge is what a metric of an engine is called here. Several series of one name, of
// an engine that runs several copies, are added up, but for shares, of which the largest counts.
func gauge(name string) (as string, share bool) {
	switch name {
	case "vllm:num_requests_running", "llamacpp:requests_processing", "sglang:num_running_reqs", "tgi_batch_current_size":
		return "requests_running", false
	case "vllm:num_requests_waiting", "llamacpp:requests_deferred", "sglang:num_queue_reqs", "tgi_queue_size":
		return "requests_waiting", false
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "llamacpp:kv_cache_usage_ratio":
		return "kv_cache_usage", true
	}
	return "", false
}

// load is what the engine has to do, and the tokens that it was used for.
type load struct {
	mu                 sync.Mutex // guards the following
	prompt, completion int
	gauges             map[string]float64 // by their names here, of the last scrape
}

func (l *load) used(prompt, completion int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt += max(prompt, 0)
	l.completion += max(completion, 0)
}

// metrics is what the container reports, for gocontainer.Config.
func (e *engine) metrics() []rpc.Metric {
	if e.cfg.MetricsPath != "" {
		e.scrape()
	}
	return e.load.list()
}

// scrape reads the engine's gauges. Those of an engine that is down are 0, and while it is only
// slow they stay as they were.
func (e *engine) scrape() {
	found := map[string]float64{}
	if e.up.Load() {
		page, err := e.server.Get(e.lifetime, e.cfg.MetricsPath, scrapeWithin, maxScrape)
		if err != nil {
			return
		}
		found = parseGauges(page)
	}
	e.load.mu.Lock()
	defer e.load.mu.Unlock()
	for name := range e.load.gauges {
		if _, ok := found[name]; !ok {
			found[name] = 0
		}
	}
	e.load.gauges = found
}

// parseGauges finds the gauges in a page of Prometheus's text format.
func parseGauges(page []byte) map[string]float64 {
	found := map[string]float64{}
	for line := range bytes.Lines(page) {
		end := bytes.IndexAny(line, "{ \t")
		if end < 0 {
			continue
		}
		as, share := gauge(string(line[:end]))
		if as == "" {
			continue
		}
		fields := strings.Fields(string(line[max(end, bytes.LastIndexByte(line, '}')+1):])) // the value, and perhaps a time
		if len(fields) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		switch {
		case err != nil || math.IsNaN(value) || math.IsInf(value, 0): // which adds up to no number
		case share:
			found[as] = max(found[as], value)
		default:
			found[as] += value
		}
	}
	return found
}

func (l *load) list() []rpc.Metric {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []rpc.Metric{
		{Kind: rpc.MetricCounter, Name: "prompt_tokens_total", Help: "Tokens of prompts, as the engine counted them.", Value: float64(l.prompt)},
		{Kind: rpc.MetricCounter, Name: "completion_tokens_total", Help: "Tokens of answers, as the engine counted them.", Value: float64(l.completion)},
	}
	for _, g := range []struct{ name, help string }{
		{"requests_running", "Requests that the engine runs."},
		{"requests_waiting", "Requests that wait in the engine."},
		{"kv_cache_usage", "Share of the engine's key-value cache that is in use."},
	} {
		if value, ok := l.gauges[g.name]; ok {
			list = append(list, rpc.Metric{Kind: rpc.MetricGauge, Name: g.name, Help: g.help, Value: value})
		}
	}
	return list
}
