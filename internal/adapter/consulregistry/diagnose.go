package consulregistry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
)

// Leader is the address of Consul's leader, to which every read and write goes.
func (c *Client) Leader(ctx context.Context) (string, error) {
	leader, err := c.api.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if err == nil && leader == "" {
		err = errNoLeader
	}
	if err != nil {
		return "", fmt.Errorf("consul: leader: %w", err)
	}
	return leader, nil
}

// Ahead is by how much Consul's clock was ahead of ours when it last answered, to the
// second; nil while it has not.
func (c *Client) Ahead() *time.Duration { return c.through.ahead.Load() }

// Instances is the list of a service now, as the leader has it.
func (c *Client) Instances(ctx context.Context, service string) ([]serving.Endpoint, error) {
	now, err := c.ask(ctx, question{service: service, consistent: true})
	return now.list, err
}

// MayLock says why the token could not hold the lock of a key, or nil. It tries the
// same requests in a way that changes nothing for its holder.
func (c *Client) MayLock(ctx context.Context, key string) error {
	session := &api.SessionEntry{Name: key + " (probe)", TTL: (10 * time.Second).String(), Behavior: api.SessionBehaviorRelease}
	id, _, errSession := c.api.Session().CreateNoChecks(session, writing(ctx))
	if errSession == nil {
		_, errSession = c.api.Session().Destroy(id, writing(ctx))
	}
	if errSession != nil {
		errSession = fmt.Errorf("consul: sessions (session:write): %w", errSession)
	}
	// No key was last changed at index 1, so that nothing is written.
	_, _, errKey := c.api.KV().CAS(&api.KVPair{Key: key, ModifyIndex: 1}, writing(ctx))
	if errKey != nil {
		errKey = fmt.Errorf("consul: key %s (key:write): %w", key, errKey)
	}
	return errors.Join(errSession, errKey)
}
