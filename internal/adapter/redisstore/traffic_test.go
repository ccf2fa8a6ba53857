package redisstore

import (
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
)

func TestTrafficContract(t *testing.T) {
	contract.Traffic(t, true, func(t *testing.T) func() contract.TrafficKeeper {
		cfg := config(t)
		return func() contract.TrafficKeeper { return open(t, cfg) }
	})
}
