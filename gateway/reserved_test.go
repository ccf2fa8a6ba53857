package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// An app whose name became reserved is warned of once.
func TestReservedNamesAreWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	g := &Gateway{cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, warned: map[string]bool{}}
	cat := &serving.Catalog{Apps: map[string]*serving.App{"v1": {Name: "v1"}, "wine": {Name: "wine"}}}
	g.warn(cat)
	g.warn(cat)
	if n := strings.Count(log.String(), "reserved"); n != 1 || !strings.Contains(log.String(), "app=v1") {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}
