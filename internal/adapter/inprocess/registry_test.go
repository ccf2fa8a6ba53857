package inprocess

import (
	"context"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
)

func TestResolverContract(t *testing.T) {
	contract.Resolver(t, func(*testing.T) contract.Replicas { return NewRegistry() })
}

func TestTokens(t *testing.T) {
	r := NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	r.Put(serving.Endpoint{Replica: "a", Addr: "host:1", Token: []byte("one")})
	var tokens []string
	r.Watch(ctx, func(list []serving.Endpoint) {
		if tokens = append(tokens, string(list[0].Token)); len(tokens) == 2 {
			cancel()
			return
		}
		go r.Put(serving.Endpoint{Replica: "a", Addr: "host:1", Token: []byte("two")})
	})
	if len(tokens) != 2 || tokens[0] != "one" || tokens[1] != "two" {
		t.Errorf("got tokens %q", tokens)
	}
}
