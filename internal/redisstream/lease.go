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
	renew time.Time // when to ask again
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
// takes what is free with all that is pending in it. It says whether it took some.
func (l *leases) hold(ctx context.Context, client redis.UniversalClient, scripts scripts) (taken bool, err error) {
	now := time.Now()
	if now.Before(l.renew) {
		return false, nil
	}
	keys := append([]string{l.members}, l.of(l.group.Streams)...)
	indexes, err := scripts.lease.Run(ctx, client, keys, l.group.Member, l.token, l.group.Takeover.Milliseconds()).Int64Slice()
	before := l.held
	l.held, l.renew = nil, time.Time{} // until it is known: an answer that is lost may have told of others
	if err != nil {
		return false, fmt.Errorf("lease streams: %w", err)
	}
	var held, fresh []string
	for _, i := range indexes {
		taken := i < 0
		i = max(i, -i)
		if i < 1 || int(i) > len(l.group.Streams) {
			return false, fmt.Errorf("lease streams: there is no stream %d", i)
		}
		stream := l.group.Streams[i-1]
		held = append(held, stream)
		if taken || !slices.Contains(before, stream) {
			fresh = append(fresh, stream)
		}
	}
	if len(fresh) > 0 {
		if err := scripts.take.Run(ctx, client, append(slices.Clone(fresh), l.of(fresh)...), l.group.Name, l.group.Member, l.token).Err(); err != nil {
			return false, fmt.Errorf("take over streams: %w", err)
		}
	}
	l.held, l.renew = held, now.Add(l.group.Takeover/4)
	return len(fresh) > 0, nil
}
