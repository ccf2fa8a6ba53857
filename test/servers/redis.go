package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// Redis is a Redis that keeps its data in dir with an append-only file.
func Redis(dir string, port int, args ...string) (*Server, error) {
	path, err := Binary("redis-server")
	if err != nil {
		return nil, err
	}
	argv := []string{
		path, "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction", "--save", "", "--daemonize", "no",
	}
	return &Server{
		Name: "redis", Addr: address(port), argv: append(argv, args...), log: filepath.Join(dir, "redis.log"), ready: redisReady,
	}, nil
}

// redisReady pings; a Redis that still loads its file, or that asks for a password,
// answers with an error.
func redisReady(ctx context.Context, addr string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") && !strings.HasPrefix(line, "-NOAUTH") {
		return fmt.Errorf("it answers %q", strings.TrimSpace(line))
	}
	return nil
}
