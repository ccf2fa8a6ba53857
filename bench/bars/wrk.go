package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// wrkScript makes wrk send our body and end with one line of JSON.
//
//go:embed post.lua
var wrkScript string

// wrk is the closed-loop load generator.
type wrk struct{ path, script string }

// wrkResult is what one run of wrk saw. Times are microseconds.
type wrkResult struct {
	Requests int64   `json:"requests"`
	Took     int64   `json:"took"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	Errors   struct {
		Connect int64 `json:"connect"`
		Read    int64 `json:"read"`
		Write   int64 `json:"write"`
		Timeout int64 `json:"timeout"`
		Status  int64 `json:"status"` // answers of status 400 and above
		Wrong   int64 `json:"wrong"`  // answers without what the request wants
	} `json:"errors"`

	CPU time.Duration `json:"-"` // of wrk itself
}

// run drives a URL over so many connections, with the usual query unless another request is given. Any
// failed request fails the run; where a request says what it wants, answers without that are only counted.
func (w *wrk) run(ctx context.Context, url string, other *request, connections, seconds int) (wrkResult, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+startWithin)
	defer cancel()
	threads := min(connections, wrkThreads)
	cmd := exec.CommandContext(ctx, w.path, "-t", strconv.Itoa(threads), "-c", strconv.Itoa(connections), "-d", strconv.Itoa(seconds)+"s", "-s", w.script, url)
	cmd.Env = append(os.Environ(), "BENCH_BODY="+queryBody)
	if other != nil {
		cmd.Args = slices.Insert(cmd.Args, 1, "--timeout", "10s") // large bodies over many connections may take more than wrk's 2 s
		told, err := other.environment(filepath.Dir(w.script))
		if err != nil {
			return wrkResult{}, err
		}
		cmd.Env = append(cmd.Env, told...)
	}
	cmd.SysProcAttr = dependent()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return wrkResult{}, fmt.Errorf("wrk: %w: %s", err, bytes.TrimSpace(out))
	}
	r, err := parseWrk(out, other != nil && other.want != "")
	if err != nil {
		return r, err
	}
	r.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}

// parseWrk reads the line of JSON that our script ends with, and turns failed
// requests into an error. Where answers are judged, those of an error are wrong, too, and only counted.
func parseWrk(out []byte, judged bool) (wrkResult, error) {
	var r wrkResult
	at := bytes.LastIndex(out, []byte("\n{"))
	if at < 0 {
		return r, fmt.Errorf("wrk printed no summary: %s", bytes.TrimSpace(out))
	}
	if err := json.Unmarshal(out[at:], &r); err != nil {
		return r, fmt.Errorf("cannot read wrk's summary: %w", err)
	}
	e := r.Errors
	if judged {
		e.Status = 0
	}
	switch {
	case e.Connect+e.Read+e.Write+e.Timeout+e.Status > 0:
		return r, fmt.Errorf("requests failed: %d connecting, %d reading, %d writing, %d timed out, %d with status 400 or above", e.Connect, e.Read, e.Write, e.Timeout, e.Status)
	case r.Requests-e.Wrong <= 0 || r.Took <= 0:
		return r, errors.New("wrk got no answers that are right")
	}
	return r, nil
}
