package cluster

import "testing"

func TestModels(t *testing.T) {
	good := `[{"model":"m","version":"1","input_type":"doubles"}]`
	if models, err := parseModels(good); err != nil || len(models) != 1 || models[0].String() != "m:1" {
		t.Errorf("got %v, %v", models, err)
	}
	for _, bad := range []string{"", "[]", "null", "[null]", "{}", `[{"model":"M","version":"1","input_type":"doubles"}]`, `[{"model":"m"`} {
		if models, err := parseModels(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, models)
		}
	}
}
