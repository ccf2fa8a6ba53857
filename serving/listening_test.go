package serving

import (
	"reflect"
	"testing"
)

func TestWithPort(t *testing.T) {
	c := Container{Command: []string{"serve", "--port=${PORT}", "$PORT"}, Env: map[string]string{"CLIPPER_PORT": "${PORT}", "X": "1"}, Protocol: "v1"}
	got := c.WithPort("7001")
	if want := []string{"serve", "--port=7001", "$PORT"}; !reflect.DeepEqual(got.Command, want) {
		t.Errorf("command %q, want %q", got.Command, want)
	}
	if want := map[string]string{"CLIPPER_PORT": "7001", "X": "1", "PORT": "7001"}; !reflect.DeepEqual(got.Env, want) {
		t.Errorf("env %q, want %q", got.Env, want)
	}
	if c.Command[1] != "--port=${PORT}" || len(c.Env) != 2 {
		t.Errorf("the version itself is now %+v", c)
	}
	if (Container{Protocol: "v1", Addr: "h:1"}).Listens() || !c.Listens() || (Container{}).Listens() {
		t.Error("only a version 1 container without an address is started and listens")
	}
}
