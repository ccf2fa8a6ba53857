package redisstream

import (
	_ "embed" // the scripts

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed poll.lua
	pollLua string
	//go:embed commit.lua
	commitLua string
	//go:embed lease.lua
	leaseLua string
	//go:embed leave.lua
	leaveLua string
	//go:embed keep.lua
	keepLua string
)

// scripts run in Redis, each as one step that nothing comes between.
type scripts struct{ poll, commit, lease, leave, keep *redis.Script }

func newScripts() scripts {
	return scripts{
		poll:   redis.NewScript(pollLua),
		commit: redis.NewScript(commitLua),
		lease:  redis.NewScript(leaseLua),
		leave:  redis.NewScript(leaveLua),
		keep:   redis.NewScript(keepLua),
	}
}

// What scripts return.
const (
	done = "done"
	gone = "gone" // without the lease of a stream
)
