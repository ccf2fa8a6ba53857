package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
)

// What InfluxDB2 is set up with.
const (
	InfluxOrg    = "topsail"
	InfluxBucket = "topsail"
)

// InfluxDB2 is an InfluxDB 2 that keeps its data in dir, with an organisation, a
// bucket and a token that may do everything.
func InfluxDB2(dir string, port int, token string) (*Server, error) {
	path, err := Binary("influxd2")
	if err != nil {
		return nil, err
	}
	return &Server{
		Name: "influxdb2", Addr: address(port),
		argv: []string{
			path, "--http-bind-address", address(port), "--bolt-path", filepath.Join(dir, "influxd.bolt"),
			"--sqlite-path", filepath.Join(dir, "influxd.sqlite"), "--engine-path", filepath.Join(dir, "engine"),
			"--reporting-disabled", "--log-level", "error",
		},
		log:   filepath.Join(dir, "influxdb2.log"),
		ready: func(ctx context.Context, addr string) error { return setUp(ctx, addr, token) },
	}, nil
}

// setUp makes the first user, organisation and bucket, unless that was done before.
func setUp(ctx context.Context, addr, token string) error {
	if err := answers("/health", `"pass"`)(ctx, addr); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{
		"username": "topsail", "password": token, "token": token, "org": InfluxOrg, "bucket": InfluxBucket,
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/api/v2/setup", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusCreated, http.StatusUnprocessableEntity: // made now, or before
		return nil
	}
	return errors.New("set up: " + fmt.Sprint(resp.Status))
}
