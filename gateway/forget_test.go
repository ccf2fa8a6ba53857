package gateway

import (
	"errors"
	"log/slog"
	"strconv"
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestForget(t *testing.T) {
	store, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer store.Close()
	cat := &serving.Catalog{Apps: map[string]*serving.App{"digits": {Name: "digits", Policy: serving.PolicySpec{Kind: serving.PolicyExp3}}}}
	put := func(user string) {
		t.Helper()
		key := serving.StateKey{App: "digits", Kind: serving.PolicyExp3, User: user}
		if _, err := store.SwapState(t.Context(), key, 0, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		t.Helper()
		keys, err := store.StatesOf(t.Context(), "digits", 10_000)
		require.NoError(t, err)
		return len(keys)
	}
	for i := range 30 {
		put(strconv.Itoa(i))
	}
	if err := Forget(t.Context(), store, cat, "digits", "7", ""); err != nil || left() != 29 {
		t.Errorf("one user: %v, %d states left", err, left())
	}
	if err := Forget(t.Context(), store, cat, "digits", "nobody", ""); err != nil || left() != 29 {
		t.Errorf("a user without a state: %v, %d states left", err, left())
	}
	if err := Forget(t.Context(), store, cat, "digits", "", ""); err != nil || left() != 0 {
		t.Errorf("all: %v, %d states left", err, left())
	}
	if err := Forget(t.Context(), store, cat, "nobody", "", ""); !errors.Is(err, serving.ErrUnknownApp) {
		t.Errorf("an unknown app: %v", err)
	}
}
