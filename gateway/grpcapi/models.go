package grpcapi

import (
	"context"
	"errors"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// What the protocol says of the server and of models, which are apps.

func (s *Server) ServerLive(context.Context, *proto.ServerLiveRequest) (*proto.ServerLiveResponse, error) {
	return &proto.ServerLiveResponse{Live: true}, nil
}

// ServerReady says whether queries should come here.
func (s *Server) ServerReady(context.Context, *proto.ServerReadyRequest) (*proto.ServerReadyResponse, error) {
	return &proto.ServerReadyResponse{Ready: !s.draining.Load() && s.admission.Started()}, nil
}

func (s *Server) ServerMetadata(context.Context, *proto.ServerMetadataRequest) (*proto.ServerMetadataResponse, error) {
	return &proto.ServerMetadataResponse{Name: inference.ServerName, Version: inference.ServerVersion, Extensions: inference.Extensions()}, nil
}

// ModelReady says whether a version of an app has a replica, or any that the app asks. What is unknown is not
// ready: clients of Triton wait so for what is to come.
func (s *Server) ModelReady(ctx context.Context, m *proto.ModelReadyRequest) (*proto.ModelReadyResponse, error) {
	c, err := s.open(ctx, m.GetName())
	if errors.Is(err, serving.ErrUnknownApp) {
		return &proto.ModelReadyResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	ready, err := s.core.Ready(c.app.Name, m.GetVersion())
	return &proto.ModelReadyResponse{Ready: ready}, err
}

func (s *Server) ModelMetadata(ctx context.Context, m *proto.ModelMetadataRequest) (*proto.ModelMetadataResponse, error) {
	c, err := s.open(ctx, m.GetName())
	if err != nil {
		return nil, err
	}
	meta, err := inference.NewMetadata(c.app, s.admission.Catalog(), m.GetVersion())
	if err != nil {
		return nil, err
	}
	list := func(tensors []inference.TensorMetadata) (all []*proto.ModelMetadataResponse_TensorMetadata) {
		for _, t := range tensors {
			all = append(all, &proto.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: dimensions(t.Shape)})
		}
		return all
	}
	return &proto.ModelMetadataResponse{Name: meta.Name, Versions: meta.Versions, Platform: meta.Platform, Inputs: list(meta.Inputs), Outputs: list(meta.Outputs)}, nil
}

func dimensions(shape []int) []int64 {
	list := make([]int64, len(shape))
	for i, d := range shape {
		list[i] = int64(d)
	}
	return list
}

func (s *Server) ModelConfig(ctx context.Context, m *proto.ModelConfigRequest) (*proto.ModelConfigResponse, error) {
	c, err := s.open(ctx, m.GetName())
	if err != nil {
		return nil, err
	}
	config, err := inference.NewConfig(c.app, s.admission.Catalog(), m.GetVersion(), s.config.MaxBatch)
	if err != nil {
		return nil, err
	}
	out := &proto.ModelConfig{Name: config.Name, Platform: config.Platform, MaxBatchSize: int32(config.MaxBatchSize)}
	for _, t := range config.Input {
		out.Input = append(out.Input, &proto.ModelInput{Name: t.Name, DataType: proto.DataType(proto.DataType_value[t.DataType]), Dims: dimensions(t.Dims)})
	}
	for _, t := range config.Output {
		out.Output = append(out.Output, &proto.ModelOutput{Name: t.Name, DataType: proto.DataType(proto.DataType_value[t.DataType]), Dims: dimensions(t.Dims)})
	}
	return &proto.ModelConfigResponse{Config: out}, nil
}

// ModelStatistics are those of one model, or of all that the caller may ask.
func (s *Server) ModelStatistics(ctx context.Context, m *proto.ModelStatisticsRequest) (*proto.ModelStatisticsResponse, error) {
	var apps []*serving.App
	if m.GetName() != "" {
		c, err := s.open(ctx, m.GetName())
		if err != nil {
			return nil, err
		}
		if err := inference.CheckVersion(c.app, s.admission.Catalog(), m.GetVersion()); err != nil {
			return nil, err
		}
		apps = append(apps, c.app)
	} else {
		var err error
		if apps, err = s.seen(ctx); err != nil {
			return nil, err
		}
	}
	out := &proto.ModelStatisticsResponse{}
	for _, app := range apps {
		one := inference.NewStatistics(app, s.admission.Catalog(), m.GetVersion(), s.core.Inferences(app.Name))
		times := &one.Inference
		out.ModelStats = append(out.ModelStats, &proto.ModelStatistics{
			Name: one.Name, Version: one.Version, InferenceCount: one.InferenceCount, ExecutionCount: one.ExecutionCount,
			InferenceStats: &proto.InferStatistics{
				Success: duration(times.Success), Fail: duration(times.Fail), Queue: duration(times.Queue), ComputeInput: duration(times.ComputeInput),
				ComputeInfer: duration(times.ComputeInfer), ComputeOutput: duration(times.ComputeOutput), CacheHit: duration(times.CacheHit), CacheMiss: duration(times.CacheMiss),
			},
		})
	}
	return out, nil
}

func duration(d inference.Duration) *proto.StatisticDuration {
	return &proto.StatisticDuration{Count: d.Count, Ns: d.Nanos}
}

// RepositoryIndex lists the apps that the caller may ask, with the versions of those with one model.
func (s *Server) RepositoryIndex(ctx context.Context, m *proto.RepositoryIndexRequest) (*proto.RepositoryIndexResponse, error) {
	apps, err := s.seen(ctx)
	if err != nil {
		return nil, err
	}
	out := &proto.RepositoryIndexResponse{}
	for _, e := range inference.Index(apps, s.admission.Catalog(), s.core.Ready, m.GetReady()) {
		out.Models = append(out.Models, &proto.RepositoryIndexResponse_ModelIndex{Name: e.Name, Version: e.Version, State: e.State, Reason: e.Reason})
	}
	return out, nil
}

// RepositoryModelLoad has replicas of a model started, and waits for them for a while.
func (s *Server) RepositoryModelLoad(ctx context.Context, m *proto.RepositoryModelLoadRequest) (*proto.RepositoryModelLoadResponse, error) {
	c, err := s.open(ctx, m.GetModelName())
	if err != nil {
		return nil, err
	}
	return &proto.RepositoryModelLoadResponse{}, inference.Load(ctx, s.core, c.app.Name)
}

// RepositoryModelUnload lets a model sleep.
func (s *Server) RepositoryModelUnload(ctx context.Context, m *proto.RepositoryModelUnloadRequest) (*proto.RepositoryModelUnloadResponse, error) {
	c, err := s.open(ctx, m.GetModelName())
	if err != nil {
		return nil, err
	}
	return &proto.RepositoryModelUnloadResponse{}, inference.Unload(c.app, s.admission.Catalog())
}
