package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/check"
)

// checkRedis asks Redis how it is, and reads the catalog as every role does.
func (p *parts) checkRedis(ctx context.Context) []check.Finding {
	const name, start = "redis", "start Redis, or set redis.addrs; the user and its password are redis.username and redis.password_file"
	store, err := p.openStore(ctx, "")
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, start)}
	}
	defer store.Close()
	state := store.State()
	if state.Away != "" {
		return []check.Finding{check.Broken(ctx, name, errors.New(state.Away), start)}
	}
	d, err := store.Diagnose(ctx)
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, start)}
	}
	return slices.Concat(judgeRedis(d), []check.Finding{judgeWrites(d.Write), judgeCatalog(state, d.Alarm), doctor.LastBackup(ctx, store)}, doctor.Clock("redis clock", d.Ahead))
}

// judgeRedis says whether Redis can keep what it is given; docs/operations.md has why.
func judgeRedis(d redisstore.Diagnosis) []check.Finding {
	if d.Info != nil {
		return []check.Finding{check.Warning("redis", "answers, but does not show its configuration: "+d.Info.Error(), "make sure that it has appendonly yes, appendfsync always and maxmemory-policy noeviction")}
	}
	memory := check.Good("redis", "version %s, %s of memory in use, no limit", d.Version, mebibytes(d.UsedBytes))
	if d.MaxBytes > 0 {
		memory.Detail = fmt.Sprintf("version %s, %s of memory in use of %s", d.Version, mebibytes(d.UsedBytes), mebibytes(d.MaxBytes))
		if d.UsedBytes > d.MaxBytes/10*9 {
			memory.State, memory.Next = check.Warn, "raise maxmemory: at the limit, writes fail"
		}
	}
	keeps := check.Good("redis durability", "appendonly yes, appendfsync %s", d.Fsync)
	switch {
	case !d.AppendOnly:
		keeps = check.Bad(keeps.Name, "appendonly no: a restart loses what was acknowledged", "set appendonly yes and appendfsync always")
	case d.Fsync == "":
		keeps.Detail = "appendonly yes; this user may not read appendfsync"
	case d.Fsync != "always":
		keeps.State, keeps.Next = check.Warn, "set appendfsync always, or accept that a power failure loses the last second"
	}
	evicts := check.Good("redis eviction", "maxmemory-policy %s", d.Eviction)
	if d.Eviction != "noeviction" {
		evicts.State, evicts.Next = check.Failed, "set maxmemory-policy noeviction: any other policy evicts state"
	}
	return []check.Finding{memory, keeps, evicts}
}

func judgeWrites(err error) check.Finding {
	if err != nil {
		return check.Bad("redis writes", err.Error(), "give the user of Redis all commands on keys of redis.prefix, and Redis room on its disk")
	}
	return check.Good("redis writes", "keys of the prefix can be written")
}

func judgeCatalog(state redisstore.State, alarm string) check.Finding {
	const name = "catalog"
	switch {
	case alarm != "":
		return check.Bad(name, "a running process has an alarm: "+alarm, "`topsail restore`, or with --accept")
	case state.Alarm != "":
		return check.Bad(name, state.Alarm, "docs/operations.md, \"Back up and restore\"")
	case state.Epoch == "":
		return check.Warning(name, "there is none yet", "apply the configuration file's apps and models with `topsail apply`")
	}
	return check.Good(name, "revision %d", state.Revision)
}

// mebibytes is a size for people.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
