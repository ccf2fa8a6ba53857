package consulregistry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// blockFor is the longest wait for news; Consul adds a sixteenth. It is short
	// because a query may reach, on a connection that was made anew, a Consul which
	// has lost its data: that waits for an index which comes late or never.
	blockFor   = 10 * time.Second
	blockGrace = 5 * time.Second
	maxStale   = 10 * time.Second // since a server that answers heard its leader
)

var (
	errNoLeader = errors.New("it has no leader, or has not heard from it for a long time")
	errFiltered = errors.New("the token may not read all instances; it needs service:read and node:read")
)

// question is one query for the instances of a service.
type question struct {
	service    string
	index      index // 0: answer at once
	consistent bool  // ask the leader, and have it make sure that it is
}

type answer struct {
	list  []serving.Endpoint
	index uint64
}

// ask fails when the answer cannot be relied on.
func (c *Client) ask(ctx context.Context, q question) (answer, error) {
	limit := askTimeout
	if q.index > 0 {
		limit = blockFor + blockFor/16 + blockGrace
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	opt := &api.QueryOptions{
		WaitIndex: uint64(q.index), WaitTime: blockFor,
		AllowStale: !q.consistent, RequireConsistent: q.consistent,
	}
	entries, meta, err := c.api.Health().Service(q.service, "", false, opt.WithContext(ctx))
	if err != nil {
		return answer{}, fmt.Errorf("consul: instances of %s: %w", q.service, err)
	}
	if err := reliable(meta); err != nil {
		return answer{}, fmt.Errorf("consul: instances of %s: %w", q.service, err)
	}
	return answer{endpoints(entries), meta.LastIndex}, nil
}

func reliable(meta *api.QueryMeta) error {
	// A streamed answer comes from the agent's own view, which follows the servers
	// and says nothing about their leader.
	streamed := meta.QueryBackend == api.QueryBackendStreaming
	if !streamed && (!meta.KnownLeader || meta.LastContact > maxStale) {
		return errNoLeader
	}
	if meta.ResultsFilteredByACLs {
		return errFiltered
	}
	return nil
}
