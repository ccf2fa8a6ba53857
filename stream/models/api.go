package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"topsail/serving"
)

// API is the management API, as far as updates need it.
type API struct {
	URL    string // such as http://127.0.0.1:1338
	Key    func() []byte
	Agent  string       // User-Agent: what versions say deployed them; empty: Go's
	Client *http.Client // without a timeout of its own
}

const (
	callWithin   = 30 * time.Second
	uploadWithin = 6 * time.Hour   // as the API itself bounds it, for a large bundle on a slow way
	stalledFor   = 5 * time.Minute // at most: when it has all of a bundle, the API checks it
	maxAnswer    = 64 << 20        // bytes
	listAtOnce   = 1000
)

// refusal is what the API says about a request that it does not do.
type refusal struct {
	Status int
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (r *refusal) Error() string {
	if r.Detail != "" {
		return r.Detail
	}
	return fmt.Sprintf("the management API answers %d %s", r.Status, http.StatusText(r.Status))
}

// passing says whether the refusal is about the API, its key or how busy it is, and not about
// what it was asked. One without a code is not of the API: something else is at its address.
func (r *refusal) passing() bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return r.Status >= http.StatusInternalServerError || r.Code == ""
}

// ofProxy says whether something on the way to the API does not let the request pass because of
// what it is.
func (r *refusal) ofProxy() bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return r.Code == ""
	}
	return false
}

// is says whether an error is a refusal of the API with one of some statuses.
func is(err error, statuses ...int) bool {
	r, ok := errors.AsType[*refusal](err)
	for _, status := range statuses {
		if ok && r.Code != "" && r.Status == status {
			return true
		}
	}
	return false
}

// request is one call.
type request struct {
	method  string
	path    []string
	query   url.Values
	ifMatch string
	body    any // as JSON; nil: none
}

// call asks and reads the answer into into, unless that is nil. It returns the ETag.
func (a *API) call(ctx context.Context, r request, into any) (etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return "", fmt.Errorf("write a request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	request, err := a.prepare(ctx, r.method, r.path, body)
	if err != nil {
		return "", err
	}
	request.URL.RawQuery = r.query.Encode()
	if r.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.ifMatch != "" {
		request.Header.Set("If-Match", r.ifMatch)
	}
	return a.send(request, into)
}

func (a *API) prepare(ctx context.Context, method string, path []string, body io.Reader) (*http.Request, error) {
	var at strings.Builder
	at.WriteString(strings.TrimSuffix(a.URL, "/") + "/api/v1")
	for _, segment := range path {
		at.WriteString("/" + url.PathEscape(segment))
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if a.Agent != "" {
		request.Header.Set("User-Agent", a.Agent)
	}
	if key := a.Key(); len(key) > 0 {
		request.Header.Set("X-Api-Key", string(key))
	}
	return request, nil
}

// send sends a request. An answer of 300 or more is a *refusal.
func (a *API) send(request *http.Request, into any) (etag string, err error) {
	client := *a.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key is for this server
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxAnswer:
		return "", fmt.Errorf("the answer of the management API is larger than %d bytes", maxAnswer)
	case response.StatusCode >= http.StatusMultipleChoices:
		r := &refusal{}
		_ = json.Unmarshal(text, r) // what is not valid JSON leaves the status
		r.Status = response.StatusCode
		return "", r
	}
	if into != nil && len(text) > 0 {
		if err := json.Unmarshal(text, into); err != nil {
			return "", fmt.Errorf("the answer of the management API cannot be understood: %w", err)
		}
	}
	return response.Header.Get("ETag"), nil
}

// upload stores a bundle, and returns its digest. It breaks off when nothing goes on for a
// while, and when it takes too long.
func (a *API) upload(ctx context.Context, file string) (digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadWithin)
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	stalled := time.AfterFunc(stalledFor, func() { cut(fmt.Errorf("the upload did not go on for %v", stalledFor)) })
	defer stalled.Stop()
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	request, err := a.prepare(ctx, http.MethodPost, []string{"artifacts"}, outgoing{f, stalled})
	if err != nil {
		return "", err
	}
	request.ContentLength = info.Size()
	request.Header.Set("Content-Type", "application/zip")
	var stored struct{ Digest string }
	_, err = a.send(request, &stored)
	return stored.Digest, err
}

// outgoing is a bundle on its way to the API.
type outgoing struct {
	io.Reader
	stalled *time.Timer // which each piece puts off
}

func (o outgoing) Read(b []byte) (int, error) {
	o.stalled.Reset(stalledFor)
	return o.Reader.Read(b)
}

// version is a version of a model, as far as it matters here.
type version struct {
	Version string   `json:"version"`
	Bundle  string   `json:"bundle"`
	Labels  []string `json:"labels"`
}

// versions lists those of a model; none where there is no such model.
func (a *API) versions(ctx context.Context, model string) ([]version, error) {
	var all []version
	query := url.Values{"limit": {fmt.Sprint(listAtOnce)}}
	for {
		var page struct {
			Items []version `json:"items"`
			Next  string    `json:"next"`
		}
		_, err := a.call(ctx, request{method: http.MethodGet, path: []string{"models", model, "versions"}, query: query}, &page)
		if is(err, http.StatusNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" || len(page.Items) == 0 {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

// find fails with errMissing where there is no app or model of a name.
func (a *API) find(ctx context.Context, kind, name string) error {
	_, err := a.call(ctx, request{method: http.MethodGet, path: []string{kind + "s", name}}, nil)
	if is(err, http.StatusNotFound) {
		return errMissing{kind, name}
	}
	return err
}

// exists says that somebody else made the same thing in another way.
func exists(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.Code == "exists"
}

// role is what the job's key may do.
func (a *API) role(ctx context.Context) (serving.Role, error) {
	var me struct {
		Role serving.Role `json:"role"`
	}
	_, err := a.call(ctx, request{method: http.MethodGet, path: []string{"me"}}, &me)
	return me.Role, err
}
