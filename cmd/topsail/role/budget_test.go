package role

import (
	"log/slog"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
)

// The listeners of a process share one budget, of max_inflight_bytes.
func TestOneBudget(t *testing.T) {
	cfg := &config.Config{}
	cfg.Gateway.MaxInflightBytes = 1 << 20
	b := New(cfg, slog.New(slog.DiscardHandler))
	http, err := b.HTTP()
	if err != nil || b.Budget.Limit() != 1<<20 || http.Budget != b.Budget {
		t.Errorf("%d bytes, %v: the query port does not share them", b.Budget.Limit(), err)
	}
}
