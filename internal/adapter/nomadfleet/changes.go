package nomadfleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/jobs"
)

const (
	relistAfter = time.Minute // events are hints: they may be lost
	reconnect   = time.Second // the least wait before listening again
)

// Changes calls changed whenever jobs may have changed, one call at a time, until
// ctx ends: on Nomad's events, after every connection and once a minute.
func (f *Fleet) Changes(ctx context.Context, changed func()) error {
	told := false
	for ctx.Err() == nil {
		heard, err := f.listen(ctx, changed)
		if told = told && !heard; !told && ctx.Err() == nil {
			f.log.Warn("Nomad's events are interrupted; jobs are polled less often", "err", err)
			told = true
		}
		retry.Sleep(ctx, reconnect+rand.N(reconnect))
	}
	return ctx.Err()
}

// listen receives events until their stream ends, and returns whether any came and why it ended.
func (f *Fleet) listen(ctx context.Context, changed func()) (heard bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	unanswered := time.AfterFunc(patience, func() { stop(context.DeadlineExceeded) })
	topics := map[api.Topic][]string{api.TopicJob: {"*"}, api.TopicAllocation: {"*"}, api.TopicDeployment: {"*"}, api.TopicEvaluation: {"*"}}
	stream, err := withToken(&f.token, func(token string) (<-chan *api.Events, error) {
		return f.client.EventStream().Stream(ctx, topics, 0, &api.QueryOptions{AuthToken: token})
	})
	unanswered.Stop()
	if err != nil {
		return false, err
	}
	changed()
	relist := time.NewTicker(relistAfter)
	defer relist.Stop()
	for {
		select {
		case events, open := <-stream:
			if !open {
				return heard, ctx.Err()
			}
			if events.Err != nil {
				return heard, events.Err
			}
			heard = true
			if slices.ContainsFunc(events.Events, ours) {
				changed()
			}
		case <-relist.C:
			changed()
		}
	}
}

// ours says whether an event is about a job of a model version.
func ours(e api.Event) bool {
	of := func(key string) bool { return strings.HasPrefix(key, jobs.Prefix) }
	return of(e.Key) || slices.ContainsFunc(e.FilterKeys, of)
}
