package consulregistry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

// Options say which Consul to use. All may be empty: the standard CONSUL_*
// variables hold, and what is set here is stronger.
type Options struct {
	Addr      string // host:port, a URL, or unix:///path
	TokenFile string // read again when Consul refuses what it held
	Log       *slog.Logger

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // of tests; nil: the usual one
}

// Client is a Consul agent. It may be shared by everything in a process.
type Client struct {
	api     *api.Client
	through *transport
	log     *slog.Logger
}

const (
	dialTimeout = 2 * time.Second
	askTimeout  = 5 * time.Second // of a request that does not block
)

// Connect prepares a client; it sends nothing yet. It fails on settings that
// cannot be used, such as a token file that cannot be read.
func Connect(opt Options) (*Client, error) {
	config := api.DefaultConfig()
	config.Address = cmp.Or(opt.Addr, config.Address)
	config.TokenFile = cmp.Or(opt.TokenFile, config.TokenFile)
	dialer := &net.Dialer{Timeout: dialTimeout}
	config.Transport.DialContext = dialer.DialContext
	if opt.dial != nil {
		config.Transport.DialContext = opt.dial
	}
	if path, ok := strings.CutPrefix(config.Address, "unix://"); ok {
		config.Address = path // the SDK would replace our HTTP client for a URL
		config.Transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
	}
	secured, err := api.NewHttpClient(config.Transport, config.TLSConfig)
	if err != nil {
		return nil, fmt.Errorf("consul: TLS settings: %w; check the CONSUL_CACERT and CONSUL_CLIENT_* variables", err)
	}
	through := &transport{base: secured.Transport}
	config.HttpClient = &http.Client{Transport: through}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("consul: %w", err)
	}
	through.file, through.token = config.TokenFile, config.Token
	return &Client{api: client, through: through, log: cmp.Or(opt.Log, slog.New(slog.DiscardHandler))}, nil
}

// reading are the options of a read that sees every write before it.
func reading(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

func writing(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{}).WithContext(ctx)
}
