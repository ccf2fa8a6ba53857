package openaiengine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadiness(t *testing.T) {
	cfg := testConfig()
	cfg.Model = ""
	var status, models atomic.Int32
	status.Store(503)
	models.Store(404)
	atEngine(t, cfg, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == modelsPath {
			w.WriteHeader(int(models.Load()))
			io.WriteString(w, `{"object": "list", "data": [{"id": "llama"}, {"id": "adapter"}]}`)
			return
		}
		w.WriteHeader(int(status.Load()))
	}, func(r *rig) {
		if a := r.ask(r.Context(), chat, false); a.Err == nil || !strings.Contains(a.Err.Error(), "not said yet") {
			r.Errorf("before it is ready: %v", a.Err)
		}
		ctx, stop := context.WithCancel(r.Context())
		var watching sync.WaitGroup
		start, states := time.Now(), []string{}
		watching.Go(func() {
			r.watch(ctx, func(ready bool) { states = append(states, fmt.Sprint(ready, " ", time.Since(start))) })
		})
		at := func(d time.Duration, now, of int32) {
			time.Sleep(time.Until(start.Add(d)))
			synctest.Wait()
			status.Store(now)
			models.Store(of)
		}
		at(5*time.Second, 200, 404)          // after probes at 0, 0.2, 0.6, 1.4, 3, 5 s
		at(8*time.Second, 200, 200)          // those at 7 s found no model
		at(10*time.Second, 500, 200)         // ready at 9 s
		at(14*time.Second, 200, 200)         // failed at 11 and 13 s, which is not enough
		at(20*time.Second, 500, 200)         // fails at 21, 23, 25 s, and at once again
		at(25500*time.Millisecond, 200, 200) // with probes at 25, 25.2, 25.6 s
		at(30*time.Second, 200, 200)
		stop()
		watching.Wait()
		if got := strings.Join(states, ", "); got != "true 9s, false 25s, true 25.6s" {
			r.Errorf("the states are %s", got)
		}
		if *r.name.Load() != "llama" {
			r.Errorf("the model is %q", *r.name.Load())
		}
		if n := strings.Count(r.log.String(), "waiting for the server"); n != 3 {
			r.Errorf("the log has it %d times:\n%s", n, r.log.String())
		}
	})
}
