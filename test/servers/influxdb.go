package servers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
)

// InfluxDB is an InfluxDB 1.8 that keeps its data in dir and answers Flux. It takes
// two ports from port on; the first is its API's.
func InfluxDB(dir string, port int) (*Server, error) {
	path, err := Binary("influxd")
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`
reporting-disabled = true
bind-address = "127.0.0.1:%d"
[meta]
  dir = %q
[data]
  dir = %q
  wal-dir = %q
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:%d"
  flux-enabled = true
  log-enabled = false
[monitor]
  store-enabled = false
[logging]
  level = "warn"
`, port+1, filepath.Join(dir, "meta"), filepath.Join(dir, "data"), filepath.Join(dir, "wal"), port)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "influxdb.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return &Server{
		Name: "influxdb", Addr: address(port), argv: []string{path, "-config", file},
		log: filepath.Join(dir, "influxdb.log"), ready: influxReady,
	}, nil
}

// influxReady makes the database "topsail", which its API for version 2 does not.
func influxReady(ctx context.Context, addr string) error {
	query := url.Values{"q": {`CREATE DATABASE "topsail"`}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/query?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("create database: %s", resp.Status)
	}
	return nil
}
