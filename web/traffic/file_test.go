package traffic_test

import (
	"path/filepath"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/web/traffic"
)

func TestFileContract(t *testing.T) {
	contract.Traffic(t, false, func(t *testing.T) func() contract.TrafficKeeper {
		path := filepath.Join(t.TempDir(), "traffic")
		return func() contract.TrafficKeeper { return traffic.File(path) }
	})
}
