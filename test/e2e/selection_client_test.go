//go:build system

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// answer is what a client gets for a query.
type answer struct {
	QueryID     int64           `json:"query_id"`
	Output      json.RawMessage `json:"output"`
	Default     bool            `json:"default"`
	Why         string          `json:"default_explanation"`
	Missing     []string        `json:"missing"`
	Shed        []string        `json:"shed"`
	Explanation *struct {
		Policy     string  `json:"policy"`
		Ended      string  `json:"ended"`
		Confidence float64 `json:"confidence"`
		Elapsed    int64   `json:"elapsed_micros"`
		Budget     int64   `json:"budget_micros"`
		Models     []struct {
			Model       string          `json:"model"`
			Asked       bool            `json:"asked"`
			Answered    bool            `json:"answered"`
			Output      json.RawMessage `json:"output"`
			Failure     string          `json:"failure"`
			Probability float64         `json:"probability"`
			Weight      float64         `json:"weight"`
			Confidence  *float64        `json:"confidence"`
			Took        int64           `json:"took_micros"`
			Cached      bool            `json:"cached"`
			Shadow      bool            `json:"shadow"`
			Shed        bool            `json:"shed"`
		} `json:"models"`
	} `json:"explanation"`
	took time.Duration // as the client sees it
}

// says is the output as a text, without the quotes of JSON.
func (a answer) says() string { return strings.Trim(string(a.Output), `"`) }

// query asks, and fails where there is no answer.
func (e *edge) query(app, body string) (a answer, err error) {
	start := time.Now()
	status, text, err := e.send(app+"/predict", body, "*/*")
	a.took = time.Since(start)
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d: %s", status, text)
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &a)
	}
	return a, err
}

// ask wants an answer.
func (e *edge) ask(app, body string) answer {
	e.t.Helper()
	a, err := e.query(app, body)
	if err != nil {
		e.t.Fatalf("ask %s %s: %v", app, body, err)
	}
	return a
}

// wants wants an answer that is no default, and returns it.
func (e *edge) wants(app, body, says string) answer {
	e.t.Helper()
	a := e.ask(app, body)
	if a.Default || a.says() != says {
		e.t.Fatalf("%s answers %s with %s (default %v: %s; missing %v), want %s", app, body, a.Output, a.Default, a.Why, a.Missing, says)
	}
	return a
}

// askMany asks with several clients at a time, and returns all answers.
func (e *edge) askMany(app string, clients, each int) []answer {
	e.t.Helper()
	all := make([][]answer, clients)
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for i := range each {
				a, err := e.query(app, fmt.Sprintf(`{"input":[%d]}`, c*each+i))
				if err != nil {
					e.t.Errorf("ask %s: %v", app, err)
					return
				}
				all[c] = append(all[c], a)
			}
		})
	}
	running.Wait()
	return slices.Concat(all...)
}

// quantile is that of the times of answers, which clients saw.
func quantile(answers []answer, q float64) time.Duration {
	times := make([]time.Duration, len(answers))
	for i := range answers {
		times[i] = answers[i].took
	}
	slices.Sort(times)
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

// learned is what became of feedback.
type learned struct {
	Received  bool                `json:"received"`
	QueryID   int64               `json:"query_id"`
	Joined    string              `json:"joined"`
	Duplicate bool                `json:"duplicate"`
	Loss      float64             `json:"loss"`
	Trained   []map[string]string `json:"trained"`
	Models    []struct {
		Model string   `json:"model"`
		Loss  *float64 `json:"loss"`
	} `json:"models"`
	Forwarded int       `json:"forwarded"`
	Feedback  []learned `json:"feedback"` // of a batch
}

// teach wants feedback to be taken.
func (e *edge) teach(app, body string) (l learned) {
	e.t.Helper()
	status, text, err := e.send(app+"/update", body, "application/json")
	if err == nil && status == 200 {
		err = json.Unmarshal([]byte(text), &l)
	}
	if err != nil || status != 200 {
		e.t.Fatalf("teach %s %s: status %d, %s, %v", app, body, status, text, err)
	}
	return l
}

// refuses wants feedback to be refused in so many words, in JSON and without.
func (e *edge) refuses(app, body string, want int, words string) {
	e.t.Helper()
	for _, accept := range []string{"*/*", "application/json"} {
		status, text, err := e.send(app+"/update", body, accept)
		if err != nil || status != want || !strings.Contains(text, words) {
			e.t.Errorf("feedback %.100s: status %d, %s, %v; want %d and %q", body, status, text, err, want, words)
		}
	}
}
