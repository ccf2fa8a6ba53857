package models

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// manner is how a round goes about what updates miss.
type manner int

const (
	inOrder   manner = iota // an update is put off together with those that follow it
	asTheyCan               // what follows as an app's may bring what is missing, and is not put off
	patiently               // what is missing is waited for
)

// try is an update in one round.
type try struct {
	*entry
	over chan struct{} // closed when it is
	err  error         // why the update is not applied
}

// round applies updates: those of one model or app in their order, others beside each other. It
// returns what was put off.
func (h *handler) round(updates []*entry, how manner) (left []*entry) {
	tries, room := make([]try, len(updates)), make(chan struct{}, h.cfg.Concurrency)
	for i, u := range updates {
		tries[i] = try{entry: u, over: make(chan struct{})}
	}
	var others <-chan struct{}
	if how == patiently {
		others = h.others
	}
	for i := range tries {
		tries[i].note(tries[i+1:])
	}
	var applying sync.WaitGroup
	for i := range tries {
		t := &tries[i]
		applying.Go(func() {
			defer close(t.over)
			if t.err = t.wait(tries[:i], how); t.err != nil {
				return
			}
			room <- struct{}{} // none stays longer than its context lets it
			defer func() { <-room }()
			t.err = h.apply(t.entry, others)
		})
	}
	applying.Wait()
	for _, t := range tries {
		if t.isLeft() {
			left = append(left, t.entry)
		} else {
			t.done(t.err)
		}
	}
	return left
}

// note keeps which models those behind it have its app ask: they may be applied first.
func (t *try) note(behind []try) {
	own := of(t.Item)
	for _, other := range behind {
		if u := of(other.Item); u.Model != nil && own.sharesApp(&u.Update) && !slices.Contains(own.later, u.Model.Name) {
			own.later = append(own.later, u.Model.Name)
		}
	}
}

// isLeft says whether an update is for another round: it was put off, or followed one that went to another member.
func (t *try) isLeft() bool {
	_, missing := errors.AsType[errMissing](t.err)
	_, followed := errors.AsType[errFollowed](t.err)
	return t.ctx.Err() == nil && (missing || followed || errors.Is(t.err, errPutOff))
}

// errFollowed is why an update is not applied that followed one which is not.
type errFollowed struct{ err error }

func (e errFollowed) Error() string { return e.err.Error() }
func (e errFollowed) Unwrap() error { return e.err }

// wait waits for those of the updates before it that an update follows. It fails as they did.
func (t *try) wait(before []try, how manner) error {
	for i := range before {
		one := &before[i]
		first, u := of(one.Item), of(t.Item)
		if first.about() != u.about() && (how != inOrder || !first.sharesApp(&u.Update)) {
			continue
		}
		if <-one.over; one.err != nil {
			return errFollowed{one.err}
		}
	}
	return context.Cause(t.ctx)
}
