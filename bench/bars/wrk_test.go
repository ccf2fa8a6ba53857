package main

import (
	"strings"
	"testing"
)

const wrkOutput = `Running 1s test @ http://127.0.0.1:1/bench/predict
  2 threads and 128 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.71ms    1.02ms  14.21ms   76.85%
    Req/Sec    35.57k     2.11k   39.92k    70.00%
  70861 requests in 1.00s, 10.68MB read
Requests/sec:  70857.34
Transfer/sec:     10.68MB

{"requests":70861,"took":1000051,"p50":1523.0,"p99":5012.5,"errors":{"connect":0,"read":0,"write":0,"timeout":0,"status":0,"wrong":0}}
`

func TestParseWrk(t *testing.T) {
	r, err := parseWrk([]byte(wrkOutput), false)
	if err != nil {
		t.Fatal(err)
	}
	want := wrkResult{Requests: 70861, Took: 1000051, P50: 1523, P99: 5012.5}
	if r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

func TestParseWrkFails(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"without a summary":  {"\n{", "\n", "no summary"},
		"on half a summary":  {`"status":0,"wrong":0}}`, ``, "cannot read"},
		"on refused queries": {`"status":0`, `"status":7`, "7 with status 400"},
		"on lost sockets":    {`"read":0`, `"read":3`, "3 reading"},
		"on timeouts":        {`"timeout":0`, `"timeout":2`, "2 timed out"},
		"without right ones": {`"wrong":0`, `"wrong":70861`, "no answers"},
		"without answers":    {`"requests":70861`, `"requests":0`, "no answers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseWrk([]byte(strings.Replace(wrkOutput, test.old, test.new, 1)), false)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestParseWrkCountsWrongAnswersWhereTheyAreJudged(t *testing.T) {
	out := strings.NewReplacer(`"status":0`, `"status":3`, `"wrong":0`, `"wrong":4`).Replace(wrkOutput) // the three are among the four
	if r, err := parseWrk([]byte(out), true); err != nil || r.Errors.Wrong != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := parseWrk([]byte(strings.Replace(out, `"timeout":0`, `"timeout":2`, 1)), true); err == nil {
		t.Error("requests without an answer do not fail the run")
	}
}
