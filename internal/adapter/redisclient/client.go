// Package redisclient makes the clients that the adapters of Redis use: of one Redis, of a Cluster, or of a
// master that Sentinels watch.
package redisclient

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

// Server is where a Redis is, and how to get in. Addrs is required.
type Server struct {
	Addrs   []string // host:port of Redis, of some nodes of a Cluster, or of the Sentinels
	Master  string   // the master that the Sentinels watch; empty: there are none
	Cluster bool

	Username string
	Password func() (string, error) // asked for every new connection, so that it may change; nil: none
	TLS      *tls.Config            // nil: no TLS

	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil: the usual one
}

// IOTimeout is how long it may take to dial, to read, and to write.
const IOTimeout = 2 * time.Second

// Check says what is wrong with the server's fields, or nil.
func (s *Server) Check() error {
	switch {
	case len(s.Addrs) == 0:
		return errors.New("redis needs an address, such as 127.0.0.1:6379")
	case s.Cluster && s.Master != "":
		return errors.New("redis is a Cluster or has Sentinels, not both")
	}
	return nil
}

// What happens to a command that failed, such as one whose connection was lost.
const (
	Repeat      = 2  // times, so it has to bear being done twice
	DoNotRepeat = -1 // it must not be done twice
)

// Connect makes a client with at most so many connections, which dials when it is used. repeat is Repeat or
// DoNotRepeat. The caller closes it.
func (s *Server) Connect(connections, repeat int) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:         s.Addrs,
		MasterName:    s.Master,
		IsClusterMode: s.Cluster,
		Dialer:        s.Dial,

		CredentialsProviderContext: s.credentials,
		TLSConfig:                  s.TLS,

		PoolSize:              connections,
		DialTimeout:           IOTimeout,
		DialerRetries:         1,
		ReadTimeout:           IOTimeout,
		WriteTimeout:          IOTimeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            repeat,
		MinRetryBackoff:       10 * time.Millisecond,
		MaxRetryBackoff:       100 * time.Millisecond,

		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (s *Server) credentials(context.Context) (username, password string, err error) {
	if s.Password == nil {
		return "", "", nil
	}
	if password, err = s.Password(); err != nil {
		return "", "", fmt.Errorf("get the password of Redis: %w", err)
	}
	return s.Username, password, nil
}

// LogTo has the client library say what it says about single connections to a log, at its level of
// debugging. The library has one log for the whole process.
func LogTo(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

// Printf implements the library's logger.
func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client: "+fmt.Sprintf(format, args...))
	}
}
