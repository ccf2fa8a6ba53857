package filestore

import (
	"testing"

	"topsail/internal/contract"
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
