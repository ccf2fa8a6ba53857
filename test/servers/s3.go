package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// S3AccessKey and S3SecretKey are the keys of S3.
const (
	S3AccessKey = "topsail"
	S3SecretKey = "topsail-secret"
)

// S3 is a VersityGW, an object store with the API of Amazon S3, that keeps its data in dir.
// Its one bucket is "bundles".
func S3(dir string, port int) (*Server, error) {
	path, err := Binary("versitygw")
	if err != nil {
		return nil, err
	}
	data, meta := filepath.Join(dir, "data"), filepath.Join(dir, "meta")
	if err := errors.Join(os.MkdirAll(filepath.Join(data, "bundles"), 0o755), os.MkdirAll(meta, 0o755)); err != nil {
		return nil, err
	}
	return &Server{
		Name: "s3", Addr: address(port), log: filepath.Join(dir, "s3.log"), ready: s3Ready,
		argv: []string{path, "--port", address(port), "--access", S3AccessKey, "--secret", S3SecretKey, "--quiet", "posix", "--sidecar", meta, data},
	}, nil
}

// s3Ready asks without keys, which is refused by one that is ready.
func s3Ready(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/bundles", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
