package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
)

// IsLocal says whether nothing is set, in settings or the variables of others, that
// only a cluster needs.
func IsLocal(cfg *config.Config, getenv func(string) string) bool {
	for _, name := range []string{"REDIS_URL", "CONSUL_HTTP_ADDR", "NOMAD_ADDR", "INFLUX_HOST"} {
		if getenv(name) != "" {
			return false
		}
	}
	return !slices.ContainsFunc(cfg.Settings(), func(s config.Setting) bool {
		table, _, _ := strings.Cut(s.Name, ".")
		return slices.Contains([]string{"redis", "consul", "nomad", "influxdb", "jobs"}, table) && !cfg.ByDefault(s.Name)
	})
}

// Local checks what local mode needs beside the ground.
func Local(cfg *config.Config) []check.Check {
	tls := access.TLS{CertFile: cfg.TLS.CertFile, KeyFile: cfg.TLS.KeyFile, CAFile: cfg.TLS.CAFile, ServerName: cfg.TLS.ServerName}
	checks := []check.Check{func(ctx context.Context) []check.Finding { return state(ctx, cfg.DataDir) }}
	for _, one := range []struct{ setting, addr, path string }{
		{"gateway.addr", cfg.Gateway.Addr, "/health"}, {"web.addr", cfg.Web.Addr, "/health"}, {"ops.addr", cfg.Ops.Addr, "/health/live"},
	} {
		checks = append(checks, func(ctx context.Context) []check.Finding {
			return []check.Finding{port(ctx, tls, one.setting, one.addr, one.path)}
		})
	}
	for _, v := range cfg.Versions {
		if v.Service != nil {
			checks = append(checks, func(ctx context.Context) []check.Finding { return service(ctx, v) })
			continue
		}
		checks = append(checks, func(context.Context) []check.Finding { return []check.Finding{command(v)} })
	}
	return checks
}

// port checks that an address is free.
func port(ctx context.Context, tls access.TLS, setting, addr, path string) check.Finding {
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", addr)
	if err == nil {
		ln.Close()
		return check.Good(setting, "%s is free", addr)
	}
	if Healthy(ctx, tls, addr, path) == nil {
		return check.Good(setting, "%s is in use by topsail", addr)
	}
	return check.Broken(ctx, setting, err, "stop what uses it, or set another "+setting)
}

// maxHealth bounds an answer about health, in bytes.
const maxHealth = 4096

// Healthy asks a process of Topsail how it is, and says what is wrong, or nil.
func Healthy(ctx context.Context, tls access.TLS, addr, path string) error {
	dial, err := tls.Dialer()
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil) // dial does the encryption
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"status":"ok"`):
		return fmt.Errorf("%s%s answers %s", addr, path, resp.Status)
	}
	return nil
}

// command checks that the command of a version is there, where its process would look.
func command(v *serving.Version) check.Finding {
	model := "model " + v.ModelID.String()
	if err := v.Container.Check(); err != nil {
		return check.Bad(model, "it cannot start", err.Error())
	}
	if len(v.Container.Command) == 0 {
		return check.Good(model, "has no command of its own")
	}
	name, dir := v.Container.Command[0], v.Container.Dir
	if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
		return check.Bad(model, fmt.Sprintf("its dir %s is not a folder", dir), "create the folder, or set the model's dir")
	}
	look := name
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		look = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(look)
	if err != nil {
		return check.Bad(model, fmt.Sprintf("its command %s cannot be run: %v", name, err), "install it, or set the model's command")
	}
	return check.Good(model, "runs %s", path)
}
