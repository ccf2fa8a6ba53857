package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says where Redis is. Addrs and Log are required.
type Config struct {
	Addrs   []string // host:port of Redis, of some nodes of a Cluster, or of the Sentinels
	Master  string   // the master that the Sentinels watch; empty: there are none
	Cluster bool

	Username         string
	Password         func() (string, error) // asked for every new connection, so that it may change; nil: none
	SentinelUsername string
	SentinelPassword string
	TLS              *tls.Config // nil: no TLS

	Prefix   string // of all keys; "topsail" when empty
	Snapshot string // the file of the last good catalog, of one process; empty: none
	Log      *slog.Logger
}

// Bounds of every conversation with Redis.
const (
	ioTimeout   = 2 * time.Second // to dial, to read, to write
	callTimeout = 3 * time.Second // a command, with its retries
	blockFor    = 2 * time.Second // how long Redis holds a read of a stream
)

func (cfg *Config) check() error {
	switch {
	case len(cfg.Addrs) == 0:
		return errors.New("redis needs an address, such as 127.0.0.1:6379")
	case strings.ContainsAny(cfg.Prefix, "{} "):
		return fmt.Errorf("the prefix of Redis keys must be without braces and spaces, unlike %q", cfg.Prefix)
	case cfg.Cluster && cfg.Master != "":
		return errors.New("redis is a Cluster or has Sentinels, not both")
	}
	return nil
}

// connect makes a client; it dials when it is used. Commands are repeated after a
// lost connection, so they have to bear that.
func (cfg *Config) connect(connections int) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:         cfg.Addrs,
		MasterName:    cfg.Master,
		IsClusterMode: cfg.Cluster,

		CredentialsProviderContext: cfg.credentials,
		SentinelUsername:           cfg.SentinelUsername,
		SentinelPassword:           cfg.SentinelPassword,
		TLSConfig:                  cfg.TLS,

		PoolSize:              connections,
		DialTimeout:           ioTimeout,
		DialerRetries:         1,
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            2,
		MinRetryBackoff:       10 * time.Millisecond,
		MaxRetryBackoff:       100 * time.Millisecond,

		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (cfg *Config) credentials(context.Context) (username, password string, err error) {
	if cfg.Password == nil {
		return "", "", nil
	}
	password, err = cfg.Password()
	if err != nil {
		return "", "", fmt.Errorf("get the password of Redis: %w", err)
	}
	return cfg.Username, password, nil
}

// clientLog takes what the client library says; it is about single connections.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client: "+fmt.Sprintf(format, args...))
	}
}
