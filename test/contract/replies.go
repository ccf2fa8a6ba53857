package contract

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// ReplyStore is the seam of replies to requests that may be sent again. Names are any
// texts.
type ReplyStore interface {
	// ClaimReply takes a name for a request that has not been answered, for
	// serving.ReplyClaimed. Where the name is taken it returns what is kept under it.
	ClaimReply(ctx context.Context, name, fingerprint string) (taken *serving.Reply, err error)
	// KeepReply keeps the answer for serving.ReplyKept, or returns the one that is kept already.
	// Header and body may have 1 MiB.
	KeepReply(ctx context.Context, name string, reply serving.Reply) (taken *serving.Reply, err error)
	// DropReply frees a claimed name whose request failed and may be tried again.
	DropReply(ctx context.Context, name string) error
	// Apply keeps the reply of a catalog.Signed change with it.
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	Catalog() *serving.Catalog
}

// Replies runs the suite. open makes an empty store, which the test closes at its end:
// another returns it as another process has it, which may be the same one.
func Replies(t *testing.T, open func(t *testing.T) (another func() ReplyStore)) {
	tests := []struct {
		name string
		run  func(s replies)
	}{
		{"claim, keep and drop", replies.claim},
		{"what was not claimed", replies.unclaimed},
		{"with a change", replies.withChange},
		{"hostile names", replies.hostile},
		{"large answers", replies.large},
		{"an ended context", replies.endedContext},
		{"the first of many", replies.first},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another := open(t)
			test.run(replies{t, another(), another})
		})
	}
}

type replies struct {
	*testing.T
	store   ReplyStore
	another func() ReplyStore
}

// take claims a name that must be free.
func (s replies) take(name, fingerprint string) {
	s.Helper()
	if taken, err := s.store.ClaimReply(s.Context(), name, fingerprint); err != nil || taken != nil {
		s.Fatalf("%.40q: got %+v and error %v", name, taken, err)
	}
}

// want claims a name that must be taken, here and elsewhere.
func (s replies) want(name string, want serving.Reply) {
	s.Helper()
	for _, store := range []ReplyStore{s.another(), s.store} {
		taken, err := store.ClaimReply(s.Context(), name, "another one")
		if err != nil || taken == nil || !reflect.DeepEqual(*taken, want) {
			s.Fatalf("%.40q: got %.200v and error %v, want %.200v", name, taken, err, want)
		}
	}
}

func (s replies) keep(name string, reply serving.Reply) {
	s.Helper()
	if taken, err := s.store.KeepReply(s.Context(), name, reply); err != nil || taken != nil {
		s.Fatalf("%.40q: %.200v is there, error %v", name, taken, err)
	}
}

func (s replies) drop(name string) {
	s.Helper()
	if err := s.another().DropReply(s.Context(), name); err != nil {
		s.Fatalf("%.40q: %v", name, err)
	}
}

func created(fingerprint string) serving.Reply {
	return serving.Reply{
		Fingerprint: fingerprint, Status: 201,
		Header: map[string]string{"ETag": `"12"`, "Location": "/api/v1/apps/a"}, Body: []byte("{\"name\":\"a\xff\x00\"}\n"),
	}
}

func (s replies) claim() {
	s.take("n", "f")
	s.want("n", serving.Reply{Fingerprint: "f"})
	s.take("m", "g")
	s.drop("m")
	s.take("m", "h")
	s.want("m", serving.Reply{Fingerprint: "h"})
	s.keep("n", created("f"))
	s.want("n", created("f"))
	s.want("m", serving.Reply{Fingerprint: "h"})
	// An answer stays, whatever another one who does the same request says of it.
	s.drop("n")
	s.want("n", created("f"))
	taken, err := s.another().KeepReply(s.Context(), "n", serving.Reply{Fingerprint: "f", Status: 409})
	if err != nil || taken == nil || !reflect.DeepEqual(*taken, created("f")) {
		s.Errorf("another answer: got %+v and error %v", taken, err)
	}
	s.want("n", created("f"))
}

// unclaimed keeps and drops what a claim has not held until then.
func (s replies) unclaimed() {
	s.drop("n")
	s.drop("n")
	s.keep("n", created("f"))
	s.want("n", created("f"))
}

// withChange keeps replies with changes, and makes no change of a request that was answered.
func (s replies) withChange() {
	change := func(app, name string, ifRevision uint64) error {
		reply := &serving.NamedReply{Name: name, Reply: created(name)}
		put := catalog.PutApp{App: serving.App{Name: app, InputType: serving.Doubles, SLO: serving.Duration(time.Second)}, Create: true}
		_, err := s.store.Apply(s.Context(), catalog.Signed{Change: put, By: serving.Author{Who: "ann"}, Reply: reply}, ifRevision)
		return err
	}
	s.take("n", "n")
	if err := change("a", "n", 0); err != nil {
		s.Fatal(err)
	}
	s.want("n", created("n"))
	if err := change("b", "n", 0); !errors.Is(err, serving.ErrReplied) || s.store.Catalog().Apps["b"] != nil {
		s.Errorf("a change of a request that was answered: error %v, with %d apps", err, len(s.store.Catalog().Apps))
	}
	s.take("m", "m")
	if err := change("a", "m", 0); !errors.Is(err, catalog.ErrExists) {
		s.Errorf("got error %v", err)
	}
	if err := change("b", "m", s.store.Catalog().Revision+1); !errors.Is(err, catalog.ErrConflict) {
		s.Errorf("got error %v", err)
	}
	s.want("m", serving.Reply{Fingerprint: "m"})
	s.drop("m")
	if err := change("b", "m", s.store.Catalog().Revision); err != nil {
		s.Fatal(err)
	}
	s.want("m", created("m"))
}

func (s replies) hostile() {
	for i, name := range hostileNames() {
		s.take(name, numbered("", i))
		if i%2 == 0 {
			s.keep(name, created(numbered("", i)))
		}
	}
	for i, name := range hostileNames() {
		want := serving.Reply{Fingerprint: numbered("", i)}
		if i%2 == 0 {
			want = created(want.Fingerprint)
		}
		s.want(name, want)
	}
}

func (s replies) large() {
	s.take("n", "f")
	body := bytes.Repeat([]byte("0123456789abcde\xff"), 1<<20/16)
	if _, err := s.store.KeepReply(s.Context(), "n", serving.Reply{Fingerprint: "f", Status: 200, Body: append(body, 'x')}); err == nil {
		s.Error("kept more than 1 MiB")
	}
	s.want("n", serving.Reply{Fingerprint: "f"})
	s.keep("n", serving.Reply{Fingerprint: "f", Status: 200, Body: body})
	s.want("n", serving.Reply{Fingerprint: "f", Status: 200, Body: body})
}

func (s replies) endedContext() {
	s.take("n", "f")
	ctx, cancel := context.WithCancelCause(s.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	if taken, err := s.store.ClaimReply(ctx, "m", "f"); !errors.Is(err, why) || taken != nil {
		s.Errorf("claimed %v with error %v", taken, err)
	}
	if _, err := s.store.KeepReply(ctx, "n", created("f")); !errors.Is(err, why) {
		s.Errorf("kept with error %v", err)
	}
	if err := s.store.DropReply(ctx, "n"); !errors.Is(err, why) {
		s.Errorf("dropped with error %v", err)
	}
	s.want("n", serving.Reply{Fingerprint: "f"})
	s.take("m", "f")
}

// first has many claim the same name: one gets it, and the others its claim.
func (s replies) first() {
	const claimers = 16
	for i := range 10 {
		var all sync.WaitGroup
		got := make(chan string, claimers)
		others := make(chan string, claimers)
		for c := range claimers {
			store := s.another()
			all.Go(func() {
				taken, err := store.ClaimReply(s.Context(), numbered("", i), numbered("claimer-", c))
				switch {
				case err != nil:
					s.Errorf("claim: %v", err)
				case taken == nil:
					got <- numbered("claimer-", c)
				default:
					others <- taken.Fingerprint
				}
			})
		}
		all.Wait()
		close(got)
		close(others)
		if len(got) != 1 || len(others) != claimers-1 {
			s.Fatalf("%d have the name and %d do not", len(got), len(others))
		}
		winner := <-got
		for other := range others {
			if other != winner {
				s.Errorf("%s has the name, and not %s", winner, other)
			}
		}
	}
}
