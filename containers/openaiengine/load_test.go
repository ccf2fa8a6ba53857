package openaiengine

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
)

func TestMetricsOfEngines(t *testing.T) {
	var page atomic.Value
	var status atomic.Int32
	status.Store(200)
	atEngine(t, testConfig(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		io.WriteString(w, page.Load().(string))
	}, func(r *rig) {
		page.Store("")
		if n := len(r.engine.metrics()); n != 2 {
			r.Errorf("before it is ready there are %d metrics", n)
		}
		r.up.Store(true)
		for _, c := range []struct {
			page            string
			run, queue, use float64
		}{
			{`# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a}b"} 3.0
vllm:num_requests_running{engine="1",model_name="a}b"} 2.0 1700000000
vllm:num_requests_waiting{engine="0"} 1.0
vllm:num_requests_waiting_by_reason{engine="0"} 17.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5`, 5, 1, 0.5},
			{"llamacpp:requests_processing 2\nllamacpp:requests_deferred 4\n", 2, 4, 0},
			{"sglang:num_running_reqs{tp=\"0\"} 6\nsglang:num_queue_reqs{} NaN\nsglang:token_usage x\n", 6, 0, 0},
			{"tgi_queue_size 8\ntgi_batch_current_size 7\nsglang:num_queue_reqs\n{}\n", 7, 8, 0},
		} {
			page.Store(c.page)
			run, queue, use := r.metric("requests_running"), r.metric("requests_waiting"), r.metric("kv_cache_usage")
			if run != c.run || queue != c.queue || use != c.use {
				r.Errorf("got %v, %v and %v of\n%s", run, queue, use, c.page)
			}
		}
		status.Store(500)
		if n := r.metric("requests_running"); n != 7 {
			r.Errorf("of an engine that is slow to say it is %v", n)
		}
		r.up.Store(false)
		if n := r.metric("requests_running"); n != 0 {
			r.Errorf("of an engine that is down it is %v", n)
		}
	})
}
