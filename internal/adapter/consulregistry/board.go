package consulregistry

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// tokenEvery is how often the token is looked at.
const tokenEvery = time.Second

// board shows one watcher what is new: lists, and tokens on them.
type board struct {
	update func([]serving.Endpoint)
	token  func() []byte // nil: none

	mu    sync.Mutex         // guards the following, and calls of update
	list  []serving.Endpoint // without tokens
	shown []serving.Endpoint
	any   bool // there is a list
}

// put takes the newest list, which is not changed any more.
func (b *board) put(list []serving.Endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = list
	b.show()
}

// followToken shows the list again when the token has changed, until ctx ends.
func (b *board) followToken(ctx context.Context) {
	tick := time.NewTicker(tokenEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.mu.Lock()
			if b.any && ctx.Err() == nil {
				b.show()
			}
			b.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (b *board) show() {
	list := slices.Clone(b.list)
	if b.token != nil {
		token := bytes.Clone(b.token())
		for i := range list {
			list[i].Token = token
		}
	}
	if b.any && slices.EqualFunc(list, b.shown, equal) {
		return
	}
	b.any, b.shown = true, list
	b.update(list)
}

func equal(a, b serving.Endpoint) bool {
	return a.Replica == b.Replica && a.Addr == b.Addr && a.Ready == b.Ready && a.Ops == b.Ops &&
		bytes.Equal(a.Token, b.Token) && slices.Equal(a.Models, b.Models)
}
