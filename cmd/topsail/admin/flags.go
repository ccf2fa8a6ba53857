package admin

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	defaultServer  = "http://127.0.0.1:1338"
	defaultGateway = "http://127.0.0.1:1337"

	envServer  = "TOPSAIL_ADMIN_URL"
	envGateway = "TOPSAIL_URL"
	envKey     = "TOPSAIL_API_KEY"
	envKeyFile = "TOPSAIL_API_KEY_FILE"

	defaultTimeout = 30 * time.Second

	maxKeyBytes = 4 << 10
)

// serverFlags say which management API to call, and how to show what it answers.
func serverFlags(flags *pflag.FlagSet) {
	flags.String("server", "", "URL of the management API (default $"+envServer+", or "+defaultServer+")")
	reachFlags(flags, defaultTimeout)
}

// gatewayFlags are serverFlags for a gateway, whose answer may take as long as the timeout by default.
func gatewayFlags(flags *pflag.FlagSet, timeout time.Duration) {
	flags.String("gateway", "", "URL of a gateway (default $"+envGateway+", or "+defaultGateway+")")
	reachFlags(flags, timeout)
}

func reachFlags(flags *pflag.FlagSet, timeout time.Duration) {
	flags.String("key-file", "", "file of the key to show (default $"+envKey+", or the file that $"+envKeyFile+" names)")
	flags.String("ca-file", "", "certificates to trust, in PEM, in addition to the system's")
	flags.StringP("output", "o", "table", "table, wide or json")
	flags.Duration("timeout", timeout, "how long a request may take")
}

// text is the value of a flag that the command has.
func text(c *cobra.Command, flag string) string {
	f := c.Flag(flag)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

// parameters are those of some flags that have a value, by their names, for a request.
func (k *call) parameters(flags ...string) url.Values {
	query := url.Values{}
	for _, flag := range flags {
		if v := text(k.cmd, flag); v != "" {
			query.Set(flag, v)
		}
	}
	return query
}

// key finds the key to show; without one it is empty. It is never part of an error.
func key(file string, getenv func(string) string) (string, error) {
	if file == "" {
		if key := strings.TrimSpace(getenv(envKey)); key != "" {
			return key, printable(key, "$"+envKey)
		}
		file = getenv(envKeyFile)
	}
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the key: %w", err)
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
	if err != nil {
		return "", fmt.Errorf("the key: %w", err)
	}
	key := strings.TrimSpace(string(all))
	if key == "" || len(all) > maxKeyBytes {
		return "", fmt.Errorf("%s must hold one key and nothing else", file)
	}
	return key, printable(key, file)
}

// printable refuses what cannot stand in a header, and does not quote it.
func printable(key, where string) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s must hold one key and nothing else", where)
	}
	return nil
}

// address is where to call: the flag, the variable, or the default.
func address(flag, env, otherwise string, getenv func(string) string) string {
	return cmp.Or(flag, getenv(env), otherwise)
}

// checkOutput refuses an unknown format for -o.
func checkOutput(format string) error {
	switch format {
	case "table", "wide", "json":
		return nil
	}
	return usageError{fmt.Errorf("output %q is unknown: use table, wide or json", format)}
}
