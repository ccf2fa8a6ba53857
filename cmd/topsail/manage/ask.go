package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

const (
	askWithin = 15 * time.Second // a query answers by its objective; this is for a gateway that is not there
	maxAnswer = 4 << 20          // bytes
)

// Gateway is a gateway to ask.
type Gateway struct {
	URL    func() string // such as http://127.0.0.1:1337; empty while none is known
	Key    func() []byte // to show; nil: none
	Client *http.Client
}

// Ask puts a query to an app and says where its time went.
func (g Gateway) Ask(ctx context.Context, app string, body []byte) (api.Trial, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	start := time.Now()
	resp, at, err := g.post(ctx, app, body, "X-Topsail-Timing", "1")
	if err != nil {
		return api.Trial{}, err
	}
	return answered(resp, at, start)
}

// AskParts puts a query to an app for an answer in parts, and returns its events, which the caller closes; or nil
// and what the gateway answered as a whole. It lasts until ctx ends.
func (g Gateway) AskParts(ctx context.Context, app string, body []byte) (io.ReadCloser, api.Trial, error) {
	start := time.Now()
	resp, at, err := g.post(ctx, app, body, "Accept", eventStream)
	if err != nil {
		return nil, api.Trial{}, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), eventStream) {
		return resp.Body, api.Trial{}, nil
	}
	t, err := answered(resp, at, start)
	return nil, t, err
}

const eventStream = "text/event-stream"

// post sends a query to the gateway at an address, with a header besides the usual ones.
func (g Gateway) post(ctx context.Context, app string, body []byte, header, value string) (resp *http.Response, at string, err error) {
	if at = g.URL(); at == "" {
		return nil, at, fmt.Errorf("no gateway is known; see the cluster page")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/"+url.PathEscape(app)+"/predict", bytes.NewReader(body))
	if err != nil {
		return nil, at, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header, value)
	if g.Key != nil {
		req.Header.Set("X-Api-Key", string(g.Key()))
	}
	if resp, err = g.Client.Do(req); err != nil {
		return nil, at, fmt.Errorf("the gateway at %s does not answer: %w", at, err)
	}
	return resp, at, nil
}

// answered reads a whole answer of the gateway at an address.
func answered(resp *http.Response, at string, start time.Time) (api.Trial, error) {
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil || len(answer) > maxAnswer {
		return api.Trial{}, fmt.Errorf("the answer of the gateway at %s ended too soon or is too large: %w", at, err)
	}
	took := time.Since(start)
	if !json.Valid(answer) {
		answer, _ = json.Marshal(string(answer)) // a string always is JSON
	}
	t := api.Trial{Status: resp.StatusCode, Answer: answer, Micros: took.Microseconds(), Stages: stages(resp.Header.Get("Server-Timing")), Gateway: at}
	if n := len(t.Stages); n > 0 && t.Stages[n-1].Stage == total {
		t.Micros, t.Stages = t.Stages[n-1].Micros, t.Stages[:n-1]
	}
	return t, nil
}

// total is the name of the stage that is all of them.
const total = "total"

// stages reads a Server-Timing header, whose durations are in milliseconds. What does
// not say how long it took is left out.
func stages(header string) []api.Stage {
	list := []api.Stage{}
	for metric := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(metric), ";")
		for param := range strings.SplitSeq(params, ";") {
			text, is := strings.CutPrefix(strings.TrimSpace(param), "dur=")
			if ms, err := strconv.ParseFloat(text, 64); is && err == nil && ms >= 0 && ms < 1e9 {
				list = append(list, api.Stage{Stage: name, Micros: int64(ms*1000 + 0.5)})
			}
		}
	}
	return list
}
