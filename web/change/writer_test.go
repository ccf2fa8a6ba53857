package change_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/change"
)

// memory is a store without a disk. Where it is told to, others change the catalog first.
type memory struct {
	mu     sync.Mutex
	cat    *serving.Catalog
	before []catalog.Change // of others, one before each Apply
	others bool             // change it before each Apply, forever
	signed []serving.Author
}

func (m *memory) Catalog() *serving.Catalog {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cat
}

func (m *memory) Apply(_ context.Context, c catalog.Change, ifRevision uint64) (*serving.Catalog, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.others {
		m.before = append(m.before, app(fmt.Sprintf("other-%d", m.cat.Revision)))
	}
	if len(m.before) > 0 {
		m.cat, _ = catalog.Apply(m.cat, m.before[0], 0)
		m.before = m.before[1:]
	}
	next, err := catalog.Apply(m.cat, c, ifRevision)
	if err == nil {
		m.cat = next
		m.signed = append(m.signed, catalog.Author(c))
	}
	return next, err
}

func app(name string) catalog.Change {
	return catalog.PutApp{App: serving.App{Name: name, InputType: serving.Doubles, SLO: serving.Duration(time.Second)}, Create: true}
}

func having(t *testing.T) *memory {
	cat, err := catalog.Apply(&serving.Catalog{}, app("first"), 0)
	require.NoError(t, err)
	return &memory{cat: cat}
}

func TestPlannedAgainWhereOthersAreQuicker(t *testing.T) {
	store := having(t)
	store.before = []catalog.Change{app("x"), app("y")}
	plans := 0
	before, after, err := change.New(store).Make(t.Context(), serving.Author{Who: "ann"}, func(cat *serving.Catalog) ([]catalog.Change, error) {
		plans++
		return []catalog.Change{app(fmt.Sprintf("mine-%d", len(cat.Apps)))}, nil
	})
	if err != nil || plans != 3 || before.Apps["y"] == nil || after.Apps["mine-3"] == nil || len(after.Apps) != 4 {
		t.Errorf("after %d plans: %v, error %v", plans, after, err)
	}
	if len(store.signed) != 1 || store.signed[0].Who != "ann" {
		t.Errorf("signed by %v", store.signed)
	}
}

func TestAllOrNothing(t *testing.T) {
	store := having(t)
	cat := store.Catalog()
	_, _, err := change.New(store).Make(t.Context(), serving.Author{}, func(*serving.Catalog) ([]catalog.Change, error) {
		return []catalog.Change{app("x"), app("first")}, nil
	})
	if !errors.Is(err, catalog.ErrExists) || store.Catalog() != cat {
		t.Errorf("got %v, with %d apps", err, len(store.cat.Apps))
	}
	refused := errors.New("no")
	_, _, err = change.New(store).Make(t.Context(), serving.Author{}, func(*serving.Catalog) ([]catalog.Change, error) { return nil, refused })
	if !errors.Is(err, refused) || store.Catalog() != cat {
		t.Errorf("got %v", err)
	}
	before, after, err := change.New(store).Make(t.Context(), serving.Author{}, func(*serving.Catalog) ([]catalog.Change, error) { return nil, nil })
	if err != nil || before != cat || after != cat {
		t.Errorf("nothing planned: %v", err)
	}
}

func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := having(t)
		turns := change.New(store)
		done, err := turns.Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		nothing := func(*serving.Catalog) ([]catalog.Change, error) { return nil, nil }
		if _, _, err := turns.Make(ctx, serving.Author{}, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while another one has the turn: %v", err)
		}
		done()
		if _, _, err := turns.Make(t.Context(), serving.Author{}, nothing); err != nil {
			t.Error(err)
		}
		// Others who are always quicker do not keep a request forever.
		store.others = true
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = turns.Make(ctx, serving.Author{}, func(*serving.Catalog) ([]catalog.Change, error) {
			time.Sleep(100 * time.Millisecond)
			return []catalog.Change{app("mine")}, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while others are quicker: %v", err)
		}
	})
}
