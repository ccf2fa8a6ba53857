package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
)

// checkRedis asks Redis how it is, and reads the catalog as every role does.
func (p *parts) checkRedis(ctx context.Context) []doctor.Finding {
	const check, start = "redis", "start Redis, or set redis.addrs; the user and its password are redis.username and redis.password_file"
	store, err := p.openStore(ctx, "")
	if err != nil {
		return []doctor.Finding{doctor.Broken(ctx, check, err, start)}
	}
	defer store.Close()
	state := store.State()
	if state.Away != "" {
		return []doctor.Finding{doctor.Broken(ctx, check, errors.New(state.Away), start)}
	}
	d, err := store.Diagnose(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Broken(ctx, check, err, start)}
	}
	return slices.Concat(judgeRedis(d), []doctor.Finding{judgeWrites(d.Write), judgeCatalog(state, d.Alarm), doctor.LastBackup(ctx, store)}, doctor.Clock("redis clock", d.Ahead))
}

// judgeRedis says whether Redis can keep what it is given; docs/operations.md has why.
func judgeRedis(d redisstore.Diagnosis) []doctor.Finding {
	if d.Info != nil {
		return []doctor.Finding{{Check: "redis", State: doctor.Warn, Detail: "answers, but does not show its configuration: " + d.Info.Error(), Next: "make sure that it has appendonly yes, appendfsync always and maxmemory-policy noeviction"}}
	}
	memory := doctor.Good("redis", "version %s, %s of memory in use, no limit", d.Version, mebibytes(d.UsedBytes))
	if d.MaxBytes > 0 {
		memory.Detail = fmt.Sprintf("version %s, %s of memory in use of %s", d.Version, mebibytes(d.UsedBytes), mebibytes(d.MaxBytes))
		if d.UsedBytes > d.MaxBytes/10*9 {
			memory.State, memory.Next = doctor.Warn, "raise maxmemory: at the limit, writes fail"
		}
	}
	keeps := doctor.Good("redis durability", "appendonly yes, appendfsync %s", d.Fsync)
	switch {
	case !d.AppendOnly:
		keeps = doctor.Finding{Check: keeps.Check, State: doctor.Fail, Detail: "appendonly no: a restart loses what was acknowledged", Next: "set appendonly yes and appendfsync always"}
	case d.Fsync == "":
		keeps.Detail = "appendonly yes; this user may not read appendfsync"
	case d.Fsync != "always":
		keeps.State, keeps.Next = doctor.Warn, "set appendfsync always, or accept that a power failure loses the last second"
	}
	evicts := doctor.Good("redis eviction", "maxmemory-policy %s", d.Eviction)
	if d.Eviction != "noeviction" {
		evicts.State, evicts.Next = doctor.Fail, "set maxmemory-policy noeviction: any other policy evicts state"
	}
	return []doctor.Finding{memory, keeps, evicts}
}

func judgeWrites(err error) doctor.Finding {
	if err != nil {
		return doctor.Finding{Check: "redis writes", State: doctor.Fail, Detail: err.Error(), Next: "give the user of Redis all commands on keys of redis.prefix, and Redis room on its disk"}
	}
	return doctor.Good("redis writes", "keys of the prefix can be written")
}

func judgeCatalog(state redisstore.State, alarm string) doctor.Finding {
	const check = "catalog"
	switch {
	case alarm != "":
		return doctor.Finding{Check: check, State: doctor.Fail, Detail: "a running process has an alarm: " + alarm, Next: "`topsail restore`, or with --accept"}
	case state.Alarm != "":
		return doctor.Finding{Check: check, State: doctor.Fail, Detail: state.Alarm, Next: "docs/operations.md, \"Back up and restore\""}
	case state.Epoch == "":
		return doctor.Finding{Check: check, State: doctor.Warn, Detail: "there is none yet", Next: "apply the configuration file's apps and models with `topsail apply`"}
	}
	return doctor.Good(check, "revision %d", state.Revision)
}

// mebibytes is a size for people.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
