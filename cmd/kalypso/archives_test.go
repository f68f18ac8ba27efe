package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"os"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/internal/archive"
)

// layers are the media types of the layers that `helm push` and `flux push artifact` send.
var layers = map[string]string{
	"chart":    "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
	"artifact": "application/vnd.cncf.flux.content.v1.tar+gzip",
}

// pushCommand is `push VAR chart|artifact REPOSITORY:TAG PATH`. It pushes a folder, or an archive
// as it is, to the registry of the scripts. It sets VAR to the digest of the manifest.
func pushCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 || layers[args[1]] == "" {
		ts.Fatalf("usage: push VAR chart|artifact REPOSITORY:TAG PATH")
	}
	data := packed(ts, args[3], args[1] == "chart")
	name, tag, _ := strings.Cut(args[2], ":")
	to, err := remote.NewRepository(ts.Getenv("REGISTRY") + "/" + name)
	ts.Check(err)
	to.PlainHTTP = true
	ctx := context.Background()
	layer := content.NewDescriptorFromBytes(layers[args[1]], data)
	ts.Check(to.Push(ctx, layer, bytes.NewReader(data)))
	manifest, err := oras.PackManifest(ctx, to, oras.PackManifestVersion1_1, layer.MediaType, oras.PackManifestOptions{
		Layers:              []ocispec.Descriptor{layer},
		ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: "2026-01-02T03:04:05Z"},
	})
	ts.Check(err)
	ts.Check(to.Tag(ctx, manifest, tag))
	ts.Setenv(args[0], manifest.Digest.String())
}

// packed is an archive as it is, or of a folder, which may be a chart.
func packed(ts *testscript.TestScript, name string, chart bool) []byte {
	root := ts.MkAbs(name)
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		data, err := os.ReadFile(root)
		ts.Check(err)
		return data
	}
	below := ""
	if chart {
		below = "chart/"
	}
	tree := &archive.Tree{Files: map[string]archive.File{}}
	ts.Check(fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(root), name)
		tree.Files[below+name] = archive.File{Data: data}
		return err
	}))
	if !chart {
		return archive.Pack(tree)
	}
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, err := w.Write(archive.Pack(tree))
	ts.Check(err)
	ts.Check(w.Close())
	return compressed.Bytes()
}

// archiveCommand is `archive FILE ENTRY...`: a compressed tar archive with entries
// of any name, which no tool would write. NAME=FILE is a file with the content of
// another, and NAME->TARGET a symbolic link.
func archiveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: archive FILE ENTRY...")
	}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	entries := tar.NewWriter(compressed)
	for _, arg := range args[1:] {
		if name, target, ok := strings.Cut(arg, "->"); ok {
			ts.Check(entries.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}))
			continue
		}
		name, from, _ := strings.Cut(arg, "=")
		data := []byte(ts.ReadFile(from))
		ts.Check(entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644}))
		_, err := entries.Write(data)
		ts.Check(err)
	}
	ts.Check(entries.Close())
	ts.Check(compressed.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o666))
}
