//go:build servers

package redisstore

import (
	"fmt"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
)

func TestRecordsContractInCluster(t *testing.T) {
	cluster := clusterConfig(t)
	t.Parallel()
	contract.Records(t, func(t *testing.T) func() contract.RecordStore {
		cluster.Prefix = fmt.Sprintf("test-%d", prefixes.Add(1))
		s := open(t, cluster)
		return func() contract.RecordStore { return s }
	})
}
