package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Load asks an app at a steady rate, by turns at each gateway, and remembers what
// it saw. Every query has an input of its own, so that none is cached.
type Load struct {
	app      string
	begun    time.Time
	rate     int
	gateways func() []string // their addresses now
	stop     context.CancelFunc
	done     chan struct{}
	asked    atomic.Int64
	stall    atomic.Int64 // the longest, in nanoseconds

	mu      sync.Mutex // guards the following
	answers []sight
}

// sight is what a client saw of one query.
type sight struct {
	at      time.Time
	took    time.Duration
	repeats int    // at other gateways, after a connection was lost
	cause   string // of a default; empty for a real answer
	err     error  // no answer at all, or a wrong one
}

const (
	Rate     = 200 // queries a second
	patience = 5 * time.Second
)

// StartLoad asks an app so often a second.
func StartLoad(app string, rate int, gateways func() []string) *Load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{app: app, begun: time.Now(), rate: rate, gateways: gateways, stop: cancel, done: make(chan struct{})}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}
	go func() {
		defer close(l.done)
		defer client.CloseIdleConnections()
		var open sync.WaitGroup
		defer open.Wait()
		open.Go(func() { l.watchMachine(ctx) })
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for n := int64(0); ; n++ {
			select {
			case <-tick.C:
				open.Go(func() { l.add(l.query(client, n)) })
			case <-ctx.Done():
				return
			}
		}
	}()
	return l
}

// watchMachine measures for how long the machine does not get round to a process
// that only sleeps: what no server on it can make good.
func (l *Load) watchMachine(ctx context.Context) {
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
		now := time.Now()
		l.stall.Store(max(l.stall.Load(), int64(now.Sub(last)-time.Millisecond)))
		last = now
	}
}

func (l *Load) add(s sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, s)
}

// query asks one gateway, and where the connection is lost the next one.
func (l *Load) query(client *http.Client, n int64) sight {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := sight{at: time.Now()}
	list := l.gateways()
	for try := range len(list) + 1 {
		addr := list[(int(n)+try)%len(list)]
		s.cause, s.err = ask(ctx, client, addr, l.app, float64(l.asked.Add(1)))
		s.repeats = try
		if s.err == nil || !lost(s.err) {
			break
		}
	}
	s.took = time.Since(s.at)
	return s
}

// lost says whether a query may be repeated elsewhere: its connection is gone.
func lost(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return false // it is there, and does not answer
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "connection reset")
}

// ask asks for the sum of x and 1.
func ask(ctx context.Context, client *http.Client, addr, app string, x float64) (cause string, err error) {
	body := bytes.NewBufferString(fmt.Sprintf(`{"input": [%v, 1.0]}`, x))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/"+app+"/predict", body)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	var answer struct {
		Output      float64 `json:"output"`
		Default     bool    `json:"default"`
		Explanation string  `json:"default_explanation"`
	}
	switch err := json.Unmarshal(text, &answer); {
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	case err != nil:
		return "", fmt.Errorf("%w in %s", err, text)
	case answer.Default:
		return answer.Explanation, nil
	case answer.Output != x+1:
		return "", fmt.Errorf("the sum of %v and 1 is not %v", x, answer.Output)
	}
	return "", nil
}

// Report is what the clients of one load saw.
type Report struct {
	Fault     string         `json:"fault"`
	Sent      int            `json:"sent"`
	Real      int            `json:"real"`
	Defaults  map[string]int `json:"defaults"`
	Errors    int            `json:"errors"`
	Repeated  int            `json:"repeated"`
	Longest   time.Duration  `json:"longest"`
	Stall     time.Duration  `json:"stall"` // the longest that the machine stood still for this process
	Median    time.Duration  `json:"median"`
	P99       time.Duration  `json:"p99"`
	Recovered time.Duration  `json:"recovered"` // until everything was whole again
	First     error          `json:"-"`
	Begun     time.Time      `json:"-"`
}

// End stops the load and sums up.
func (l *Load) End(fault string) Report {
	l.stop()
	<-l.done
	r := Report{Fault: fault, Begun: l.begun, Sent: len(l.answers), Defaults: map[string]int{}, Stall: time.Duration(l.stall.Load())}
	var took []time.Duration
	for _, s := range l.answers {
		took = append(took, s.took)
		switch {
		case s.err != nil:
			r.Errors++
			if r.First == nil {
				r.First = fmt.Errorf("%.2f s after the load began: %w", s.at.Sub(l.begun).Seconds(), s.err)
			}
		case s.cause != "":
			r.Defaults[shorten(s.cause)]++
		default:
			r.Real++
		}
		if s.repeats > 0 {
			r.Repeated++
		} else {
			r.Longest = max(r.Longest, s.took)
		}
	}
	if slices.Sort(took); len(took) > 0 {
		r.Median, r.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return r
}

// shorten leaves out what differs between defaults of the same cause.
func shorten(explanation string) string {
	head, _, _ := strings.Cut(explanation, ":")
	return head
}

// AllDefaults is how many answers were defaults.
func (r Report) AllDefaults() (n int) {
	for _, count := range r.Defaults {
		n += count
	}
	return n
}

func (r Report) String() string {
	var causes []string
	for _, cause := range slices.Sorted(maps.Keys(r.Defaults)) {
		causes = append(causes, fmt.Sprintf("%d × %s", r.Defaults[cause], cause))
	}
	return fmt.Sprintf("%-34s %6d sent %6d real %4d defaults %3d errors %4d repeated %7.1f ms longest %5.1f ms machine %5.1f s to recover  %s",
		r.Fault, r.Sent, r.Real, r.AllDefaults(), r.Errors, r.Repeated, float64(r.Longest.Microseconds())/1000, float64(r.Stall.Microseconds())/1000, r.Recovered.Seconds(), strings.Join(causes, "; "))
}

// Ask asks a gateway for the sum of x and 1, and says the cause of a default.
func Ask(addr, app string, x float64) (cause string, err error) {
	return AskWithin(addr, app, x, patience)
}

// AskWithin is Ask with more patience.
func AskWithin(addr, app string, x float64, within time.Duration) (cause string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return ask(ctx, http.DefaultClient, addr, app, x)
}
