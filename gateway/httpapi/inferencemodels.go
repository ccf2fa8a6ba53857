package httpapi

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// What the Open Inference Protocol says of models, which are apps.

func (s *Server) serverMetadata(c *fiber.Ctx) error {
	return sendJSON(c.Context(), fiber.StatusOK, map[string]any{"name": inference.ServerName, "version": inference.ServerVersion, "extensions": inference.Extensions()})
}

func (s *Server) live(c *fiber.Ctx) error {
	return sendJSON(c.Context(), fiber.StatusOK, map[string]bool{"live": true})
}

// ready says whether queries should come here: KServe's client reads "ready", others the status.
func (s *Server) ready(c *fiber.Ctx) error {
	return s.sendReady(c.Context(), !s.draining.Load() && s.admission.Started())
}

func (s *Server) sendReady(rc *fasthttp.RequestCtx, ready bool) error {
	status := fiber.StatusOK
	if !ready {
		status = fiber.StatusServiceUnavailable
	}
	return sendJSON(rc, status, map[string]bool{"ready": ready, "live": ready})
}

// modelReady says whether a version of an app has a replica, or any that the app asks. An unknown version is not
// ready: clients of Triton ask so.
func (s *Server) modelReady(c *fiber.Ctx) error {
	app, err := s.model(c)
	if err != nil {
		return err
	}
	ready, err := s.core.Ready(app.Name, parameter(c, "version"))
	if err != nil {
		return err
	}
	return s.sendReady(c.Context(), ready)
}

// model is the app that a request without a body is about, if the caller may know of it.
func (s *Server) model(c *fiber.Ctx) (*serving.App, error) {
	name := parameter(c, "app")
	who, err := s.admit(c.Context(), name)
	if err != nil {
		return nil, err
	}
	app, err := s.core.App(name)
	if err != nil {
		return nil, err
	}
	return app, s.admission.May(who, app)
}

// parameter is a part of the path, unescaped; it dies with the request.
func parameter(c *fiber.Ctx, name string) string {
	text := c.Params(name)
	if strings.IndexByte(text, '%') >= 0 {
		text, _ = url.PathUnescape(text)
	}
	return text
}

func (s *Server) modelMetadata(c *fiber.Ctx) error {
	app, err := s.model(c)
	if err != nil {
		return err
	}
	m, err := inference.NewMetadata(app, s.admission.Catalog(), parameter(c, "version"))
	if err != nil {
		return err
	}
	return sendJSON(c.Context(), fiber.StatusOK, m)
}

func (s *Server) modelConfig(c *fiber.Ctx) error {
	app, err := s.model(c)
	if err != nil {
		return err
	}
	config, err := inference.NewConfig(app, s.admission.Catalog(), parameter(c, "version"), s.config.MaxBatch)
	if err != nil {
		return err
	}
	return sendJSON(c.Context(), fiber.StatusOK, config)
}

// statistics are those of one model, or of all that the caller may ask.
func (s *Server) statistics(c *fiber.Ctx) error {
	rc := c.Context()
	var apps []*serving.App
	if name := parameter(c, "app"); name != "" {
		app, err := s.model(c)
		if err != nil {
			return err
		}
		if err := inference.CheckVersion(app, s.admission.Catalog(), parameter(c, "version")); err != nil {
			return err
		}
		apps = append(apps, app)
	} else {
		who, err := s.asker(rc)
		if err != nil {
			return err
		}
		if apps, err = s.admission.Visible(who, s.core.App); err != nil {
			return err
		}
	}
	all := []inference.Statistics{}
	for _, app := range apps {
		all = append(all, inference.NewStatistics(app, s.admission.Catalog(), parameter(c, "version"), s.core.Inferences(app.Name)))
	}
	return sendJSON(rc, fiber.StatusOK, map[string]any{"model_stats": all})
}

// load has replicas of a model started.
func (s *Server) load(queries context.Context, c *fiber.Ctx) error {
	app, err := s.model(c)
	if err != nil {
		return err
	}
	if err := inference.Load(queries, s.core, app.Name); err != nil {
		return err
	}
	send(c.Context(), fiber.StatusOK, buffer(c.Context()))
	return nil
}

// unload lets a model sleep.
func (s *Server) unload(c *fiber.Ctx) error {
	app, err := s.model(c)
	if err != nil {
		return err
	}
	if err := inference.Unload(app, s.admission.Catalog()); err != nil {
		return err
	}
	send(c.Context(), fiber.StatusOK, buffer(c.Context()))
	return nil
}

// repositoryIndex lists the apps that the caller may ask, with the versions of those with one model.
func (s *Server) repositoryIndex(c *fiber.Ctx) error {
	rc := c.Context()
	who, err := s.asker(rc)
	if err != nil {
		return err
	}
	body, err := s.body(rc, rc.Conn().(*conn))
	if err != nil {
		return err
	}
	var request struct{ Ready bool }
	if len(body) > 0 && json.Unmarshal(body, &request) != nil {
		return &refusal{fiber.StatusBadRequest, "Bad request", `the body must be an object such as {"ready": true}, or empty`}
	}
	apps, err := s.admission.Visible(who, s.core.App)
	if err != nil {
		return err
	}
	return sendJSON(rc, fiber.StatusOK, inference.Index(apps, s.admission.Catalog(), s.core.Ready, request.Ready))
}
