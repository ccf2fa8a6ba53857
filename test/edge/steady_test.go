//go:build edge

package edge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// steadyEvery is 20 queries a second.
const steadyEvery = time.Second / 20

// steady is the client that must not notice: it asks for sums that nobody has asked for, on
// one connection, as long as the server runs.
type steady struct {
	dial func() (net.Conn, error)
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex
	seen []sight // guarded by mu
}

// sight is what came of one query.
type sight struct {
	due   time.Time
	took  time.Duration // since it was due, if the one before was late
	err   error         // no answer, or a wrong one
	cause string        // of a default
}

func startSteady(dial func() (net.Conn, error)) *steady {
	one := &steady{dial: dial, stop: make(chan struct{}), done: make(chan struct{})}
	go one.run()
	return one
}

func (c *steady) end() { close(c.stop); <-c.done }

func (c *steady) run() {
	defer close(c.done)
	var nc net.Conn
	var r *bufio.Reader
	defer func() {
		if nc != nil {
			nc.Close()
		}
	}()
	due := time.Now()
	for n := 0; ; n++ {
		due = due.Add(steadyEvery)
		if wait := time.Until(due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-c.stop:
				return
			}
			due = time.Now() // that this process was not woken in time is not the server's
		}
		one := sight{due: due}
		if nc == nil {
			if nc, one.err = c.dial(); one.err == nil {
				r = bufio.NewReader(nc)
			}
		}
		if one.err == nil {
			one.cause, one.err = ask(nc, r, float64(n))
		}
		one.took = time.Since(due)
		if one.err != nil && nc != nil {
			nc.Close()
			nc = nil
		}
		c.mu.Lock()
		c.seen = append(c.seen, one)
		c.mu.Unlock()
	}
}

// ask asks the steady app for the sum of x and 1, and says the cause of a default.
func ask(nc net.Conn, r *bufio.Reader, x float64) (cause string, err error) {
	if err := nc.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(nc, post("/steady/predict", fmt.Sprintf(`{"input": [%v, 1.0]}`, x))); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var answer struct {
		Output      float64 `json:"output"`
		Default     bool    `json:"default"`
		Explanation string  `json:"default_explanation"`
	}
	switch err := json.Unmarshal(text, &answer); {
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %s", response.Status, text)
	case err != nil:
		return "", fmt.Errorf("%w in %s", err, text)
	case answer.Default:
		return answer.Explanation, nil
	case answer.Output != x+1:
		return "", fmt.Errorf("the sum of %v and 1 is not %v", x, answer.Output)
	}
	return "", nil
}

// view is what a steady client saw in a time.
type view struct {
	sent, defaults, errors int
	p99, longest           time.Duration
	problem                string // the first default or error
}

// between sums up the queries that were due in a time, once they have been answered.
func (c *steady) between(from, to time.Time) (v view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var took []time.Duration
	for _, one := range c.seen {
		if one.due.Before(from) || one.due.After(to) {
			continue
		}
		v.sent++
		took = append(took, one.took)
		switch {
		case one.err != nil:
			v.errors++
			one.cause = one.err.Error()
		case one.cause != "":
			v.defaults++
		}
		if one.cause != "" && v.problem == "" {
			v.problem = fmt.Sprintf("%.1f s in: %s", one.due.Sub(from).Seconds(), one.cause)
		}
	}
	if slices.Sort(took); len(took) > 0 {
		v.p99, v.longest = took[(len(took)*99+99)/100-1], took[len(took)-1]
	}
	return v
}
