package role

import (
	"errors"
	"net"
	"net/url"
	"os"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
)

// Redis is the one that keeps the state of the cluster. REDIS_URL says where it is if
// redis.addrs does not.
func (b *Base) Redis() (redisclient.Server, error) {
	c := b.Config.Redis
	r := redisclient.Server{Addrs: c.Addrs, Master: c.Master, Cluster: c.Cluster, Username: c.Username}
	secured := c.TLS
	if text := os.Getenv("REDIS_URL"); text != "" && b.Config.ByDefault("redis.addrs") {
		var err error
		if secured, err = fromURL(&r, text); err != nil {
			return r, err
		}
	}
	return r, b.Secure(&r, c.PasswordFile, secured)
}

// Secure adds a password of a file and TLS, where there is one and it is wanted.
func (b *Base) Secure(r *redisclient.Server, passwordFile string, secured bool) (err error) {
	if passwordFile != "" {
		if r.Password, err = b.Password(passwordFile); err != nil {
			return err
		}
	}
	if secured {
		r.TLS, err = b.TLS.Client()
	}
	return err
}

// Password reads a password from a file, whenever it is asked for.
func (b *Base) Password(file string) (func() (string, error), error) {
	password, err := b.Token(file)
	if err != nil {
		return nil, err
	}
	return func() (string, error) { return string(password.Bytes()), nil }, nil
}

// fromURL takes the address of Redis from the variable that others use: redis:// or,
// with TLS, rediss://, and then USER:PASSWORD@HOST:PORT.
func fromURL(r *redisclient.Server, text string) (secured bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return false, errors.New("REDIS_URL must be redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS") // it may hold a password
	}
	r.Addrs = []string{u.Host}
	if u.Port() == "" {
		r.Addrs[0] = net.JoinHostPort(u.Hostname(), "6379")
	}
	if user := u.User; user != nil {
		r.Username = user.Username()
		if password, ok := user.Password(); ok {
			r.Password = func() (string, error) { return password, nil }
		}
	}
	return u.Scheme == "rediss", nil
}
