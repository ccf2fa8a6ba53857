package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

// Stream is a stream as the API shows it.
type Stream struct {
	serving.Stream
	Now *StreamNow `json:"now,omitempty"` // nil: no process serves it that is known of
}

// StreamNow is how a stream is where it is served.
type StreamNow struct {
	Processes  int      `json:"processes"`                 // that serve it
	Lag        *int64   `json:"lag_records,omitempty"`     // records that its consumer group has not committed; nil: it is not known
	Waiting    float64  `json:"waiting_seconds,omitempty"` // for how long no record of some app has been answered while one waited
	Conditions []string `json:"conditions"`                // what some of the processes cannot do
}

// describeStream describes one with what is known of it now, if anything is.
func describeStream(s *serving.Stream, now map[string]*StreamNow) Stream {
	return Stream{*s, now[s.Name]}
}

// seesStream says whether a stream is about what the key is for: model streams and those whose records say
// who is asked are about everything.
func (s scope) seesStream(one *serving.Stream) bool {
	unseen := func(app string) bool { return !s.seesApp(app) }
	return len(s.apps) == 0 || one.App != "" && !slices.ContainsFunc(serving.SplitApps(one.App), unseen)
}

// stream finds a stream that the caller sees.
func (v view) stream(name string) (*serving.Stream, error) {
	if s := v.cat.Streams[name]; s != nil && v.scope.seesStream(s) {
		return s, nil
	}
	return nil, fmt.Errorf("stream %q %w; a stream is listed once it was served", name, catalog.ErrNotFound)
}

func (a *api) listStreams(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	var list []*serving.Stream
	for _, name := range slices.Sorted(maps.Keys(v.cat.Streams)) {
		if s := v.cat.Streams[name]; v.scope.seesStream(s) {
			list = append(list, s)
		}
	}
	now := a.Traffic.Streams()
	describe := func(s *serving.Stream) Stream { return describeStream(s, now) }
	page, err := rest.PageOf(r, list, func(s *serving.Stream) string { return s.Name }, describe)
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, page)
}

func (a *api) getStream(w http.ResponseWriter, r *http.Request) error {
	s, err := a.view(r).stream(r.PathValue("stream"))
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, describeStream(s, a.Traffic.Streams()))
}

// alterStream changes a stream that exists.
func (a *api) alterStream(w http.ResponseWriter, r *http.Request, change catalog.Change) error {
	name := r.PathValue("stream")
	return a.edit(w, r, func(v view) ([]catalog.Change, error) {
		if _, err := v.stream(name); err != nil {
			return nil, err
		}
		return []catalog.Change{change}, nil
	}, func(_, after view) error {
		if s := after.cat.Streams[name]; s != nil {
			return rest.Respond(w, http.StatusOK, describeStream(s, a.Traffic.Streams()))
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// suspendStream has the stream take nothing more, in whatever process.
func (a *api) suspendStream(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Reason string `json:"reason"`
	}
	if r.ContentLength != 0 {
		if err := rest.ReadJSON(w, r, rest.MaxBody, &body); err != nil {
			return err
		}
	}
	return a.alterStream(w, r, catalog.SuspendStream{Name: r.PathValue("stream"), Suspension: serving.Suspension{
		Since: a.Now().UTC().Truncate(time.Millisecond), By: auth.Of(r.Context()).Name, Reason: body.Reason,
	}})
}

func (a *api) resumeStream(w http.ResponseWriter, r *http.Request) error {
	return a.alterStream(w, r, catalog.ResumeStream{Name: r.PathValue("stream")})
}

// streamBody is what can be changed of a stream.
type streamBody struct {
	Apps map[string]string `json:"apps"`
}

// patchStream changes which apps predict the records that name something.
func (a *api) patchStream(w http.ResponseWriter, r *http.Request) error {
	text, err := rest.ReadBody(w, r, rest.MaxBody, rest.MergePatchType, rest.JSONType)
	if err != nil {
		return err
	}
	patch, err := rest.ReadPatch(text, &streamBody{})
	if err != nil {
		return err
	}
	name := r.PathValue("stream")
	return a.edit(w, r, func(v view) ([]catalog.Change, error) {
		s, err := v.stream(name)
		if err != nil {
			return nil, err
		}
		var after streamBody
		if err := patch.Apply(streamBody{s.Apps}, &after); err != nil {
			return nil, err
		}
		return []catalog.Change{catalog.MapStream{Name: name, Apps: after.Apps}}, v.changesApps(s.Apps, after.Apps)
	}, func(_, after view) error {
		return rest.Respond(w, http.StatusOK, describeStream(after.cat.Streams[name], a.Traffic.Streams()))
	})
}

// changesApps refuses to map to apps that there are not, and that the key is not for.
func (v view) changesApps(before, after map[string]string) error {
	for _, named := range union(before, after) {
		was, is := before[named], after[named]
		if was == is {
			continue
		}
		for _, app := range append(serving.SplitApps(was), serving.SplitApps(is)...) {
			if err := v.scope.changesApp(app); err != nil {
				return err
			}
		}
		for _, app := range serving.SplitApps(is) {
			if _, err := v.scope.app(v.cat, app); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *api) deleteStream(w http.ResponseWriter, r *http.Request) error {
	if s := a.view(r).cat.Streams[r.PathValue("stream")]; s != nil && s.Suspension != nil {
		return inUse("stream %q is suspended; resume it first", s.Name)
	}
	return a.alterStream(w, r, catalog.DeleteStream{Name: r.PathValue("stream")})
}

// streamLasts ends answers that go on, so that clients show their keys again.
const streamLasts = time.Hour

// stream is an answer that goes on, piece by piece.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newStream begins the answer.
func newStream(w http.ResponseWriter, kind string) *stream {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Accel-Buffering", "no") // proxies are to pass pieces on as they come
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, control: http.NewResponseController(w)}
}

// send sends a piece at once. It fails when the client has left or, where the server
// sees to that, does not read.
func (s *stream) send(piece []byte) error {
	if _, err := s.w.Write(piece); err != nil {
		return err
	}
	return s.control.Flush()
}
