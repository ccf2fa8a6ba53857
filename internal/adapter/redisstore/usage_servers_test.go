//go:build servers

package redisstore

import (
	"fmt"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
)

func TestUsageContractInCluster(t *testing.T) {
	cluster := clusterConfig(t)
	t.Parallel()
	contract.Usage(t, func(t *testing.T) (another, reopen func() contract.UsageStore, forget func()) {
		cluster.Prefix = fmt.Sprintf("test-%d", prefixes.Add(1))
		s := open(t, cluster)
		another = func() contract.UsageStore { return s }
		return another, another, func() { forgetUsage(t, s) }
	})
}
