package local

import (
	"testing"

	"topsail/internal/contract"
)

func TestResolverContract(t *testing.T) {
	contract.Resolver(t, func(*testing.T) contract.Replicas { return NewRegistry() })
}
