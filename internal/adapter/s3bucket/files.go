package s3bucket

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/minio/minio-go/v7"
)

// Files are the objects of a bucket, or of the part of one below a prefix, by their names. Its
// methods may be called at the same time.
type Files struct{ bucket *Bucket }

// OpenFiles takes a URL as Open does. Nothing is asked yet.
func OpenFiles(text string) (Files, error) {
	b, err := Open(text)
	return Files{b}, err
}

// Put stores a file of size bytes, whole or not at all, in place of one that is there.
func (f Files) Put(ctx context.Context, name string, file *os.File, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	_, err := f.bucket.client.PutObject(ctx, f.bucket.name, f.bucket.prefix+name, io.NewSectionReader(file, 0, size), size, minio.PutObjectOptions{})
	return f.wrong("store", name, err)
}

// Get writes a file to another.
func (f Files) Get(ctx context.Context, name string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	object, err := f.bucket.client.GetObject(ctx, f.bucket.name, f.bucket.prefix+name, minio.GetObjectOptions{})
	if err == nil {
		defer func() { _ = object.Close() }()
		_, err = io.Copy(to, object)
	}
	return f.wrong("read", name, err)
}

// List returns all names.
func (f Files) List(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	for object := range f.bucket.client.ListObjects(ctx, f.bucket.name, minio.ListObjectsOptions{Prefix: f.bucket.prefix}) {
		if object.Err != nil {
			return nil, f.wrong("list", "files", object.Err)
		}
		names = append(names, object.Key[len(f.bucket.prefix):])
	}
	return names, context.Cause(ctx)
}

// Delete removes a file.
func (f Files) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return f.wrong("delete", name, f.bucket.client.RemoveObject(ctx, f.bucket.name, f.bucket.prefix+name, minio.RemoveObjectOptions{}))
}

func (f Files) wrong(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchKey":
		return fmt.Errorf("%s does not exist in bucket %s", name, f.bucket.name)
	case "NoSuchBucket":
		return fmt.Errorf("bucket %q does not exist: create it, or correct its name", f.bucket.name)
	}
	return fmt.Errorf("%s %s in bucket %s: %w", doing, name, f.bucket.name, err)
}
