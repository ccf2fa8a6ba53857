package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// management is the management API, as far as updates need it.
type management struct{ *apiclient.Client }

const (
	uploadWithin = 6 * time.Hour   // as the API itself bounds it, for a large bundle on a slow way
	stalledFor   = 5 * time.Minute // at most: when it has all of a bundle, the API checks it
)

// passing says whether a refusal is about the API, its key or how busy it is, and not about what it
// was asked. One without a code is not of the API: something else is at its address.
func passing(p *apiclient.Problem) bool {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return p.Status >= http.StatusInternalServerError || p.Code == ""
}

// ofProxy says whether something on the way to the API does not let the request pass because of
// what it is.
func ofProxy(p *apiclient.Problem) bool {
	switch p.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return p.Code == ""
	}
	return false
}

// is says whether an error is a refusal of the API with one of some statuses.
func is(err error, statuses ...int) bool {
	r, ok := errors.AsType[*apiclient.Problem](err)
	for _, status := range statuses {
		if ok && r.Code != "" && r.Status == status {
			return true
		}
	}
	return false
}

// do asks and reads the answer into into, unless that is nil. It returns the ETag.
func (m management) do(ctx context.Context, r apiclient.Request, into any) (etag string, err error) {
	answer, err := m.Call(ctx, r)
	if err != nil {
		return "", err
	}
	return answer.Header.Get("ETag"), read(answer.Body, into)
}

func read(text []byte, into any) error {
	if into == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer of the management API cannot be understood: %w", err)
	}
	return nil
}

// upload stores a bundle, and returns its digest. It breaks off when nothing goes on for a
// while, and when it takes too long.
func (m management) upload(ctx context.Context, file string) (digest string, err error) {
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
	response, err := m.Stream(ctx, apiclient.Request{
		Method: http.MethodPost, Path: []string{"artifacts"}, Type: "application/zip", Content: outgoing{f, stalled}, Length: info.Size(),
	})
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, apiclient.MaxAnswer))
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	var stored struct{ Digest string }
	return stored.Digest, read(text, &stored)
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

	Current  bool              `json:"current"`
	Serving  bool              `json:"serving"`
	UsedBy   []string          `json:"used_by"` // apps whose queries it may get
	Pin      *serving.Pin      `json:"pin"`
	Deployed *serving.Deployed `json:"deployed"`
}

// unused says whether no query can get to the version.
func (v *version) unused() bool {
	return !v.Current && !v.Serving && len(v.UsedBy) == 0 && v.Pin == nil
}

// versions lists those of a model; none where there is no such model.
func (m management) versions(ctx context.Context, model string) ([]version, error) {
	list, err := m.List(ctx, 0, nil, "models", model, "versions")
	if is(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]version, len(list))
	for i, text := range list {
		if err := read(text, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// model is a model, as far as it matters here.
type model struct {
	Current  string `json:"current"`
	Previous string `json:"previous"` // version, where a rollback leads
}

// replaced is the current version of a model, as the API shows it; nil: there is none.
func (m management) replaced(ctx context.Context, name string) (map[string]any, error) {
	var of model
	_, err := m.Get(ctx, &of, nil, "models", name)
	if is(err, http.StatusNotFound) || err == nil && of.Current == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := m.Get(ctx, nil, nil, "models", name, "versions", of.Current)
	if is(err, http.StatusNotFound) {
		return nil, errAgain // it was deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	tree, err := schema.ParseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the answer of the management API cannot be understood: %w", err)
	}
	members, _ := tree.(map[string]any)
	return members, nil
}

// find fails with errMissing where there is no app, model or stream of a name.
func (m management) find(ctx context.Context, kind, name string) error {
	_, err := m.Get(ctx, nil, nil, kind+"s", name)
	if is(err, http.StatusNotFound) {
		return errMissing{kind, name}
	}
	return err
}

// hasCode says whether an error is a refusal of the API with a code.
func hasCode(err error, code string) bool {
	r, ok := errors.AsType[*apiclient.Problem](err)
	return ok && r.Code == code
}

// exists says that another client created a resource of the same name with other contents.
func exists(err error) bool { return hasCode(err, "exists") }

// role is what the job's key may do.
func (m management) role(ctx context.Context) (serving.Role, error) {
	var me struct {
		Role serving.Role `json:"role"`
	}
	_, err := m.Get(ctx, &me, nil, "me")
	return me.Role, err
}
