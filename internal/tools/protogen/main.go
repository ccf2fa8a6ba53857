// Command protogen writes the Go code of .proto files beside them, as protoc with protoc-gen-go and
// protoc-gen-go-grpc does, and needs no protoc: protogen ROOT FILE..., the files relative to the root.
// It runs in the module of the tools.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen ROOT FILE...")
		os.Exit(2)
	}
	for _, file := range os.Args[2:] {
		if err := generate(os.Args[1], file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func generate(root, file string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments
	}
	compiled, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(compiled[0])},
	}
	messages, err := messagesOf(request)
	if err != nil {
		return err
	}
	if err := write(root, messages); err != nil || compiled[0].Services().Len() == 0 {
		return err
	}
	services, err := servicesOf(request)
	if err != nil {
		return err
	}
	return write(root, services)
}

// messagesOf is the code of the messages.
func messagesOf(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return nil, err
	}
	for _, f := range plugin.Files {
		internal_gengo.GenerateFile(plugin, f)
	}
	return plugin.Response(), nil
}

// servicesOf is the code of the services, whose generator is a program.
func servicesOf(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	plugin := exec.Command("go", "tool", "protoc-gen-go-grpc")
	plugin.Stdin, plugin.Stderr = bytes.NewReader(in), os.Stderr
	out, err := plugin.Output()
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go-grpc: %w", err)
	}
	response := &pluginpb.CodeGeneratorResponse{}
	return response, proto.Unmarshal(out, response)
}

func write(root string, response *pluginpb.CodeGeneratorResponse) error {
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, made := range response.File {
		if err := os.WriteFile(filepath.Join(root, made.GetName()), []byte(made.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
