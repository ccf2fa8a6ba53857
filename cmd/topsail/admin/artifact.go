package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/durable"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/web/api"
)

func artifactCommand() *cobra.Command {
	list := verb(&cobra.Command{Use: "list", Short: "List the bundles", Args: cobra.NoArgs}, listArtifacts)
	get := verb(takes("get DIGEST", "Show a bundle's manifest", digests), func(k *call) error {
		return read(k, k.artifactTable, nil, "artifacts", k.args[0])
	})
	push := &cobra.Command{
		Use: "push PATH", Short: "Upload a bundle: a zip archive, or a folder with a manifest.json", Args: cobra.ExactArgs(1),
	}
	pull := takes("pull DIGEST", "Download a bundle", digests)
	pull.Flags().StringP("file", "f", "", "where to write it (default: the digest, with .zip); must not exist")
	remove := confirms(takes("delete DIGEST", "Delete an unused bundle", digests))
	return noun(&cobra.Command{Use: "artifact", Short: "Bundles: the files of versions"},
		list, get, verb(push, pushArtifact), verb(pull, pullArtifact), verb(remove, deleteArtifact))
}

func pushArtifact(k *call) error {
	a, raw, err := k.push(k.ctx, k.args[0])
	if err != nil {
		return err
	}
	k.say("%s", a.Digest)
	if k.format == "json" {
		return k.json(raw)
	}
	return nil
}

func listArtifacts(k *call) error {
	artifacts, raw, err := items[api.Artifact](k, 0, nil, "artifacts")
	if err != nil {
		return err
	}
	t := screen.NewTable("DIGEST", "RUNTIME", "PYTHON", "SIZE", "CREATED", "USED BY")
	for _, a := range artifacts {
		m := manifestOf(a)
		digest := a.Digest
		if !k.wide() {
			digest = screen.Short(digest, 20)
		}
		t.Row(digest, m.Runtime, m.Python, screen.Bytes(a.Size), screen.Ago(k.now, a.Created), strings.Join(a.UsedBy, ", "))
	}
	return k.showList(raw, t, "there are no bundles: upload one with `topsail artifact push PATH`")
}

// manifestOf is the manifest as far as it is known here.
func manifestOf(a api.Artifact) (m struct {
	Runtime      string   `json:"runtime"`
	Python       string   `json:"python"`
	Entry        string   `json:"entry"`
	InputType    string   `json:"input_type"`
	Description  string   `json:"description"`
	Requirements []string `json:"requirements"`
	Files        map[string]struct {
		Size int64 `json:"size"`
	} `json:"files"`
}) {
	_ = json.Unmarshal(a.Manifest, &m) // what is of another type is left out
	return m
}

func (k *call) artifactTable(a api.Artifact) *screen.Table {
	m, t := manifestOf(a), screen.NewTable()
	t.Row("digest", a.Digest)
	t.Row("size", screen.Bytes(a.Size))
	t.Row("created", screen.Ago(k.now, a.Created))
	t.Row("used by", strings.Join(a.UsedBy, ", "))
	t.Row("description", m.Description)
	t.Row("runtime", strings.TrimSpace(m.Runtime+" "+m.Python))
	t.Row("entry", m.Entry)
	t.Row("input type", m.InputType)
	t.Row("requirements", strings.Join(m.Requirements, ", "))
	for _, name := range sortedKeys(m.Files) {
		t.Row("file", name+", "+screen.Bytes(m.Files[name].Size))
	}
	return t
}

// push uploads the bundle at path, with its progress.
func (k *call) push(ctx context.Context, path string) (api.Artifact, json.RawMessage, error) {
	var stored api.Artifact
	content, done, err := openBundle(path)
	if err != nil {
		return stored, nil, err
	}
	defer done()
	info, err := content.Stat()
	if err != nil {
		return stored, nil, err
	}
	progress := k.Progress()
	defer progress.End()
	sent := &meter{from: content, size: info.Size(), tell: func(n, size int64) {
		progress.Say("uploading %s %s of %s", screen.Bar(float64(n)/float64(max(size, 1)), 20), screen.Bytes(n), screen.Bytes(size))
	}}
	// Its size says how long it takes, and so nothing but the caller ends it.
	response, err := k.Stream(ctx, apiclient.Request{
		Method: http.MethodPost, Path: []string{"artifacts"}, Type: "application/zip", Content: sent, Length: info.Size(),
	})
	if err != nil {
		return stored, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, apiclient.MaxAnswer))
	if err == nil {
		err = json.Unmarshal(raw, &stored)
	}
	if err != nil {
		return stored, nil, fmt.Errorf("the answer to the upload cannot be read: %w", err)
	}
	return stored, raw, nil
}

// meter reports how much has been read.
type meter struct {
	from       io.Reader
	size, read int64
	shown      int64 // percent
	tell       func(read, size int64)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.read += int64(n)
	if percent := m.read * 20 / max(m.size, 1); n > 0 && percent != m.shown { // in steps of 5 %
		m.shown = percent
		m.tell(m.read, m.size)
	}
	return n, err
}

// openBundle opens an archive, or makes one of a folder.
func openBundle(path string) (content *os.File, done func(), err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		return packBundle(path)
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	content, err = os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return content, func() { content.Close() }, nil
}

// packBundle makes a bundle of a folder, in a temporary file.
func packBundle(dir string) (content *os.File, done func(), err error) {
	root, err := os.OpenRoot(dir) // links do not lead out of it
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }() // it was only read
	m, err := readManifest(root)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	content, err = os.CreateTemp("", "topsail-bundle-*.zip")
	if err != nil {
		return nil, nil, err
	}
	done = func() { content.Close(); os.Remove(content.Name()) }
	if err = bundle.Write(content, m, without{root.FS(), bundle.ManifestName}); err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("cannot make a bundle of %s: %w", dir, err)
	}
	return content, done, nil
}

// readManifest reads a manifest that may lack what packing fills in.
func readManifest(root *os.Root) (*bundle.Manifest, error) {
	f, err := root.Open(bundle.ManifestName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("manifest.json is missing; it says what runs the bundle, such as " +
			`{"runtime": "sklearn", "python": "3.11", "entry": "model.pkl"}`)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &bundle.Manifest{}
	decoder := json.NewDecoder(io.LimitReader(f, maxFileBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(m); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", bundle.ManifestName, err)
	}
	if m.Format != 0 && m.Format != bundle.Format {
		return nil, fmt.Errorf("%s has format %d, and this topsail writes format %d", bundle.ManifestName, m.Format, bundle.Format)
	}
	return m, nil
}

func pullArtifact(k *call) error {
	digest := k.args[0]
	hexDigits, err := bundle.ParseDigest(digest)
	if err != nil {
		return usageError{err}
	}
	path := text(k.cmd, "file")
	if path == "" {
		path = hexDigits + ".zip"
	}
	response, err := k.Open(k.ctx, apiclient.Request{Path: []string{"artifacts", digest, "content"}, Accept: "application/zip"})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	progress := k.Progress()
	defer progress.End()
	from := &meter{from: response.Body, size: response.ContentLength, tell: func(n, size int64) {
		progress.Say("downloading %s of %s", screen.Bytes(n), screen.Bytes(size))
	}}
	if err := save(path, from, hexDigits); err != nil {
		return err
	}
	progress.End()
	k.say("%s", path)
	return nil
}

// save writes a new file, whole and as its digest says or not at all.
func save(path string, from io.Reader, digest string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s already exists: name another file with --file", path)
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".topsail-pull-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	defer part.Close()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(part, hash), from); err != nil {
		return fmt.Errorf("the download was interrupted: %w", err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != digest {
		return errors.New("the download does not match its digest: it was damaged in transit or on the server")
	}
	return durable.Rename(part.Name(), path)
}

func deleteArtifact(k *call) error {
	if sure, err := k.sure("Delete bundle %s?", k.args[0]); err != nil || !sure {
		return err
	}
	return k.change(deletion("artifacts", k.args[0]), "bundle %s is deleted", k.args[0])
}
