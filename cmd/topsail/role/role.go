// Package role is what every process of Topsail has in common, whatever its role:
// listeners with their certificates, keys, the port for operators.
package role

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/memory"
	"github.com/topsail-serving/topsail/gateway/grpcapi"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
)

// Base is the ground that a role is built on.
type Base struct {
	Config  *config.Config
	Log     *slog.Logger
	Metrics *obs.Registry
	TLS     access.TLS     // of this process, for its listeners and towards its peers
	Budget  *budget.Budget // of the requests and answers of all listeners that are under way

	opsKeys *access.Keys
	taken   []net.Listener
}

// New prepares the ground.
func New(cfg *config.Config, log *slog.Logger) *Base {
	redisclient.LogTo(log)
	b := &Base{
		Config: cfg, Log: log, Metrics: obs.NewRegistry(), Budget: budget.New(memory.Share(cfg.Gateway.MaxInflightBytes, memory.Available)),
		TLS: access.TLS{CertFile: cfg.TLS.CertFile, KeyFile: cfg.TLS.KeyFile, CAFile: cfg.TLS.CAFile, Log: log},
	}
	b.Metrics.GaugeFunc("topsail_certificate_expiry_seconds", "When this process's certificate expires, in Unix time; 0 without a usable one.", func() float64 {
		if at := b.TLS.Expiry(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	})
	return b
}

// Listen takes the address of a setting, with TLS if there is a certificate, until Close.
func (b *Base) Listen(setting, addr string, requireClientCert bool) (net.Listener, error) {
	return b.listen(setting, addr, requireClientCert, access.TLS.Listen)
}

func (b *Base) listen(setting, addr string, requireClientCert bool, secure func(access.TLS, net.Listener) (net.Listener, error)) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		flag := strings.NewReplacer(".", "-", "_", "-").Replace(setting)
		return nil, fmt.Errorf("cannot listen on %s: %w; stop what uses it, or set another address with --%s", setting, err, flag)
	}
	tls := b.TLS
	tls.RequireClientCert = requireClientCert
	secured, err := secure(tls, ln)
	if err != nil {
		ln.Close()
		return nil, err
	}
	b.taken = append(b.taken, secured)
	return secured, nil
}

// Close gives all addresses back.
func (b *Base) Close() {
	for _, ln := range b.taken {
		_ = ln.Close() // it may have been served, and closed then
	}
}

// ListenGateway, ListenWeb and ListenOps take the addresses of these roles.
func (b *Base) ListenGateway() (net.Listener, error) {
	return b.Listen("gateway.addr", b.Config.Gateway.Addr, b.Config.Gateway.RequireClientCert)
}

// ListenGRPC takes the address of the gateway for gRPC; it is nil where there is none. A taken address
// that was not chosen is none: only the log says so.
func (b *Base) ListenGRPC() (net.Listener, error) {
	addr, chosen := b.Config.Gateway.GRPC()
	if addr == "" {
		return nil, nil
	}
	ln, err := b.listen("gateway.grpc_addr", addr, b.Config.Gateway.RequireClientCert, access.TLS.ListenHTTP2)
	if err != nil && !chosen {
		b.Log.Warn("gRPC is not served: its default address is taken; set gateway.grpc_addr to another one, or to none", "addr", addr, "err", err)
		return nil, nil
	}
	return ln, err
}

func (b *Base) ListenWeb() (net.Listener, error) {
	return b.Listen("web.addr", b.Config.Web.Addr, b.Config.Web.RequireClientCert)
}

func (b *Base) ListenOps() (ln net.Listener, err error) {
	if b.opsKeys, err = b.Keys(b.Config.Ops.KeysFile); err != nil {
		return nil, err
	}
	return b.Listen("ops.addr", b.Config.Ops.Addr, false)
}

// Scheme begins the URLs of processes like this one.
func (b *Base) Scheme() string {
	if b.Config.TLS.CertFile != "" {
		return "https://"
	}
	return "http://"
}

// Client asks other processes over HTTP.
func (b *Base) Client() (*http.Client, error) {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 30 * time.Second,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
	}
	if b.Config.TLS.CertFile != "" {
		tls := b.TLS
		tls.ServerName = b.Config.TLS.ServerName
		dial, err := tls.Dialer()
		if err != nil {
			return nil, err
		}
		// Processes are known by their IP addresses, which the transport's own TLS does not tell.
		transport.DialTLSContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }
	}
	return &http.Client{Transport: transport, Timeout: time.Minute}, nil
}

// Keys opens a file of keys; without one there are none to show.
func (b *Base) Keys(file string) (*access.Keys, error) {
	if file == "" {
		return nil, nil
	}
	return access.KeysFile(file, b.Log)
}

// Token opens a file with a token; without one there is none.
func (b *Base) Token(file string) (access.Secret, error) {
	if file == "" {
		return access.Secret{}, nil
	}
	return access.TokenFile(file, b.Log)
}

// HTTP is how the gateway serves queries.
func (b *Base) HTTP() (httpapi.Config, error) {
	g := b.Config.Gateway
	keys, err := b.Keys(g.KeysFile)
	if err != nil {
		return httpapi.Config{}, err
	}
	for _, origin := range g.AllowedOrigins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return httpapi.Config{}, fmt.Errorf("gateway.allowed_origins has %q, which must be like https://shop.example: %w", origin, err)
		}
	}
	config := httpapi.Config{
		Budget: b.Budget, MaxBodyBytes: g.MaxBodyBytes, MaxBatch: g.MaxBatch, MaxConnections: g.MaxConnections, MaxPerAddress: g.MaxPerAddress, DrainTimeout: g.DrainTimeout,
		Keys: keys, RequireKeys: g.RequireKeys, AllowedOrigins: g.AllowedOrigins,
	}
	if !g.RequireClientCert { // a page has no certificate to show
		config.Hosts = append(append(access.Hosts{}, access.HostOf(g.Addr)...), g.Hosts...)
	}
	return config, nil
}

// GRPC is how the gateway serves gRPC.
func (b *Base) GRPC() grpcapi.Config {
	g := b.Config.Gateway
	return grpcapi.Config{Budget: b.Budget, MaxMessageBytes: g.MaxBodyBytes, MaxBatch: g.MaxBatch, MaxConnections: g.MaxConnections, DrainTimeout: g.DrainTimeout}
}

// ServeOps serves metrics and health on what ListenOps took. Without keys, metrics and profiles answer to no
// foreign name. As every role has it, memory that is not needed is given back meanwhile.
func (b *Base) ServeOps(ln net.Listener, health obs.Health, pages ...obs.Page) phase.Job {
	protect := b.opsKeys.Handler
	if b.opsKeys == nil {
		protect = access.HostOf(b.Config.Ops.Addr).Handler
	}
	l := obs.Listener{Listener: ln, Name: "ops", MaxConnections: b.Config.Ops.MaxConnections, Metrics: b.Metrics, Log: b.Log}
	return func(ctx context.Context) error {
		return phase.Run(ctx, phase.Phase{
			func(ctx context.Context) error { return obs.ServeOps(ctx, l, health, protect, pages...) },
			func(ctx context.Context) error { b.Budget.GiveBack(ctx); return nil },
		})
	}
}

// ServeWeb serves management on what ListenWeb took.
func (b *Base) ServeWeb(ln net.Listener, h http.Handler) phase.Job {
	l := obs.Listener{Listener: ln, Name: "management", MaxConnections: b.Config.Web.MaxConnections, Metrics: b.Metrics, Log: b.Log}
	return func(ctx context.Context) error { return obs.ServeHTTP(ctx, l, h) }
}
