package cluster

import (
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
)

func TestModels(t *testing.T) {
	good := `[{"model":"m","version":"1","input_type":"doubles"}]`
	if models, err := parseModels(config.Sidecar{Models: good}); err != nil || len(models) != 1 || models[0].String() != "m:1" {
		t.Errorf("got %v, %v", models, err)
	}
	started := config.Sidecar{Models: `[{"model":"m","version":"1","input_type":"doubles","protocol":"v1"}]`, ContainerAddr: "127.0.0.1:7000"}
	if models, err := parseModels(started); err != nil || models[0].Container.Addr != "127.0.0.1:7000" {
		t.Errorf("got %v, %v", models, err)
	}
	for _, bad := range []string{"", "[]", "null", "[null]", "{}", `[{"model":"M","version":"1","input_type":"doubles"}]`, `[{"model":"m"`} {
		if models, err := parseModels(config.Sidecar{Models: bad}); err == nil {
			t.Errorf("%q is taken for %v", bad, models)
		}
	}
}
