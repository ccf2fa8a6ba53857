package cluster

import (
	"log/slog"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/test/require"
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

// TestMetricsOfSidecars: their jobs say how often only where the configuration does, as another job would replace all replicas.
func TestMetricsOfSidecars(t *testing.T) {
	for micros, good := range map[string]bool{"": true, "0": true, "10000000": true, "1000": false} {
		flags := map[string]string{"data-dir": t.TempDir()}
		if micros != "" {
			flags["influxdb-metrics-micros"] = micros
		}
		cfg, err := config.Load("", nil, flags)
		require.NoError(t, err)
		p := newParts(cfg, slog.New(slog.DiscardHandler))
		defer p.Close()
		settings, err := p.jobSettings()
		require.NoError(t, err)
		if got := settings.SidecarEnv["TOPSAIL_INFLUXDB_METRICS_MICROS"]; got != micros {
			t.Errorf("sidecars are told %q of %q", got, micros)
		}
		if _, err := p.openDemand(); (err == nil) != good {
			t.Errorf("%q: %v", micros, err)
		}
	}
}
