package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

// maxIdempotencyKey bounds an Idempotency-Key, in bytes.
const maxIdempotencyKey = 255

// once has a request with an Idempotency-Key done once: sent again, it gets the answer
// that it got. Requests without one pass.
func (a *api) once(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if len(r.Header.Values("Idempotency-Key")) == 0 {
			return serve(w, r)
		}
		name, print, err := a.identity(w, r)
		if err != nil {
			return err
		}
		taken, err := a.claim(r.Context(), name, print)
		switch {
		case errors.Is(err, serving.ErrTooManyReplies):
			return rest.Later(http.StatusServiceUnavailable, "unavailable", "too many requests with an Idempotency-Key are remembered; try again later, or without one")
		case err != nil:
			return err
		case taken != nil:
			return replay(w, taken, print)
		}
		return a.keep(w, r, name, print, serve)
	}
}

// claimWait is how long a request waits for the same one that is being done, and claimEvery how
// often it looks. The claim of a process that is gone ends meanwhile.
const (
	claimWait  = serving.ReplyClaimed + 2*time.Second
	claimEvery = 100 * time.Millisecond
)

// claim takes the name of a request. Where the same request is being done, or was when its
// process ended, it waits for the answer, or for the name.
func (a *api) claim(ctx context.Context, name, print string) (taken *serving.Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimWait+within)
	defer cancel()
	end := time.NewTimer(claimWait)
	defer end.Stop()
	next := time.NewTicker(claimEvery)
	defer next.Stop()
	for {
		taken, err = a.Replies.ClaimReply(ctx, name, print)
		if err != nil || taken == nil || taken.Status != 0 || taken.Fingerprint != print {
			return taken, err
		}
		select {
		case <-next.C:
		case <-end.C:
			return taken, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// identity is the name of the request, which others of the same caller with its key
// share, and the fingerprint, which those that are the same share. The body can be read
// again afterwards.
func (a *api) identity(w http.ResponseWriter, r *http.Request) (name, print string, err error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) == 0 || len(key) > maxIdempotencyKey || len(r.Header.Values("Idempotency-Key")) > 1 {
		return "", "", rest.Invalid("Idempotency-Key must be given once, with 1 to %d bytes", maxIdempotencyKey)
	}
	body, err := rest.ReadAll(w, http.MaxBytesReader(w, r.Body, maxCatalog))
	if err != nil {
		return "", "", err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	caller := auth.Of(r.Context())
	who := cmp.Or(caller.ID, "name "+caller.Name)
	return hash(who, key), hash(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)), nil
}

// hash is that of several texts, none of which runs into another.
func hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d %s", len(text), text)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// replay answers as the first request was answered.
func replay(w http.ResponseWriter, taken *serving.Reply, print string) error {
	if taken.Fingerprint != print {
		return problem.New(http.StatusUnprocessableEntity, "key_reused", "another request was sent with this Idempotency-Key; use a new one for each request")
	}
	if taken.Status == 0 {
		return rest.Later(http.StatusConflict, "in_progress", "the request with this Idempotency-Key is in progress; send it again for its answer")
	}
	for name, value := range taken.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(taken.Status)
	_, _ = w.Write(taken.Body) // a client that left needs no answer
	return nil
}

// keep does the request, and keeps the answer unless it says to try again. Where the request
// was answered elsewhere meanwhile, that answer counts.
func (a *api) keep(w http.ResponseWriter, r *http.Request, name, print string, serve func(http.ResponseWriter, *http.Request) error) error {
	// A client that leaves meanwhile will want to know what became of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*within)
	defer cancel()
	kept := &keptAnswer{to: w, name: name, print: print}
	kept.clear()
	defer func() {
		if !kept.done { // it panicked, or may be sent again
			_ = a.Replies.DropReply(ctx, name) // else the claim expires
		}
	}()
	if err := serve(kept, r.WithContext(ctx)); err != nil {
		problemOf(err).Write(kept)
	}
	if !kept.done && kept.status < http.StatusInternalServerError {
		kept.done = true
		// What is done is done: if it cannot be kept, the client still gets its answer.
		if taken, _ := a.Replies.KeepReply(ctx, name, kept.reply()); taken != nil {
			return replay(w, taken, print)
		}
	}
	kept.send(w)
	return nil
}

// keptAnswer is the answer to a request that may be sent again.
type keptAnswer struct {
	to          http.ResponseWriter
	name, print string // of the request
	header      http.Header
	status      int
	body        bytes.Buffer
	done        bool // it is kept, or cannot be
}

func (a *keptAnswer) Header() http.Header         { return a.header }
func (a *keptAnswer) WriteHeader(status int)      { a.status = status }
func (a *keptAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

// Unwrap exposes the writer for which memory is taken.
func (a *keptAnswer) Unwrap() http.ResponseWriter { return a.to }

// clear discards the answer so far.
func (a *keptAnswer) clear() {
	a.header, a.status = http.Header{}, http.StatusOK
	a.body.Reset()
}

func (a *keptAnswer) reply() serving.Reply {
	r := serving.Reply{Fingerprint: a.print, Status: a.status, Header: map[string]string{}, Body: bytes.Clone(a.body.Bytes())}
	for name, values := range a.header {
		r.Header[name] = strings.Join(values, ", ")
	}
	return r
}

// named is the reply to keep with a change; nil for one that is too large, as only those of
// imports are, which may be done twice.
func (a *keptAnswer) named() *serving.NamedReply {
	reply := a.reply()
	if reply.Size() > serving.MaxReply {
		return nil
	}
	return &serving.NamedReply{Name: a.name, Reply: reply}
}

func (a *keptAnswer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // a client that left needs no answer
}
