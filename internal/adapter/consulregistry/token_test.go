//go:build servers

package consulregistry

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestTokenOfEndpoints(t *testing.T) {
	t.Parallel()
	name := fresh(t)
	var token atomic.Value
	token.Store("one")
	r, err := Open(Config{Client: connect(t, shared.Addr), Service: name, Token: func() []byte { return []byte(token.Load().(string)) }})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{r, t, r.client.api.Agent(), name}
	s.register("a", "b")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var seen []string
	start := time.Now()
	r.Watch(ctx, func(list []serving.Endpoint) {
		if len(list) != 2 || string(list[0].Token) != string(list[1].Token) {
			t.Errorf("got %+v", list)
			cancel()
			return
		}
		if seen = append(seen, string(list[0].Token)); len(seen) == 2 {
			cancel()
		}
		token.Store("two")
	})
	if !slices.Equal(seen, []string{"one", "two"}) || time.Since(start) > 5*time.Second {
		t.Errorf("got tokens %q in %v", seen, time.Since(start))
	}
}
