package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/check"
)

// Unreadable is the check of a configuration that cannot be used, without which nothing else can be checked.
func Unreadable(err error) check.Check {
	return func(ctx context.Context) []check.Finding {
		return []check.Finding{check.Broken(ctx, "configuration", err, "correct the setting; docs/configuration.md lists all of them")}
	}
}

// Ground checks what every mode stands on.
func Ground(cfg *config.Config) []check.Check {
	return []check.Check{
		func(context.Context) []check.Finding { return configuration(cfg) },
		func(context.Context) []check.Finding { return []check.Finding{dataDir(cfg.DataDir)} },
		func(context.Context) []check.Finding { return space(cfg) },
		func(ctx context.Context) []check.Finding { return bundles(ctx, bundleFolder(cfg)) },
		func(context.Context) []check.Finding { return certificates(cfg.TLS, time.Now()) },
	}
}

// space judges the file system of the data directory, and that of the bundles where they lie
// elsewhere.
func space(cfg *config.Config) []check.Finding {
	all := []check.Finding{freeSpace("free space", cfg.DataDir)}
	if at := bundleFolder(cfg); at != "" && cfg.Web.Bundles != "" {
		all = append(all, freeSpace("free space for bundles", at))
	}
	return all
}

func configuration(cfg *config.Config) []check.Finding {
	f := check.Good("configuration", "%s: %d apps, %d model versions", cfg.File, len(cfg.Apps), len(cfg.Versions))
	if cfg.File == "" {
		f.Detail = "no file: the defaults, variables and flags apply"
	}
	all := []check.Finding{f}
	for _, w := range cfg.Warnings {
		all = append(all, check.Warning("configuration", w, "correct or unset the variable"))
	}
	return all
}

// dataDir writes a file into the folder, or into the one that it would be made in: to
// make it here could give it to the wrong user.
func dataDir(dir string) check.Finding {
	const name, next = "data directory", "give the user of this process access to the folder, or set data_dir"
	at := existing(dir)
	probe, err := os.CreateTemp(at, ".topsail-doctor-*")
	if err != nil {
		return check.Bad(name, fmt.Sprintf("%s cannot be written: %v", dir, err), next)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return check.Bad(name, err.Error(), next)
	}
	if at != dir {
		return check.Good(name, "%s is made at the first start", dir)
	}
	return check.Good(name, "%s can be written", dir)
}

// soon is how long before its expiry a certificate is reported.
const soon = 14 * 24 * time.Hour

// certificates checks those of the settings [tls], if there are any.
func certificates(set config.TLS, now time.Time) []check.Finding {
	var all []check.Finding
	if set.CertFile != "" {
		f := certificate("certificate", set.CertFile, now)
		if _, err := tls.LoadX509KeyPair(set.CertFile, set.KeyFile); err != nil && f.State != check.Failed {
			f = check.Bad("certificate", err.Error(), "put a certificate and its matching key into tls.cert_file and tls.key_file")
		}
		all = append(all, f)
	}
	if set.CAFile != "" {
		all = append(all, certificate("authorities", set.CAFile, now))
	}
	return all
}

// certificate judges the first one of a file to end.
func certificate(name, path string, now time.Time) check.Finding {
	end, err := firstEnd(path)
	if err != nil {
		return check.Bad(name, fmt.Sprintf("%s: %v", path, err), "put certificates in PEM there")
	}
	f := check.Good(name, "%s is valid until %s", path, end.Format(time.DateOnly))
	switch left := end.Sub(now); {
	case left <= 0:
		f.State, f.Detail = check.Failed, fmt.Sprintf("%s expired at %s", path, end.Format(time.RFC3339))
	case left < soon:
		f.State, f.Detail = check.Warn, fmt.Sprintf("%s expires in %d days, at %s", path, int(left.Hours()/24), end.Format(time.RFC3339))
	default:
		return f
	}
	f.Next = "replace it; the new one is used without a restart"
	return f
}

func firstEnd(path string) (time.Time, error) {
	rest, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, errors.Unwrap(err) // the caller reports the path
	}
	var first time.Time
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, err
		}
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	if first.IsZero() {
		return first, errors.New("it contains no certificate")
	}
	return first, nil
}
