package main

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// serveBare serves one route with Fiber and nothing around it.
func serveBare(ctx context.Context, route fiber.Handler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post(queryPath, route)
	if err := announce(listening{Addr: ln.Addr().String()}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = app.Shutdown() })() // the process ends next
	return app.Listener(ln)
}

// bareRoute reads and writes bodies as the gateway does, and does nothing else.
func bareRoute() fiber.Handler {
	var ids atomic.Int64
	output := strconv.AppendFloat(nil, modelOutput, 'f', -1, 64)
	return func(c *fiber.Ctx) error {
		if _, err := codec.DecodePredict(c.BodyRaw(), &serving.App{InputType: serving.Doubles}, 1); err != nil {
			return fiber.NewError(fiber.StatusBadRequest, err.Error())
		}
		var room [128]byte
		answer := codec.AppendPrediction(room[:0], serving.Prediction{QueryID: ids.Add(1), Output: output})
		c.Response().Header.SetContentType("application/json")
		c.Response().SetBody(answer)
		return nil
	}
}

// bareJSONRoute does the same with encoding/json.
func bareJSONRoute() fiber.Handler {
	type query struct {
		Input []float64 `json:"input"`
	}
	type prediction struct {
		QueryID int64   `json:"query_id"`
		Output  float64 `json:"output"`
		Default bool    `json:"default"`
	}
	var ids atomic.Int64
	return func(c *fiber.Ctx) error {
		var q query
		if err := json.Unmarshal(c.BodyRaw(), &q); err != nil {
			return fiber.NewError(fiber.StatusBadRequest, err.Error())
		}
		answer, err := json.Marshal(prediction{QueryID: ids.Add(1), Output: modelOutput})
		if err != nil {
			return err
		}
		c.Response().Header.SetContentType("application/json")
		c.Response().SetBody(answer)
		return nil
	}
}
