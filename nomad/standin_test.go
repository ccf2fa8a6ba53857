//go:build servers

package nomad

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// standIn says whether this process was started as topsail by a job, and as what.
// The test's own binary stands in for the program, so that the jobs can be run
// apart from what the program does: it is ready at once and tells its environment.
func standIn() (role string, ok bool) {
	if len(os.Args) < 2 || os.Getenv("NOMAD_ALLOC_ID") == "" {
		return "", false
	}
	return os.Args[1], true
}

func runStandIn(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /environment", func(w http.ResponseWriter, _ *http.Request) {
		env := map[string]string{"role": role}
		for _, entry := range os.Environ() {
			name, value, _ := strings.Cut(entry, "=")
			env[name] = value
		}
		if err := json.NewEncoder(w).Encode(env); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	server := &http.Server{Addr: os.Getenv("TOPSAIL_OPS_ADDR"), Handler: mux, ReadHeaderTimeout: time.Second}
	closing := context.AfterFunc(ctx, func() { server.Close() })
	defer closing()
	fmt.Println("listening on", server.Addr)
	serve := server.ListenAndServe
	if cert := os.Getenv("TOPSAIL_TLS_CERT_FILE"); cert != "" {
		serve = func() error { return server.ListenAndServeTLS(cert, os.Getenv("TOPSAIL_TLS_KEY_FILE")) }
	}
	if err := serve(); ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
