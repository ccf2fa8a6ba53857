package models

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/topsail-serving/topsail/stream"
)

// Locations are where models may be fetched from: URLs that a model's location has to begin
// with, http, https or file. Otherwise a client that writes to the stream could have the
// job read whatever it reaches.
type Locations struct {
	Prefixes []string
	Client   *http.Client // without a timeout of its own
}

// CheckLocation says why a URL cannot be one that locations begin with, or nil.
func CheckLocation(prefix string) error {
	u, err := url.Parse(prefix)
	switch {
	case err != nil:
		return err
	case u.Scheme == "file" && u.Host == "" && strings.HasSuffix(u.Path, "/") && u.RawQuery == "":
		return nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && strings.HasSuffix(u.Path, "/"):
		return nil
	}
	return fmt.Errorf("%q must be a URL of a folder, such as https://models.example.com/wine/ or file:///srv/models/", prefix)
}

// open opens a location; a folder, where there may be one, as a zip archive. Its error is a rejection, or an errAway.
func (l Locations) open(ctx context.Context, location string, folders bool) (io.ReadCloser, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, rejected(Invalid, "location: %v", bare(err))
	}
	prefix, ok := l.allowed(u)
	if !ok {
		return nil, l.refuse(u)
	}
	if u.Scheme == "file" {
		return openFile(prefix, u, folders)
	}
	return l.get(ctx, u)
}

func (l Locations) refuse(u *url.URL) *stream.Rejection {
	return rejected(LocationRefused, "the location %s is none that the stream fetches from: put a URL that it begins with into locations", shown(u))
}

// checkArtifacts refuses files that a message has nodes fetch from elsewhere; nil: there are none.
func (l Locations) checkArtifacts(artifacts any) *stream.Rejection {
	list, _ := artifacts.([]any)
	for _, item := range list {
		members, _ := item.(map[string]any)
		source, _ := members["source"].(string)
		u, err := url.Parse(source)
		if err != nil {
			return rejected(Invalid, "artifacts: %v", bare(err))
		}
		if _, ok := l.allowed(u); !ok {
			return l.refuse(u)
		}
	}
	return nil
}

// allowed is the prefix of a location. Dots in a path could lead out of it.
func (l Locations) allowed(u *url.URL) (*url.URL, bool) {
	clean := u.User == nil && u.Fragment == "" && path.Clean(u.Path) == u.Path && !strings.Contains(u.EscapedPath(), "%2F") && !strings.Contains(u.EscapedPath(), "%2f")
	for _, text := range l.Prefixes {
		prefix, err := url.Parse(text)
		if err == nil && clean && prefix.Scheme == u.Scheme && prefix.Host == u.Host && strings.HasPrefix(u.Path, prefix.Path) {
			return prefix, true
		}
	}
	return nil, false
}

// shown is a URL without what may be secret in it.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).Redacted()
}

// bare is an error without the URL that it is about, in which may be a secret.
func bare(err error) error {
	if about, ok := errors.AsType[*url.Error](err); ok {
		return about.Err
	}
	return err
}

// openFile opens a file below the folder of a prefix; links do not lead out of it.
func openFile(prefix, u *url.URL, folders bool) (io.ReadCloser, error) {
	root, err := os.OpenRoot(filepath.FromSlash(prefix.Path))
	if err != nil {
		return nil, errAway{err}
	}
	defer func() { _ = root.Close() }() // the file stays open
	name := filepath.FromSlash(strings.TrimPrefix(u.Path, prefix.Path))
	info, err := root.Stat(name)
	if err != nil {
		return nil, errAway{err}
	}
	if info.IsDir() && folders {
		folder, err := root.OpenRoot(name)
		if err != nil {
			return nil, errAway{err}
		}
		return archived(folder), nil
	}
	if !info.Mode().IsRegular() { // to open a pipe might take forever
		return nil, rejected(LocationRefused, "the location %s is no file", shown(u))
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, errAway{err}
	}
	return f, nil
}

// archived is a folder as a zip archive; to close it closes the folder.
func archived(folder *os.Root) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		defer func() { _ = folder.Close() }() // it was only read
		z := zip.NewWriter(w)
		err := z.AddFS(folder.FS())
		w.CloseWithError(errors.Join(err, z.Close()))
	}()
	return r
}

func (l Locations) get(ctx context.Context, u *url.URL) (_ io.ReadCloser, err error) {
	t := newTransfer(ctx, shown(u))
	defer func() {
		if err != nil {
			_ = t.Close() // there is nothing to read
		}
	}()
	request, err := http.NewRequestWithContext(t.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, rejected(Invalid, "location: %v", bare(err))
	}
	client := *l.Client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if _, ok := l.allowed(next.URL); !ok || len(via) > 5 {
			return rejected(LocationRefused, "the location %s leads to %s, which is none that the stream fetches from", shown(u), shown(next.URL))
		}
		return nil
	}
	response, err := client.Do(request)
	if refused, ok := errors.AsType[*stream.Rejection](err); ok {
		return nil, refused
	}
	if err != nil {
		return nil, t.broken(bare(err))
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // it is not read
		return nil, errAway{fmt.Errorf("%s answers %s", shown(u), response.Status)}
	}
	t.body = response.Body
	return t, nil
}
