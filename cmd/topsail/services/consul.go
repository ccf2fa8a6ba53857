package services

import (
	"context"
	"log/slog"

	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/serving"
)

// InConsul finds the instances of services in Consul. A nil client is one by the CONSUL_* variables, which is
// connected for each service.
func InConsul(client *consulregistry.Client, log *slog.Logger) Find {
	return func(ctx context.Context, service string, update func([]serving.Endpoint)) error {
		registry, err := consulregistry.Open(consulregistry.Config{Client: client, Service: service, Log: log})
		if err != nil {
			return err
		}
		return registry.Watch(ctx, update)
	}
}
