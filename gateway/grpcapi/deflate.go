package grpcapi

import (
	"compress/zlib"
	"io"
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // makes itself known
)

// deflate is the compression of this name, which gRPC for Go lacks and other clients offer.
type deflate struct{}

// knowDeflate makes it known to gRPC, once.
var knowDeflate = sync.OnceFunc(func() { encoding.RegisterCompressor(deflate{}) })

// Name implements encoding.Compressor.
func (deflate) Name() string { return "deflate" }

// Compress implements encoding.Compressor.
func (deflate) Compress(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

// Decompress implements encoding.Compressor. What comes of it is bounded by gRPC.
func (deflate) Decompress(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
