// Package s3bucket keeps bundles in an object store that speaks the API of Amazon S3.
package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	ending     = ".zip"
	askWithin  = 30 * time.Second
	sendWithin = 2 * time.Hour
	noRoom     = "XMinioStorageFull" // what MinIO says on a full disk
)

// Bucket is a bucket, or the part of one below a prefix. Its methods may be called at the
// same time.
type Bucket struct {
	client *minio.Client
	name   string
	prefix string
}

// Open takes a URL such as s3://BUCKET/PREFIX?endpoint=https://minio.example:9000&region=us-east-1.
// The endpoint is Amazon's without one; nodes fetch from it, too. Keys come from the variables
// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from the file that AWS_SHARED_CREDENTIALS_FILE
// names, or from the machine's role. Nothing is asked yet.
func Open(text string) (*Bucket, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return nil, errors.New("name a bucket as s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION, without keys")
	}
	query := u.Query()
	for name := range query {
		if name != "endpoint" && name != "region" {
			return nil, fmt.Errorf("the bucket %s has a parameter %q: use endpoint and region", u.Host, name)
		}
	}
	at := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if endpoint := query.Get("endpoint"); endpoint != "" {
		if at, err = url.Parse(endpoint); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, fmt.Errorf("the endpoint of the bucket %s must be a URL such as https://minio.example:9000", u.Host)
		}
	}
	client, err := minio.New(at.Host, &minio.Options{
		Secure: at.Scheme == "https", Region: query.Get("region"),
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("the bucket %s: %w", u.Host, err)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Bucket{client, u.Host, prefix}, nil
}

// object is the name of a bundle's object.
func (b *Bucket) object(digest string) (string, error) {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return "", fmt.Errorf("%w: %w", bundle.ErrNotStored, err)
	}
	return b.prefix + hex + ending, nil
}

// Put stores an archive. An object is there whole or not at all.
func (b *Bucket) Put(ctx context.Context, digest string, archive *os.File, size int64) error {
	object, err := b.object(digest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	_, err = b.client.PutObject(ctx, b.name, object, io.NewSectionReader(archive, 0, size), size, minio.PutObjectOptions{ContentType: "application/zip"})
	return b.wrong("store", err)
}

// Open opens an archive, whose parts are fetched as they are read.
func (b *Bucket) Open(ctx context.Context, digest string) (bundle.Content, bundle.Stored, error) {
	object, err := b.object(digest)
	if err != nil {
		return nil, bundle.Stored{}, err
	}
	info, err := b.stat(ctx, object)
	if err != nil {
		return nil, bundle.Stored{}, err
	}
	content, err := b.client.GetObject(ctx, b.name, object, minio.GetObjectOptions{})
	if err != nil {
		return nil, bundle.Stored{}, b.wrong("read", err)
	}
	return content, bundle.Stored{Digest: digest, Size: info.Size, Created: info.LastModified}, nil
}

func (b *Bucket) stat(ctx context.Context, object string) (minio.ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	info, err := b.client.StatObject(ctx, b.name, object, minio.StatObjectOptions{})
	return info, b.wrong("find", err)
}

// List are the bundles of the bucket.
func (b *Bucket) List(ctx context.Context) ([]bundle.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var list []bundle.Stored
	for object := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if object.Err != nil {
			return nil, b.wrong("list", object.Err)
		}
		digest := "sha256:" + strings.TrimSuffix(strings.TrimPrefix(object.Key, b.prefix), ending)
		if _, err := bundle.ParseDigest(digest); err == nil && strings.HasSuffix(object.Key, ending) {
			list = append(list, bundle.Stored{Digest: digest, Size: object.Size, Created: object.LastModified})
		}
	}
	return list, context.Cause(ctx)
}

// Delete removes an archive.
func (b *Bucket) Delete(ctx context.Context, digest string) error {
	object, err := b.object(digest)
	if err != nil {
		return err
	}
	if _, err := b.stat(ctx, object); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return b.wrong("delete", b.client.RemoveObject(ctx, b.name, object, minio.RemoveObjectOptions{}))
}

// Address is a URL of the endpoint at which the bundle can be fetched for a while, without a key.
func (b *Bucket) Address(ctx context.Context, digest string, lasts time.Duration) (string, error) {
	object, err := b.object(digest)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	u, err := b.client.PresignedGetObject(ctx, b.name, object, lasts, nil)
	if err != nil {
		return "", b.wrong("sign the address of", err)
	}
	return u.String(), nil
}

// wrong makes an error of the client one of package bundle.
func (b *Bucket) wrong(doing string, err error) error {
	if err == nil {
		return nil
	}
	said := minio.ToErrorResponse(err)
	switch {
	case said.Code == "NoSuchKey":
		return bundle.ErrNotStored
	case said.Code == "NoSuchBucket":
		return fmt.Errorf("bucket %q does not exist: create it, or correct web.bundles", b.name)
	case said.Code == noRoom || said.Code == "QuotaExceeded" || said.StatusCode == http.StatusInsufficientStorage:
		return fmt.Errorf("%w: free space in the object store: %w", bundle.ErrNoRoom, err)
	}
	return fmt.Errorf("%s a bundle in bucket %s: %w", doing, b.name, err)
}
