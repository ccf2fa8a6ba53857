package catalog

import (
	"encoding/json"
	"reflect"

	"github.com/topsail-serving/topsail/serving"
)

// ownApp checks an app and returns a copy for a catalog: one that shares no
// memory with the caller and reads back from its document exactly as it is.
func ownApp(app serving.App, origin serving.Origin) (*serving.App, error) {
	if err := app.Check(); err != nil {
		return nil, err
	}
	app.Origin, app.InputType = origin, app.Signature.Complete(app.InputType)
	own, err := roundTrip(app)
	if err == nil && own.Models == nil {
		own.Models = []string{}
	}
	return own, err
}

// ownVersion is ownApp for a version.
func ownVersion(v serving.Version, origin serving.Origin) (*serving.Version, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	v.Origin, v.InputType = origin, v.Signature.Complete(v.InputType)
	return roundTrip(v)
}

func roundTrip[T any](v T) (*T, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	own := new(T)
	return own, json.Unmarshal(b, own)
}

// sameApp and sameVersion compare what was asked for: the author does not count, nor time and
// commit, the generation is the catalog's, and a default may be named or not.
func sameApp(a, b *serving.App) bool {
	x := *a
	x.Origin = b.Origin
	if x.Policy.KindName() == b.Policy.KindName() {
		x.Policy.Kind = b.Policy.Kind
	}
	return reflect.DeepEqual(&x, b)
}

func sameVersion(a, b *serving.Version) bool {
	x := *a
	x.Origin, x.Generation, x.Deployed = b.Origin, b.Generation, b.Deployed
	if x.Batch.StrategyName() == b.Batch.StrategyName() {
		x.Batch.Strategy = b.Batch.Strategy
	}
	return reflect.DeepEqual(&x, b)
}
