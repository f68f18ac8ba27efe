package tree

import (
	"context"

	"github.com/kalypso-io/kalypso/backends"
)

// Files returns all files of a tree with their bytes, by cluster type and folder;
// those of kept folders, which only the previous output has, are not among them.
// It makes everything, so it is for trees that fit into memory.
func (t *Tree) Files(ctx context.Context) ([]backends.File, error) {
	var out []backends.File
	for _, ct := range t.ClusterTypes {
		if ct.Outside {
			continue
		}
		content, err := ct.Content(ctx)
		if err != nil {
			return nil, err
		}
		var folders []int
		var dirs []string
		if len(content.root()) > 0 {
			folders, dirs = append(folders, Root), append(dirs, ct.Name+"/")
		}
		for i, f := range content.Folders {
			if f.Kept == nil {
				folders, dirs = append(folders, i), append(dirs, ct.Name+"/"+f.Info.DeploymentTarget+"/")
			}
		}
		if len(folders) == 0 {
			continue
		}
		made, err := content.Make(ctx, folders)
		if err != nil {
			return nil, err
		}
		for n, dir := range dirs {
			for _, f := range made[n] {
				out = append(out, backends.File{Path: dir + f.Path, Data: f.Data, Executable: f.Executable})
			}
		}
	}
	return out, nil
}

// OfFiles returns the id of a tree of files.
func OfFiles(files []File) ID {
	return TreeID(blobsOf(files))
}

func blobsOf(files []File) map[string]Blob {
	blobs := make(map[string]Blob, len(files))
	for _, f := range files {
		blobs[f.Path] = f.Blob()
	}
	return blobs
}

// ContentOf returns the content of a cluster type without folders.
func ContentOf(files []backends.File) *Content {
	return &Content{Files: FilesOf(files), Make: func(context.Context, []int) ([][]backends.File, error) {
		return [][]backends.File{files}, nil
	}}
}

// FilesOf returns files by the ids of their content.
func FilesOf(files []backends.File) []File {
	out := make([]File, len(files))
	for i, f := range files {
		out[i] = FileOf(f)
	}
	return out
}

// One returns the files of the folder with a number, with their bytes.
func (c *Content) One(ctx context.Context, folder int) ([]backends.File, error) {
	made, err := c.Make(ctx, []int{folder})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}
