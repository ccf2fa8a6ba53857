package models

import (
	"context"
	"net/http"
	"os"
	"slices"

	"github.com/topsail-serving/topsail/internal/apiclient"
)

// Versions that a stream made have a retention: the newest of each model stay, and of the others
// those that are used, or that a rollback leads to.

// trim removes what a model has too many of. It fails when ctx ends; whatever else fails is tried
// after the next deployment.
func (h *handler) trim(ctx context.Context, name string) error {
	if h.cfg.KeepVersions == KeepAll {
		return nil
	}
	err := h.discardOld(ctx, name)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		h.job.Log.Warn("cannot remove old versions of a model; retrying after its next deployment", "model", name, "err", err)
	}
	return nil
}

func (h *handler) discardOld(ctx context.Context, name string) error {
	made, err := h.made(ctx, name)
	if err != nil {
		return err
	}
	for _, v := range slices.Backward(made[min(len(made), h.cfg.KeepVersions):]) {
		if _, err := h.discard(ctx, v, "newer versions are there"); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes versions that nothing uses, of all models, the oldest first, until a bundle may
// have room. freed is false where there is none to remove.
func (h *handler) makeRoom(ctx context.Context, bundle string) (freed bool, err error) {
	if h.cfg.KeepVersions == KeepAll {
		return false, nil
	}
	info, err := os.Stat(bundle)
	if err != nil {
		return false, err
	}
	spare, err := h.spare(ctx)
	if err != nil {
		return false, err
	}
	slices.SortStableFunc(spare, func(a, b product) int { return a.origin.at.Compare(b.origin.at) })
	for room := int64(0); room < info.Size() && len(spare) > 0; spare = spare[1:] {
		size, err := h.discard(ctx, spare[0], "the bundle store is full")
		if err != nil {
			return freed, err
		}
		room += size
		freed = freed || size > 0
	}
	return freed, nil
}

// product is a version that this stream made.
type product struct {
	model string
	version
	origin origin
	spare  bool // neither used nor where a rollback leads
}

// made are the versions of a model that this stream made, the newest update first.
func (h *handler) made(ctx context.Context, name string) ([]product, error) {
	var of model
	if _, err := h.api.Get(ctx, &of, nil, "models", name); err != nil {
		return nil, err
	}
	versions, err := h.api.versions(ctx, name)
	if err != nil {
		return nil, err
	}
	var made []product
	for _, v := range versions {
		if by, ours := parseOrigin(v.Labels); ours && by.job == h.cfg.Name {
			made = append(made, product{name, v, by, v.unused() && v.Version != of.Previous})
		}
	}
	slices.SortStableFunc(made, func(a, b product) int {
		switch {
		case a.origin.after(b.origin):
			return -1
		case b.origin.after(a.origin):
			return 1
		}
		return 0
	})
	return made, nil
}

// spare are the versions of all models that this stream made, and that can go.
func (h *handler) spare(ctx context.Context) ([]product, error) {
	list, err := h.api.List(ctx, 0, nil, "models")
	if err != nil {
		return nil, err
	}
	var all []product
	for _, text := range list {
		var of struct {
			Name string `json:"name"`
		}
		if err := read(text, &of); err != nil {
			return nil, err
		}
		made, err := h.made(ctx, of.Name)
		if is(err, http.StatusNotFound) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(made, func(p product) bool { return !p.spare })...)
	}
	return all, nil
}

// discard removes a version that can go, and its bundle, unless others use that. It returns how many
// bytes that had. A version that is used meanwhile stays.
func (h *handler) discard(ctx context.Context, p product, why string) (size int64, err error) {
	if !p.spare {
		return 0, nil
	}
	path := []string{"models", p.model, "versions", p.Version}
	var now version
	etag, err := h.api.do(ctx, apiclient.Request{Path: path}, &now)
	if is(err, http.StatusNotFound) || err == nil && (!now.unused() || !slices.Equal(now.Labels, p.Labels)) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, err = h.api.do(ctx, apiclient.Request{Method: http.MethodDelete, Path: path, IfMatch: etag}, nil)
	if is(err, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	h.metrics.removed.Inc()
	size, err = h.discardBundle(ctx, p.Bundle)
	h.job.Log.Info("an old version is removed", "model", p.model, "version", p.Version, "why", why, "bytes", size)
	return size, err
}

// discardBundle removes a bundle, if no version uses it and the stream's key may.
func (h *handler) discardBundle(ctx context.Context, digest string) (size int64, err error) {
	path := []string{"artifacts", digest}
	var stored struct {
		Size int64 `json:"size"`
	}
	if _, err = h.api.do(ctx, apiclient.Request{Path: path}, &stored); err == nil {
		_, err = h.api.do(ctx, apiclient.Request{Method: http.MethodDelete, Path: path}, nil)
	}
	if is(err, http.StatusNotFound, http.StatusConflict, http.StatusForbidden) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return stored.Size, nil
}
