package filestore

import (
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestCatalogContract(t *testing.T) {
	contract.Catalog(t, func(t *testing.T) (contract.CatalogStore, func() contract.CatalogStore) {
		dir := t.TempDir()
		store := open(t, dir)
		return store, func() contract.CatalogStore {
			closeStore(t, store)
			store = open(t, dir)
			return store
		}
	})
}

func TestAuditContract(t *testing.T) {
	contract.Audit(t, func(t *testing.T) (another, reopen func() contract.AuditStore) {
		dir := t.TempDir()
		store := open(t, dir)
		another = func() contract.AuditStore { return store }
		return another, func() contract.AuditStore {
			closeStore(t, store)
			store = open(t, dir)
			return store
		}
	})
}

func TestUsageContract(t *testing.T) {
	contract.Usage(t, func(t *testing.T) (another, reopen func() contract.UsageStore, forget func()) {
		dir := t.TempDir()
		store := open(t, dir)
		another = func() contract.UsageStore { return store }
		reopen = func() contract.UsageStore {
			closeStore(t, store)
			store = open(t, dir)
			return store
		}
		return another, reopen, func() {
			require.NoError(t, store.update(func(in *tx) error { return in.drop(usageBucket) }))
		}
	})
}
