package local

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// followed is the store as the management side changes it: a change is made when the gateway of the
// process answers by it, so that no query that is sent after it is answered by what was before.
type followed struct {
	*filestore.Store
	gateway *gateway.Gateway
}

// followWithin bounds the wait for the gateway, which has long ended its work by then or cannot use
// the catalog, and says so.
const followWithin = time.Second

// Apply implements change.Store.
func (f followed) Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error) {
	cat, err := f.Store.Apply(ctx, change, ifRevision)
	if err == nil {
		waiting, stop := context.WithTimeout(ctx, followWithin)
		f.gateway.AwaitCatalog(waiting, cat.Revision)
		stop()
	}
	return cat, err
}
