package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

// transfer bounds how long a bundle may be on its way here, however steadily it comes.
const transfer = 6 * time.Hour

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func isDigest(s string) bool { return digest.MatchString(s) }

// maxManifests bounds the manifests of a page, in bytes: one may have a megabyte.
const maxManifests = 4 << 20

// listArtifacts looks into those bundles alone that it shows.
func (a *api) listArtifacts(w http.ResponseWriter, r *http.Request) error {
	digests, err := a.Artifacts.List(r.Context())
	if err != nil {
		return err
	}
	v := a.view(r)
	users := v.users()
	digests = slices.DeleteFunc(slices.Clone(digests), func(digest string) bool { return !v.seesArtifact(users[digest]) })
	self := func(digest string) string { return digest }
	names, err := rest.PageOf(r, digests, self, self)
	if err != nil {
		return err
	}
	list := rest.Page[Artifact]{Items: []Artifact{}, Next: names.Next}
	size := 0
	for i, digest := range names.Items {
		artifact, err := a.Artifacts.Get(r.Context(), digest)
		switch {
		case errors.Is(err, ErrNoBundle), errors.Is(err, ErrBundleInvalid): // deleted meanwhile, or damaged
			continue
		case err != nil:
			return err
		}
		if size += len(artifact.Manifest); size > maxManifests && len(list.Items) > 0 {
			list.Next = rest.Cursor(names.Items[i-1])
			break
		}
		list.Items = append(list.Items, v.artifact(artifact, users[digest]))
	}
	return rest.Respond(w, http.StatusOK, list)
}

// users are the versions that use each bundle, sorted.
func (v view) users() map[string][]serving.ModelID {
	users := map[string][]serving.ModelID{}
	for _, name := range slices.Sorted(maps.Keys(v.cat.Models)) {
		for _, version := range versions(v.cat.Models[name]) {
			if b := version.Container.Bundle; b != "" {
				users[b] = append(users[b], version.ModelID)
			}
		}
	}
	return users
}

// seesArtifact says whether the caller sees a bundle with these users: one of them, or
// none is there.
func (v view) seesArtifact(users []serving.ModelID) bool {
	return len(users) == 0 || slices.ContainsFunc(users, func(id serving.ModelID) bool { return v.seesModel(id.Model) })
}

// artifact describes a bundle.
func (v view) artifact(artifact Artifact, users []serving.ModelID) Artifact {
	artifact.UsedBy = []string{}
	for _, id := range users {
		if v.seesModel(id.Model) {
			artifact.UsedBy = append(artifact.UsedBy, id.String())
		}
	}
	return artifact
}

// findArtifact is the bundle that the path names, with its users.
func (a *api) findArtifact(v view, r *http.Request) (Artifact, []serving.ModelID, error) {
	name := r.PathValue("digest")
	users := v.users()[name]
	if !isDigest(name) || !v.seesArtifact(users) {
		return Artifact{}, nil, noArtifact(name)
	}
	artifact, err := a.Artifacts.Get(r.Context(), name)
	return artifact, users, err
}

func (a *api) getArtifact(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	artifact, users, err := a.findArtifact(v, r)
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, v.artifact(artifact, users))
}

// uploadArtifact streams the body to the store, which bounds and checks it.
func (a *api) uploadArtifact(w http.ResponseWriter, r *http.Request) error {
	if err := rest.CheckType(r, "application/zip"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), transfer)
	defer cancel()
	artifact, isNew, err := a.Artifacts.Put(ctx, rest.Body{Reader: r.Body})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
		if err := a.note(r, "upload", "artifact", artifact.Digest, nil, gist(artifact.Manifest)); err != nil {
			return err
		}
	}
	v := a.view(r)
	w.Header().Set("Location", root+"/artifacts/"+artifact.Digest)
	return rest.Respond(w, status, v.artifact(artifact, v.users()[artifact.Digest]))
}

// gist is a manifest as the audit log keeps it: without the list of its files, which may
// be long, and which the digest stands for.
func gist(manifest json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(manifest, &members) != nil {
		return nil // the store has checked it
	}
	delete(members, "files")
	text, _ := json.Marshal(members) // what was JSON is JSON
	return text
}

// deleteArtifact keeps others of this process from registering a version of the bundle
// meanwhile.
func (a *api) deleteArtifact(w http.ResponseWriter, r *http.Request) error {
	if err := scopeOf(r).whole(); err != nil {
		return err
	}
	done, err := a.writer.Lock(r.Context())
	if err != nil {
		return err
	}
	defer done()
	artifact, users, err := a.findArtifact(a.view(r), r)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return inUse("the bundle is used by version %q of model %q; delete that first", users[0].Version, users[0].Model)
	}
	if err := a.Artifacts.Delete(r.Context(), artifact.Digest); err != nil {
		return err
	}
	if err := a.note(r, "delete", "artifact", artifact.Digest, gist(artifact.Manifest), nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// downloadArtifact serves the archive to clients that know its digest, in parts as well. Nodes
// ask for its address first, which is signed, and good for some minutes.
func (a *api) downloadArtifact(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("digest")
	if !isDigest(name) {
		return noArtifact(name)
	}
	query := r.URL.Query()
	if query.Has("signature") {
		if err := a.Artifacts.Signed(name, query, a.Now()); err != nil {
			return problem.New(http.StatusForbidden, "forbidden", err.Error())
		}
	}
	artifact, err := a.Artifacts.Get(r.Context(), name)
	if err != nil {
		return err
	}
	if query.Get("redirect") == "true" {
		address, err := a.Artifacts.Address(r.Context(), name, a.Now())
		if err != nil {
			return err
		}
		if address != "" {
			w.Header().Set("Location", address) // relative to the request, where it is a query alone
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return nil
		}
	}
	content, err := a.Artifacts.Open(r.Context(), name)
	if err != nil {
		return err
	}
	defer content.Close()
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", `attachment; filename="`+strings.TrimPrefix(name, "sha256:")+`.zip"`)
	h.Set("ETag", `"`+name+`"`)
	http.ServeContent(w, r, "", artifact.Created, content)
	return nil
}

func noArtifact(name string) error { return fmt.Errorf("bundle %.100q %w", name, catalog.ErrNotFound) }

// Unused remembers since when bundles have had no user, for all processes together.
type Unused interface {
	// UnusedBundles takes those that have none now, and returns since when each of them has
	// been seen without one. All others are forgotten.
	UnusedBundles(ctx context.Context, digests []string) (map[string]time.Time, error)
}

// Collect deletes the bundles that no version has used for that long. Several processes may
// do it at a time. It returns those that are gone.
func (a *API) Collect(ctx context.Context, unused Unused, keep time.Duration) (gone []string, err error) {
	digests, err := a.api.unusedBundles(ctx)
	if err != nil {
		return nil, err
	}
	since, err := unused.UnusedBundles(ctx, digests)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, digest := range digests {
		if at, seen := since[digest]; !seen || a.api.Now().Sub(at) < keep {
			continue
		}
		deleted, err := a.api.deleteUnused(ctx, digest)
		errs = append(errs, err)
		if deleted {
			gone = append(gone, digest)
		}
	}
	return gone, errors.Join(errs...)
}

// unusedBundles reads the list before the catalog, so that what is registered just now with
// a bundle that is new counts.
func (a *api) unusedBundles(ctx context.Context) ([]string, error) {
	digests, err := a.Artifacts.List(ctx)
	if err != nil {
		return nil, err
	}
	users := view{cat: a.Store.Catalog()}.users()
	return slices.DeleteFunc(digests, func(digest string) bool { return len(users[digest]) > 0 }), nil
}

// deleteUnused keeps others of this process from registering a version of the bundle
// meanwhile.
func (a *api) deleteUnused(ctx context.Context, digest string) (bool, error) {
	done, err := a.writer.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if len(view{cat: a.Store.Catalog()}.users()[digest]) > 0 {
		return false, nil
	}
	if err := a.Artifacts.Delete(ctx, digest); errors.Is(err, ErrNoBundle) {
		return false, nil // another process was quicker
	} else if err != nil {
		return false, err
	}
	return true, nil
}
