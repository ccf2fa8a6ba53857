package redisstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Broker says where Redis is and how to get in. Addrs and Log are required.
type Broker struct {
	Addrs   []string // host:port of Redis, of some nodes of a Cluster, or of the Sentinels
	Master  string   // the master that the Sentinels watch; empty: there are none
	Cluster bool

	Username         string
	Password         func() (string, error) // asked for every new connection, so that it may change; nil: none
	SentinelUsername string
	SentinelPassword string
	TLS              *tls.Config // nil: no TLS
	Log              *slog.Logger

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // of tests; nil: the usual one
}

// Bounds of every conversation with Redis.
const (
	ioTimeout   = 2 * time.Second // to dial, to read, to write
	callTimeout = 5 * time.Second // a command, with its retries
)

func (b Broker) check() error {
	switch {
	case len(b.Addrs) == 0:
		return errors.New("redis needs an address, such as 127.0.0.1:6379")
	case b.Cluster && b.Master != "":
		return errors.New("redis is a Cluster or has Sentinels, not both")
	}
	return nil
}

// Commands that failed are repeated, or not: those that must not be done twice.
const (
	repeat      = 2
	doNotRepeat = -1
)

// connect makes a client; it dials when it is used.
func (b Broker) connect(connections, retries int) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:         b.Addrs,
		MasterName:    b.Master,
		IsClusterMode: b.Cluster,
		Dialer:        b.dial,

		CredentialsProviderContext: b.credentials,
		SentinelUsername:           b.SentinelUsername,
		SentinelPassword:           b.SentinelPassword,
		TLSConfig:                  b.TLS,

		PoolSize:              connections,
		DialTimeout:           ioTimeout,
		DialerRetries:         1,
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            retries,
		MinRetryBackoff:       10 * time.Millisecond,
		MaxRetryBackoff:       100 * time.Millisecond,

		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (b Broker) credentials(context.Context) (username, password string, err error) {
	if b.Password == nil {
		return "", "", nil
	}
	password, err = b.Password()
	if err != nil {
		return "", "", fmt.Errorf("get the password of redis: %w", err)
	}
	return b.Username, password, nil
}
