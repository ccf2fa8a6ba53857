package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// RegistryPath is where the API of Confluent's schema registry is in that of Registry.
const RegistryPath = "/apis/ccompat/v7"

// Registry is an Apicurio Registry, which has the API of Confluent's schema registry, in memory.
func Registry(dir string, port int) (*Server, error) {
	folder, err := Binary("registry")
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("java is not installed; on Debian: apt-get install default-jre-headless")
	}
	found, err := filepath.Glob(filepath.Join(folder, "*-runner.jar"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s has no runner; run: make clean-cache servers", folder)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Server{
		Name: "registry", Addr: address(port), log: filepath.Join(dir, "registry.log"), ready: registryReady,
		argv: []string{
			java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + dir,
			"-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", port), "-jar", found[0],
		},
	}, nil
}

func registryReady(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+RegistryPath+"/subjects", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
