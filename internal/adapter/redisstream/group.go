package redisstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Group says which consumer group to join, with which credentials, and what it consumes. Name, Member
// and Streams are required; Name, Streams, Takeover and Ordered must be the same of all
// members.
type Group struct {
	Name     string
	Member   string // of this process alone; it keeps it when it starts again
	Streams  []string
	Takeover time.Duration // after what silence of a member others have its records; 10 s when 0
	Ordered  bool          // a stream is with one member at a time, and its results are in its order

	Delete          bool  // records that were committed are deleted from their streams
	MaxLen          int64 // about how many entries a stream of results keeps; 0: all
	MaxMessageBytes int   // of one result; 16 MiB when 0
}

const (
	defaultTakeover = 10 * time.Second
	leastTakeover   = 100 * time.Millisecond
)

func (g Group) check(cluster bool) error {
	switch {
	case g.Name == "" || g.Member == "":
		return errors.New("a consumer group needs a name, and its member one")
	case strings.Contains(g.Member, "/"):
		return fmt.Errorf("the name of a member must be without slashes, unlike %q", g.Member)
	case len(g.Streams) == 0 || slices.Contains(g.Streams, ""):
		return errors.New("a consumer group needs streams to consume")
	case len(slices.Compact(slices.Sorted(slices.Values(g.Streams)))) < len(g.Streams):
		return errors.New("a stream is given twice")
	case g.Takeover != 0 && g.Takeover < leastTakeover:
		return fmt.Errorf("a member must be allowed to be silent for %v at the least, not %v", leastTakeover, g.Takeover)
	case g.MaxLen < 0 || g.MaxMessageBytes < 0:
		return errors.New("bounds of results cannot be negative")
	case cluster:
		return sameTag(g.Streams)
	}
	return nil
}

func (g Group) withDefaults() Group {
	g.Takeover = cmp.Or(g.Takeover, defaultTakeover)
	g.MaxMessageBytes = cmp.Or(g.MaxMessageBytes, defaultLimit)
	g.Streams = slices.Clone(g.Streams)
	return g
}
