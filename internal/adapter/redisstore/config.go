package redisstore

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
)

// Config says where Redis is, and what a Store keeps there. Addrs and Log are required.
type Config struct {
	redisclient.Server

	Prefix   string // of all keys; "topsail" when empty
	Snapshot string // the file of the last good catalog, of one process; empty: none
	Log      *slog.Logger
}

// Bounds of every conversation with Redis.
const (
	callTimeout = 3 * time.Second // a command, with its retries
	blockFor    = 2 * time.Second // how long Redis holds a read of a stream
)

func (cfg *Config) check() error {
	if strings.ContainsAny(cfg.Prefix, "{} ") {
		return fmt.Errorf("the prefix of Redis keys must be without braces and spaces, unlike %q", cfg.Prefix)
	}
	return cfg.Check()
}
