package redisstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// leases are those of a member: of the streams that it alone reads.
type leases struct {
	group   Group
	token   string
	members string            // the key of who is in the group
	keys    map[string]string // of the lease of each stream

	held  []string  // streams
	renew time.Time // when to renew the leases
}

// lost are the streams that are no longer held, of those that were.
func (l *leases) lost(before []string) (streams []string) {
	for _, stream := range before {
		if !slices.Contains(l.held, stream) {
			streams = append(streams, stream)
		}
	}
	return streams
}

func newLeases(group Group) leases {
	l := leases{
		group: group, token: group.Member + "/" + newToken(),
		members: key(group.Streams[0], group.Name, "members"), keys: map[string]string{},
	}
	for _, stream := range group.Streams {
		l.keys[stream] = key(stream, group.Name, "lease")
	}
	return l
}

// of are the keys of the leases of streams.
func (l *leases) of(streams []string) []string {
	keys := make([]string, len(streams))
	for i, stream := range streams {
		keys[i] = l.keys[stream]
	}
	return keys
}

// hold renews the leases when it is time, gives back what is beyond the member's share, and
// takes what is free.
func (l *leases) hold(ctx context.Context, client redis.UniversalClient, scripts scripts) error {
	now := time.Now()
	if now.Before(l.renew) {
		return nil
	}
	l.renew = time.Time{}
	keys := append([]string{l.members}, l.of(l.group.Streams)...)
	indexes, err := scripts.lease.Run(ctx, client, keys, l.group.Member, l.token, l.group.Takeover.Milliseconds()).Int64Slice()
	if err != nil {
		return fmt.Errorf("lease streams: %w", err)
	}
	l.held = nil
	for _, i := range indexes {
		if i < 1 || int(i) > len(l.group.Streams) {
			return fmt.Errorf("lease streams: there is no stream %d", i)
		}
		l.held = append(l.held, l.group.Streams[i-1])
	}
	l.renew = now.Add(l.group.Takeover / 4)
	return nil
}
