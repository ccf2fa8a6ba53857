package openaiengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// endless sends a chunk each second, until the request is cancelled.
func endless(most int, cancelled *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		for range most {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Second):
			case <-q.Context().Done():
				cancelled.Store(true)
				return
			}
		}
		io.WriteString(w, "data: {\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n")
	}
}

func TestCancelClosesTheEnginesRequest(t *testing.T) {
	var cancelled atomic.Bool
	atEngine(t, testConfig(), endless(math.MaxInt, &cancelled), func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), 3500*time.Millisecond)
		defer cancel()
		start := time.Now()
		a := r.ask(ctx, chat, true)
		if took := time.Since(start); a.Err == nil || len(a.parts) != 4 || took != 3500*time.Millisecond {
			r.Errorf("%d parts, %v, after %v", len(a.parts), a.Err, took)
		}
		if synctest.Wait(); !cancelled.Load() {
			r.Error("the engine works on")
		}
	})
}

func TestWithoutForwardCancelTheAnswerIsReadToItsEnd(t *testing.T) {
	var cancelled atomic.Bool
	cfg := testConfig()
	cfg.ForwardCancel = false
	atEngine(t, cfg, endless(60, &cancelled), func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), 3500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if a := r.ask(ctx, chat, true); a.Err == nil || time.Since(start) != 3500*time.Millisecond {
			r.Errorf("%v after %v", a.Err, time.Since(start))
		}
		r.running.Wait()
		if took := time.Since(start); took != time.Minute || cancelled.Load() {
			r.Errorf("it was read for %v", took)
		}
		if n := r.metric("completion_tokens_total"); n != 7 {
			r.Errorf("%v tokens", n)
		}
	})
}

func TestAPauseThatIsTooLong(t *testing.T) {
	var cancelled atomic.Bool
	atEngine(t, testConfig(), func(w http.ResponseWriter, q *http.Request) {
		time.Sleep(time.Hour) // until the first chunk there is no limit
		io.WriteString(w, ": here I am\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(59 * time.Second)
		io.WriteString(w, "data: {}\n\n")
		w.(http.Flusher).Flush()
		<-q.Context().Done()
		cancelled.Store(true)
	}, func(r *rig) {
		start := time.Now()
		a := r.ask(r.Context(), chat, true)
		if took := time.Since(start); !errors.Is(a.Err, errIdle) || took != time.Hour+119*time.Second {
			r.Errorf("%v after %v", a.Err, took)
		}
		if synctest.Wait(); !cancelled.Load() {
			r.Error("the engine works on")
		}
	})
}
