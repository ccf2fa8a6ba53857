package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

const (
	maxDecisions     = 1000
	defaultDecisions = 100
)

func (l *live) listDecisions(w http.ResponseWriter, r *http.Request) error {
	limit, err := rest.Number(r, "limit", 1, maxDecisions, defaultDecisions)
	if err != nil {
		return err
	}
	var about serving.ModelID
	if about.Model, err = rest.Text(r, "model", maxWho); err != nil {
		return err
	}
	if about.Version, err = rest.Text(r, "version", maxWho); err != nil {
		return err
	}
	if about.Version != "" && about.Model == "" {
		return rest.Invalid("a version needs its model: add model=NAME")
	}
	v := l.view(r)
	n := limit
	if len(v.scope.apps) > 0 {
		n = maxDecisions // some of which are not for the caller
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	all, err := l.Scheduler.Decisions(ctx, n, about)
	if err != nil {
		return err
	}
	seen := v.decisions(all)
	return rest.Respond(w, http.StatusOK, rest.Page[serving.Decision]{Items: seen[:min(limit, len(seen))]})
}

// decisions are those about models that the caller sees; never nil.
func (v view) decisions(all []serving.Decision) []serving.Decision {
	list := make([]serving.Decision, 0, len(all))
	for _, d := range all {
		if v.seesModel(d.Model) {
			list = append(list, d)
		}
	}
	return list
}

func (l *live) getScheduler(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	status, err := l.Scheduler.Scheduler(ctx)
	if err != nil {
		return err
	}
	v := l.view(r)
	pools := make([]Pool, 0, len(status.Pools))
	for _, p := range status.Pools {
		if v.seesModel(p.Model) {
			pools = append(pools, p)
		}
	}
	status.Pools = pools
	return rest.Respond(w, http.StatusOK, status)
}

const (
	newsEvery  = time.Second
	newsWithin = 5 * time.Second
	newsLength = 100 // that are looked at each time
)

// followNews sends decisions to subscribers and, if they are administrators, changes.
func (s *broadcast) followNews(ctx context.Context) {
	var decisions, audit news
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		s.takeDecisions(ctx, &decisions)
		s.takeAudit(ctx, &audit)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *broadcast) takeDecisions(ctx context.Context, past *news) {
	ctx, cancel := context.WithTimeout(ctx, newsWithin)
	defer cancel()
	list, err := s.api.Scheduler.Decisions(ctx, newsLength, serving.ModelID{})
	if err != nil {
		return // what comes meanwhile comes when it can be read again
	}
	fresh := past.of(len(list), func(i int) string {
		d := &list[i]
		return fmt.Sprint(d.ModelID, d.At.UnixNano(), d.Fence, d.From, d.To, d.Outcome)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range fresh {
		s.say(func(v view) []byte {
			if !v.seesModel(list[i].Model) {
				return nil
			}
			return event("decision", list[i])
		})
	}
}

// takeAudit looks at the log only while an administrator is here.
func (s *broadcast) takeAudit(ctx context.Context, past *news) {
	if !s.anyAdmin() {
		*past = news{}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, newsWithin)
	defer cancel()
	list, err := s.api.Audit.AuditLog(ctx, serving.AuditQuery{Limit: newsLength})
	if err != nil {
		return
	}
	fresh := past.of(len(list), func(i int) string { return list[i].ID })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range fresh {
		message := event("audit", list[i])
		for one := range s.subscribers {
			if one.admin {
				one.tell(message)
			}
		}
	}
}

func (s *broadcast) anyAdmin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.subscribers {
		if one.admin {
			return true
		}
	}
	return false
}

// news finds what is new in a list that has the newest first. The first list is old.
type news struct{ seen map[string]bool }

// of are the places of the new ones among n, the oldest first. name distinguishes them.
func (past *news) of(n int, name func(i int) string) []int {
	seen := make(map[string]bool, n)
	var fresh []int
	for i := range n {
		id := name(i)
		if past.seen != nil && !past.seen[id] && !seen[id] {
			fresh = append(fresh, i)
		}
		seen[id] = true
	}
	past.seen = seen
	slices.Reverse(fresh)
	return fresh
}
