package rest

import (
	"context"
	"net"
)

type (
	Config struct {
		Host, BearerToken string
		Dial              func(ctx context.Context, network, address string) (net.Conn, error)
		TLSClientConfig   TLSClientConfig
		ContentConfig     ContentConfig
	}
	TLSClientConfig struct{ CAData []byte }
	ContentConfig   struct{ ContentType string }
)
