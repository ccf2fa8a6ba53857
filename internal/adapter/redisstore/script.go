package redisstore

import (
	"context"
	_ "embed" // the scripts
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed read.lua
	readLua string
	//go:embed write.lua
	writeLua string
	//go:embed lease.lua
	leaseLua string
	//go:embed decide.lua
	decideLua string
	//go:embed audit.lua
	auditLua string
	//go:embed load.lua
	loadLua string
	//go:embed swap.lua
	swapLua string
	//go:embed aside.lua
	asideLua string
	//go:embed usage.lua
	usageLua string
	//go:embed reserve.lua
	reserveLua string
	//go:embed unused.lua
	unusedLua string
	//go:embed audited.lua
	auditedLua string
	//go:embed skip.lua
	skipLua string
)

// scripts run in Redis, each as one step that nothing comes between.
type scripts struct{ read, write, lease, decide, audit, load, swap, aside, usage, reserve, unused, audited, skip *redis.Script }

func newScripts() scripts {
	return scripts{
		read:   redis.NewScript(readLua),
		write:  redis.NewScript(writeLua),
		lease:  redis.NewScript(leaseLua),
		decide: redis.NewScript(decideLua),
		audit:  redis.NewScript(auditLua),
		load:   redis.NewScript(loadLua),
		swap:   redis.NewScript(swapLua),
		aside:  redis.NewScript(asideLua),
		usage:  redis.NewScript(usageLua),

		reserve: redis.NewScript(reserveLua),
		unused:  redis.NewScript(unusedLua),
		audited: redis.NewScript(auditedLua),
		skip:    redis.NewScript(skipLua),
	}
}

// What a script that writes returns.
const (
	done     = "done"
	moved    = "moved"    // the catalog is no longer where it was
	fenced   = "fenced"   // a higher fencing token has written
	conflict = "conflict" // the state is no longer at the revision
	damaged  = "damaged"  // there was something else in place of the state
	full     = "full"     // there is no room for the bundle
)

// run runs a script within its time.
func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (result any, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		result, err = script.Run(ctx, s.client, keys, args...).Result()
		return err
	})
	return result, err
}

// call asks Redis something within the time for it.
func (s *Store) call(ctx context.Context, ask func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := ask(bounded)
	switch why := refusal(err); {
	case err == nil:
		return nil
	case why != nil:
		s.noteWrites(why, err)
		return fmt.Errorf("ask redis: %w", why)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("redis does not answer within %v: %w", callTimeout, err)
	}
	return fmt.Errorf("ask redis: %w", err)
}
