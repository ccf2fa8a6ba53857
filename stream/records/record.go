package records

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
)

// HeaderApp is the header by which a record says who is asked, where the job lets it. It goes before what the
// message says: a dead letter of one of several apps has it, and is for that app when it is sent again.
const HeaderApp = "topsail-app"

// record is one on its way to its predictions.
type record struct {
	*serving.StreamRecord
	handler  *handler
	request  Request
	read     *mapping.Record // of a topic; nil: the request is the message
	affinity serving.Affinity

	answers []answer        // of each app that it is for
	results []stream.Result // of answers
	answer1 [1]answer       // the memory of most
	result1 [1]stream.Result
}

// of is the record of an item, which the handler made.
func of(it *stream.Item) *record { return it.Message.(*record) }

// ID implements stream.Message. To send an input twice is a mistake, but for different apps.
func (r *record) ID() (id, checksum string) {
	if app := r.Header(HeaderApp); app != "" && r.request.UUID != "" {
		return r.request.UUID + "\n" + app, ""
	}
	return r.request.UUID, ""
}

// Prepare implements stream.Message.
func (r *record) Prepare(context.Context) error {
	r.affinity = r.handler.spreader.affinity(r.StreamRecord, &r.request)
	if r.handler.cfg.App == "" && r.names()[0] == "" {
		return stream.Rejected(UnknownApp, "the record names no app, and the job has none for such records: set app in the message, or the header %s", HeaderApp)
	}
	return nil
}

// Results implements stream.Message.
func (r *record) Results() []stream.Result { return r.results }

// names are what the record says of who is asked; one that is empty, where it says nothing.
func (r *record) names() []string {
	if said := r.Header(HeaderApp); said != "" {
		return []string{said}
	}
	if len(r.request.Apps) > 0 {
		return r.request.Apps
	}
	return r.handler.unnamed[:]
}

// targets appends the apps that the record is for. wait says what is missing of them and may come; nil: nothing is.
func (r *record) targets(all []target) (_ []target, wait *noApp) {
	for _, said := range r.names() {
		all = r.handler.targets(all, said)
	}
	for i := range all {
		if missing := all[i].noApp; missing != nil && missing.waits {
			return all, missing
		}
	}
	return all, nil
}

// begin makes an answer for each app, of which those that are missing are rejected. It says how many are to be asked.
func (r *record) begin(targets []target) (asked int) {
	r.answers, r.results = r.answer1[:], r.result1[:]
	if n := len(targets); n != 1 {
		r.answers, r.results = make([]answer, n), make([]stream.Result, n)
	}
	for i, t := range targets {
		a := &r.answers[i]
		a.record, a.app, a.result = r, t.name, &r.results[i]
		if t.noApp != nil {
			a.reject(t.noApp.rejection)
		} else if a.prepare(t.app) {
			asked++
		}
	}
	return asked
}

// priority is that of queries to an app: by default one below it, so that no client waits for a stream.
func (c *Config) priority(app *serving.App) int {
	if c.Priority != nil {
		return *c.Priority
	}
	return min(app.Priority+1, serving.LowestPriority)
}
