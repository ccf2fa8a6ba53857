//go:build servers

package consulregistry

import (
	"context"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/contract"
)

func TestResolverContract(t *testing.T) {
	t.Parallel()
	contract.Resolver(t, func(t *testing.T) contract.Replicas {
		s := open(t, shared.Addr, shared.Addr, time.Second)
		t.Cleanup(func() {
			for _, name := range append(numbered("replica-", 4), "a", "b") {
				s.Remove(name)
			}
		})
		return s
	})
}

func TestLeaseContract(t *testing.T) {
	t.Parallel()
	contract.Lease(t, func(t *testing.T) (func() contract.Lock, func()) {
		c, key := connect(t, shared.Addr), fresh(t)
		another := func() contract.Lock {
			lock := c.Lock(key)
			t.Cleanup(func() { lock.abandon(context.Background()) })
			return lock
		}
		expire := func() {
			if pair, _, err := c.api.KV().Get(key, nil); err != nil || pair == nil {
				t.Errorf("no lock to expire: %v", err)
			} else if _, err := c.api.Session().Destroy(pair.Session, nil); err != nil {
				t.Error(err)
			}
		}
		return another, expire
	})
}
