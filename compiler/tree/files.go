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
	add := func(dir string, files []backends.File) {
		for _, f := range files {
			out = append(out, backends.File{Path: dir + "/" + f.Path, Data: f.Data, Executable: f.Executable})
		}
	}
	for _, ct := range t.ClusterTypes {
		if ct.Outside {
			continue
		}
		content, err := ct.Content(ctx)
		if err != nil {
			return nil, err
		}
		add(ct.Name, content.Files)
		var folders []int
		for i, f := range content.Folders {
			if f.Kept == nil {
				folders = append(folders, i)
			}
		}
		if len(folders) == 0 {
			continue
		}
		made, err := content.Make(ctx, folders)
		if err != nil {
			return nil, err
		}
		for n, i := range folders {
			add(ct.Name+"/"+content.Folders[i].Info.DeploymentTarget, made[n])
		}
	}
	return out, nil
}

// OfFiles returns the id of a tree of files.
func OfFiles(files []backends.File) ID {
	blobs := map[string]Blob{}
	for _, f := range files {
		blobs[f.Path] = BlobOf(f)
	}
	return TreeID(blobs)
}

// FilesOf returns the files of the folder with a number, with their bytes.
func (c *Content) FilesOf(ctx context.Context, folder int) ([]backends.File, error) {
	made, err := c.Make(ctx, []int{folder})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}
